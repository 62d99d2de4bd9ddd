"""Artefacts of Wünsche 2018: `python -m papers.wuensche2018 table1 --merged ... --output-prefix ...`."""

from steptime.artefacts import command, kinds

TABLES = {"table1": kinds.times_table, "transfer": kinds.transfer_table}
FIGURES = {"fig2": kinds.scaling_figure, "fig4": kinds.topology_figure}

if __name__ == "__main__":
    command.main("wuensche2018", TABLES, FIGURES)
