"""Says in words what an adapter lacks and what it gets wrong.

    workflow/scripts/launch prove.adapter --adapter torch [--environment torch-1.4] [--mode eager]

Tiny networks, one for each layer kind, and the narrow networks of the catalogue are proven in the environment, and a
tiny one is timed. The exit status is 1 where something is wrong; what is missing is no fault.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared import declarations
from steptime import machine, networks, project, tasks
from steptime.cells.expected import Expected
from steptime.environments import every
from steptime.networks.layers import LAYERS
from steptime.networks.losses import LOSSES
from steptime.networks.optimisers import OPTIMISERS
from steptime.plan import configuration, schemas
from steptime.prove import network

FRAMEWORKS = project.SCRIPTS / "worker/frameworks"
SAMPLING = {"budget_seconds": 1.0, "precision": 0.1, "least_samples": 3}
LIMIT_SECONDS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description="Say what an adapter lacks and gets wrong.")
    parser.add_argument("--adapter", required=True, help="name of a folder of worker/frameworks")
    parser.add_argument("--environment", help="default: the first one of this adapter")
    parser.add_argument("--mode", help="default: the environment's first")
    options = parser.parse_args()
    try:
        loaded = configuration.load(Path(), {"grid": every.GRID})
        known = sorted(path.parent.name for path in FRAMEWORKS.glob("[!_]*/__init__.py"))
        schemas.require("adapter", [options.adapter.partition(".")[0]], known, "worker/frameworks")
        has = declarations.declared(options.adapter)
        environment = options.environment or _environment_of(loaded, options.adapter)
        environment = loaded.environments_of(environment)[0]
        entry = loaded.entry_of(environment)
    except declarations.Unsupported as error:
        sys.exit(f"{error}.")
    make_environment(environment, loaded)
    job = network.job_of(environment, entry) | {"adapter": options.adapter}
    job |= {"mode": options.mode} if options.mode else {}
    print(f"{options.adapter} in {environment}, {job['mode']}:")
    missing = list(lacks(has, loaded.networks, entry))
    wrong = [f"declares no {name}" for name in ("MODES", "LAYERS") if not has[name]]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "worker.log"
        for title, spec in examples(has, loaded.networks):
            said = verdict(job, spec, log)
            print(f"  {title:24} {said or 'the same network'}", flush=True)
            wrong += [f"{title}: {said}"] if said else []
        said = time_tiny(job, log)
        print(f"  {'timing':24} {said or 'takes samples'}")
        wrong += [f"timing: {said}"] if said else []
    for sentence in missing:
        print(f"Missing: {sentence}.")
    for sentence in wrong:
        print(f"Wrong: {sentence}.")
    if wrong:
        sys.exit(1)
    print(f"What {options.adapter} declares, it does.")


def lacks(has: dict[str, Any], catalogue: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
    """Says what an adapter does not declare and which networks need it, one sentence each."""
    # A mode such as `plain` has a module of its own.
    own = {path.stem for path in (FRAMEWORKS / entry["adapter"]).glob("*.py")}
    unknown = [mode for mode in entry["modes"] if mode not in own.union(has["MODES"])]
    if unknown and has["MODES"]:
        yield f"has no mode {', '.join(unknown)}, which config/frameworks.yaml asks for"
    records = {
        name: networks.used_records(networks.specify(name, catalogue, narrow=True))
        for name in catalogue
    }
    kinds = (("LAYERS", "layer", LAYERS), ("LOSSES", "loss", LOSSES))
    for key, word, known in (*kinds, ("OPTIMISERS", "optimiser", OPTIMISERS)):
        for lacking in sorted(set(known) - set(has[key] or known)):
            used = [name for name in catalogue if lacking in records[name]]
            yield f"has no {word} {lacking}{_not_to_be_had(used)}"
    for kind in has["LAYERS"] or ():
        for option in sorted(set(LAYERS[kind].options) - set(has["OPTIONS"].get(kind, ()))):
            yield f"has no option {option} of the layer {kind}"
    for task in tasks.TASKS.values():
        if task.needs_images and task.name not in has["TASKS"]:
            trained = [name for name in catalogue if "dataset" in networks.resolve(name, catalogue)]
            yield f"has no task {task.name}{_not_to_be_had(trained)}"


def _not_to_be_had(names: list[str]) -> str:
    verb = "is" if len(names) == 1 else "are"
    return f": {', '.join(names)} {verb} not to be had" if names else ""


def examples(has: dict[str, Any], catalogue: dict[str, Any]) -> Iterator[tuple[str, dict]]:
    """Yields (title, specification) of each network on which an adapter can be proven that declares this."""
    kinds = has["LAYERS"] or ()
    specs = {f"layer {kind}": networks.tiny(kind) for kind in kinds}
    options = {f"{kind} {option}" for kind in has["OPTIONS"] for option in has["OPTIONS"][kind]}
    specs |= {f"layer {each}": networks.tiny(*each.split()) for each in sorted(options)}
    specs |= {
        name: networks.specify(name, catalogue, narrow=True)
        for name, entry in catalogue.items()
        if "variant_of" not in entry
    }
    for title, spec in specs.items():
        declared = {*kinds, *has["LOSSES"], *has["OPTIMISERS"]}
        is_had = networks.used_records(spec) <= declared and {*spec.get("options", ())} <= options
        if tasks.that_proves(spec) in has["TASKS"] and is_had:
            yield title, spec


def verdict(job: dict[str, Any], spec: dict[str, Any], log: Path) -> str:
    """Says what is wrong with a framework's network; "" where nothing is."""
    found, _ = network.prove(job, spec, "", log)
    return "" if found["status"] == "ok" else _plain(found["reason"])


def time_tiny(job: dict[str, Any], log: Path) -> str:
    """Says what is wrong with timing a tiny network; "" where nothing is."""
    asked = network.worker_job(job, networks.tiny("dense"))
    asked |= {"task": tasks.USUAL, "sampling": SAMPLING}
    outcome = network.run(job, asked, log, machine.cpus_for(network.THREADS), LIMIT_SECONDS)
    return "" if outcome.status == "ok" else _plain(outcome.reason)


def _plain(reason: str) -> str:
    """Returns a reason without the exception's name, where the worker wrote the sentence itself."""
    return reason.removeprefix("NotImplementedError: ")


def _environment_of(loaded: configuration.Configuration, adapter: str) -> str:
    for framework in loaded.frameworks.values():
        for environment in framework["environments"]:
            if loaded.entry_of(environment)["adapter"] == adapter:
                return environment
    raise configuration.ConfigurationError(
        f"config/frameworks.yaml: no framework has the adapter '{adapter}'; write one with an environment for it."
    )


def make_environment(environment: str, loaded: configuration.Configuration) -> None:
    """Makes an environment unless it is there as pinned; ends the program with the reason where it cannot be made."""
    made, asked = every.manifest(environment), Expected(loaded).environment_digest(environment)
    stands = (project.environment(environment) / "bin/python").exists()
    # One that was made for another checkout has no manifest here.
    if stands and (not made.exists() or json.loads(made.read_text())["digest"] == asked):
        return
    code = every.make([environment], "1")
    state = every.describe(environment)
    if code or state["state"] != "ok":
        sys.exit(f"{environment}: {state['reason']}")


if __name__ == "__main__":
    main()
