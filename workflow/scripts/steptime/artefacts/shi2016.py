"""Artefacts of Shi et al. 2016: `python -m papers.shi2016 table4 --merged ... --output-prefix ...`."""

from steptime.artefacts import command, kinds

TABLES = {
    "table1": kinds.software_table,
    "table2": kinds.networks_table,
    "table3": kinds.machines_table,
    "table4": kinds.times_table,
}
FIGURES = {f"fig1{part}": kinds.sweep_figure for part in "abcdef"}

if __name__ == "__main__":
    command.main("shi2016", TABLES, FIGURES)
