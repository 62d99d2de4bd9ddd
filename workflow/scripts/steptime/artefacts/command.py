"""The command line that every paper's module has: `python -m papers.<paper> <artefact> --printed ...
--output-prefix ...`.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from steptime.artefacts import abilities, trained
from steptime.artefacts.inputs import (
    Frameworks,
    InputError,
    Measured,
    read_json,
    read_measured,
    read_printed,
    read_yaml,
)
from steptime.artefacts.trained import Trained
from steptime.merge import MixedRowsError
from steptime.render import figures as drawn
from steptime.render import tables as layouts

Table = tuple[pd.DataFrame, pd.DataFrame]
Figure = tuple[pd.DataFrame, Drawing]


@dataclass
class Inputs:
    """What an artefact may read; a file is read when it is first asked for."""

    name: str
    paper_name: str
    arguments: argparse.Namespace

    @cached_property
    def measured(self) -> Measured:
        """What was measured here."""
        if self.arguments.merged is None:
            path = f"results/merged/{self.paper_name}_{self.name}.parquet"
            raise InputError(
                f"{self.name} is made of measured rows: name their file with --merged, such as {path}."
            )
        return read_measured(self.arguments.merged)

    @cached_property
    def measured_if_any(self) -> Measured:
        """What was measured here, or nothing where the grid has no cells of the artefact."""
        return self.measured if self.arguments.merged else Measured.nothing()

    @cached_property
    def abilities(self) -> pd.DataFrame:
        """What the installed frameworks can do, one row for each environment."""
        packages = [read_json(path) for path in self.arguments.metadata]
        return abilities.read(self.measured, self.proofs, packages, self.networks)

    @cached_property
    def proofs(self) -> list[dict[str, Any]]:
        """The proofs that frameworks train the same networks, as `prove.network` wrote their details."""
        return [read_json(path) for path in self.arguments.proofs]

    @cached_property
    def peaks(self) -> dict[str, dict[str, Any]]:
        """What each platform's machine itself reaches, as `measure.peak` wrote it."""
        return {path.stem: read_json(path) for path in self.arguments.peaks}

    @cached_property
    def topologies(self) -> dict[str, dict[str, Any]]:
        """How each platform's machine is built, as `measure.topology` wrote it."""
        return {path.stem: read_json(path) for path in self.arguments.topologies}

    @cached_property
    def printed(self) -> pd.DataFrame:
        """What the paper printed."""
        if self.arguments.printed is None:
            path = f"resources/papers/{self.paper_name}/{self.name}.csv"
            raise InputError(
                f"{self.name} is made of printed numbers: name their file with --printed, such as {path}."
            )
        return read_printed(self.arguments.printed)

    @cached_property
    def paper(self) -> dict[str, Any]:
        """The paper's catalogue, `paper.yaml`."""
        return read_yaml(self.arguments.paper)

    @cached_property
    def trained(self) -> Trained:
        """The trainings of whole networks here, or nothing where the grid has none."""
        return trained.read(self.arguments.trained) if self.arguments.trained else Trained.nothing()

    @cached_property
    def images(self) -> dict[str, np.ndarray]:
        """A split of a data set, as `datasets.splits` wrote it."""
        with np.load(self.arguments.images) as file:
            return dict(file)

    @cached_property
    def frameworks(self) -> Frameworks:
        """How frameworks are named and drawn."""
        return Frameworks(self.arguments.frameworks)

    @cached_property
    def networks(self) -> dict[str, Any]:
        """The catalogue of networks."""
        return read_yaml(self.arguments.networks)

    @property
    def artefact(self) -> dict[str, Any]:
        """The artefact's entry in the paper's catalogue."""
        return self.paper["artefacts"][self.name]

    @cached_property
    def page(self) -> layouts.Page:
        """The words around a table, with the sources as its last note; a builder adds its own notes before
        them.
        """
        notes = [*self.paper["readings"].get(self.name, []), self.source]
        title = f"{self.artefact['title']} ({self.artefact['sources'][0]})"
        name = f"{self.paper_name}_{self.name}"
        return layouts.Page(name, title, self.artefact["caption"], self.paper["short"], notes=notes)

    @property
    def source(self) -> str:
        """Where the printed numbers, or the words, stand."""
        places = f"{self.paper['citation'].strip()}: {', '.join(self.artefact['sources'])}"
        return (
            f"Printed numbers: {places}; as data in {self.arguments.printed}."
            if self.arguments.printed
            else places
        )


def main(
    paper: str,
    tables: dict[str, Callable[[Inputs], Table]],
    figures: dict[str, Callable[[Inputs], Figure]],
) -> None:
    """Makes the artefact that the command line names; a mistake in the inputs ends in one sentence and
    exit status 1.
    """
    arguments = _parse(paper, [*tables, *figures])
    inputs = Inputs(arguments.artefact, paper, arguments)
    try:
        if arguments.artefact in tables:
            data, layout = tables[arguments.artefact](inputs)
            layouts.write(arguments.output_prefix, data, layout, inputs.page)
        else:
            data, drawing = figures[arguments.artefact](inputs)
            drawn.write(arguments.output_prefix, data, drawing)
    except (InputError, MixedRowsError) as error:
        sys.exit(str(error))


def _parse(paper: str, artefacts: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"artefacts.{paper}", description=f"Makes an artefact of {paper}."
    )
    parser.add_argument("artefact", choices=artefacts)
    parser.add_argument("--merged", type=Path, help="merged rows of the artefact, Parquet")
    parser.add_argument(
        "--proofs", type=Path, nargs="*", default=[], help="details of the proofs, JSON"
    )
    parser.add_argument(
        "--metadata",
        type=Path,
        nargs="*",
        default=[],
        help="metadata of the frameworks' packages, JSON",
    )
    parser.add_argument(
        "--peaks", type=Path, nargs="*", default=[], help="the peak of each platform, JSON"
    )
    parser.add_argument(
        "--topologies", type=Path, nargs="*", default=[], help="each platform's machine, JSON"
    )
    parser.add_argument("--trained", type=Path, help="the trainings of the grid, Parquet")
    parser.add_argument("--images", type=Path, help="a split of a data set, .npz")
    parser.add_argument("--printed", type=Path, help="the paper's printed numbers, CSV")
    parser.add_argument(
        "--paper", type=Path, required=True, help="the paper's catalogue, paper.yaml"
    )
    parser.add_argument(
        "--frameworks", type=Path, required=True, help="labels and colours of frameworks, YAML"
    )
    parser.add_argument(
        "--networks", type=Path, required=True, help="the catalogue of networks, YAML"
    )
    parser.add_argument(
        "--output-prefix",
        type=Path,
        required=True,
        help="path of the outputs without their endings",
    )
    return parser.parse_args()
