"""Artefacts of Wünsche 2018: `python -m papers.wuensche2018 table1 --merged ... --output-prefix ...`."""

from papers import command, scaling, times, topology, transfer


def table1(inputs: command.Inputs) -> command.Table:
    """Time per mini-batch of a fully connected network by threads, beside Table I."""
    return times.build(
        inputs.measured_if_any,
        inputs.printed,
        inputs.paper,
        inputs.frameworks,
        inputs.networks,
        inputs.artefact,
        inputs.page,
    )


def transfer_model(inputs: command.Inputs) -> command.Table:
    """The example of section IV-B as a calculation."""
    return transfer.build(inputs.printed, inputs.peaks, inputs.page)


def figure2(inputs: command.Inputs) -> command.Figure:
    """What a second GPU saves, as the text states it."""
    return scaling.build(inputs.measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact)


def figure4(inputs: command.Inputs) -> command.Figure:
    """The machine that is really there, in place of the paper's example."""
    return topology.build(inputs.topologies, inputs.artefact)


TABLES = {"table1": table1, "transfer": transfer_model}
FIGURES = {"fig2": figure2, "fig4": figure4}

if __name__ == "__main__":
    command.main("wuensche2018", TABLES, FIGURES)
