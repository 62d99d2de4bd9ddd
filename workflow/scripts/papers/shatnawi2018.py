"""Artefacts of Shatnawi et al. 2018: `python -m papers.shatnawi2018 table3 --printed ... --output-prefix ...`."""

from papers import command, grouped, properties, software, times


def table1(inputs: command.Inputs) -> command.Table:
    """Software actually used, beside Table I."""
    return software.build(
        inputs.measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact, inputs.page
    )


def table2(inputs: command.Inputs) -> command.Table:
    """Properties of the frameworks, as read from those that are installed here, beside Table II."""
    return properties.build(
        inputs.abilities, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact, inputs.page
    )


def table3(inputs: command.Inputs) -> command.Table:
    """Time of a whole training, beside Table III."""
    return times.build(
        inputs.measured_if_any,
        inputs.printed,
        inputs.paper,
        inputs.frameworks,
        inputs.networks,
        inputs.artefact,
        inputs.page,
    )


def bars(inputs: command.Inputs) -> command.Figure:
    """Figures 3 to 5: the times of Table III as bars."""
    return grouped.build(inputs.measured_if_any, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact)


TABLES = {"table1": table1, "table2": table2, "table3": table3}
FIGURES = dict.fromkeys(("fig3", "fig4", "fig5"), bars)

if __name__ == "__main__":
    command.main("shatnawi2018", TABLES, FIGURES)
