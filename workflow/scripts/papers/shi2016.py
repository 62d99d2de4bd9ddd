"""Artefacts of Shi et al. 2016: `python -m papers.shi2016 table4 --merged ... --output-prefix ...`."""

from papers import command, machines, networks, software, sweep, times


def table1(inputs: command.Inputs) -> command.Table:
    """Software actually used, beside Table 1."""
    return software.build(
        inputs.measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact, inputs.page
    )


def table2(inputs: command.Inputs) -> command.Table:
    """Networks as specified, beside Table 2."""
    return networks.build(inputs.networks, inputs.printed, inputs.paper, inputs.page)


def table3(inputs: command.Inputs) -> command.Table:
    """Machines actually used, beside Table 3."""
    return machines.build(inputs.measured, inputs.printed, inputs.paper, inputs.page)


def table4(inputs: command.Inputs) -> command.Table:
    """Time per mini-batch, beside Table 4."""
    return times.build(
        inputs.measured,
        inputs.printed,
        inputs.paper,
        inputs.frameworks,
        inputs.networks,
        inputs.artefact,
        inputs.page,
    )


def figure1(inputs: command.Inputs) -> command.Figure:
    """Time per mini-batch against mini-batch size of one network, with Table 4's GPU columns as the
    paper's numbers.
    """
    return sweep.build(
        inputs.measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.networks, inputs.artefact
    )


TABLES = {"table1": table1, "table2": table2, "table3": table3, "table4": table4}
FIGURES = {f"fig1{part}": figure1 for part in "abcdef"}

if __name__ == "__main__":
    command.main("shi2016", TABLES, FIGURES)
