"""The tables of docs/reference/measuring.md from the rows of this benchmark, in Markdown."""

from collections import defaultdict

# What a distance is of, in few words.
KINDS = {
    "loss": "loss",
    "middle": "median gradient",
    "next loss": "loss after a step",
    "end loss": "loss, end",
    "end": "change, end",
}


def print_tables(rows: list[dict]) -> None:
    """Right frameworks' shares of their nearest limit, and what refuses each defect, by what multiple of its limit."""
    right = [row for row in rows if row["defect"] == "right"]
    title = "environment, threads"
    print_table(title, right, lambda row: f"{row['environment']}, {row['threads']}", nearest_of)
    planted = [row for row in rows if row["defect"] != "right"]
    for network in dict.fromkeys(row["network"] for row in planted):
        print(f"\n{network}:\n")
        of_network = [row for row in planted if row["network"] == network]
        print_table("defect", of_network, lambda row: row["defect"], verdict_of, "environment")


def print_table(title, rows, name_of, cell_of, column="network") -> None:
    """One line for each name, and a column for each network or environment."""
    columns = list(dict.fromkeys(heading(row, column) for row in rows))
    cells = defaultdict(dict)
    for row in rows:
        cells[name_of(row)][heading(row, column)] = cell_of(row)
    print(f"| {title} | " + " | ".join(columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for name, found in cells.items():
        print(f"| {name} | " + " | ".join(found.get(each, "") for each in columns) + " |")


def heading(row, column):
    """A network with its mini-batch, or an environment."""
    return f"{row['network']}, {row['batch']}" if column == "network" else row["environment"]


def nearest_of(row) -> str:
    """The largest share of a limit, and of which; refused is what should not be."""
    share, what = max(shares(row))
    refused = " REFUSED" if row["refused"] else ""
    lacking = " (first trainer alone)" if row["lacking"] else ""
    return f"{share:.2f} ({what}){refused}{lacking}"


def verdict_of(row) -> str:
    """What refuses a defect most clearly."""
    if not row["refused"]:
        return "PASSES"
    share, what = max(shares(row))
    if share > 1:
        return f"{what}, {share:.3g} times"
    return "updates"


def shares(row):
    """(share of the limit, what) of all that was held."""
    for kind, what, off, limit in row["held"]:
        gradient = "gradient" if what.startswith("the gradient") else "first change"
        yield (off / limit if off == off else float("inf")), KINDS.get(kind, gradient)
