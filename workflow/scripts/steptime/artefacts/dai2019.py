"""Artefacts of Dai and Berleant 2019: `python -m papers.dai2019 table1 --printed ... --output-prefix ...`."""

from steptime.artefacts import command, kinds

TABLES = {
    "table1": kinds.hardware_table,
    "table2": kinds.properties_table,
    "principles": kinds.principles_table,
}

if __name__ == "__main__":
    command.main("dai2019", TABLES, {})
