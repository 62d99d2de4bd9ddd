"""Artefacts of Dai and Berleant 2019: `python -m papers.dai2019 table1 --printed ... --output-prefix ...`."""

from papers import command, hardware, principles, properties


def table1(inputs: command.Inputs) -> command.Table:
    """Kinds of hardware by metric, and what was measured of the same, beside Table I."""
    return hardware.build(
        inputs.measured, inputs.peaks, inputs.printed, inputs.frameworks, inputs.artefact, inputs.page
    )


def table2(inputs: command.Inputs) -> command.Table:
    """Frameworks by metric, as read from those that are installed here, beside Table II."""
    return properties.build(
        inputs.abilities, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact, inputs.page
    )


def seven_principles(inputs: command.Inputs) -> command.Table:
    """The paper's principles of benchmarking, asked of this workflow."""
    return principles.build(inputs.measured, inputs.proofs, inputs.artefact["principles"], inputs.page)


TABLES = {"table1": table1, "table2": table2, "principles": seven_principles}

if __name__ == "__main__":
    command.main("dai2019", TABLES, {})
