"""Artefacts of Shatnawi et al. 2018: `python -m papers.shatnawi2018 table3 --printed ... --output-prefix ...`."""

from steptime.artefacts import command, kinds

TABLES = {
    "table1": kinds.software_table,
    "table2": kinds.properties_table,
    "table3": kinds.trainings_table,
    "epochs": kinds.epochs_table,
}
FIGURES = {
    **dict.fromkeys(("fig1", "fig2"), kinds.samples_figure),
    **dict.fromkeys(("fig3", "fig4", "fig5"), kinds.bars_figure),
    "curves": kinds.curves_figure,
    "resources": kinds.resources_figure,
}

if __name__ == "__main__":
    command.main("shatnawi2018", TABLES, FIGURES)
