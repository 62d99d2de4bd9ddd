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
    names = [f"{row['environment']}, {row['threads']}" for row in right]
    columns = [f"{row['network']}, {row['batch']}" for row in right]
    print_table("environment, threads", names, columns, map(nearest_of, right))
    print()
    planted = defaultdict(list)
    for row in rows:
        if row["defect"] != "right":
            planted[row["defect"], row["environment"]].append(row)
    names, columns = zip(*planted, strict=True)
    print_table("defect", names, columns, map(least_of, planted.values()))


def print_table(title, names, columns, texts) -> None:
    """One line for each name, with the texts in its columns."""
    headings, cells = list(dict.fromkeys(columns)), defaultdict(dict)
    for name, column, text in zip(names, columns, texts, strict=True):
        cells[name][column] = text
    print(f"| {title} | " + " | ".join(headings) + " |")
    print("| --- |" + " --- |" * len(headings))
    for name, found in cells.items():
        print(f"| {name} | " + " | ".join(found.get(each, "") for each in headings) + " |")


def nearest_of(row) -> str:
    """The largest share of a limit, and of which; refused is what should not be."""
    share, what = max(shares(row))
    refused = " REFUSED" if row["refused"] else ""
    lacking = " (first trainer alone)" if row["lacking"] else ""
    return f"{share:.2f} ({what}){refused}{lacking}"


def least_of(rows) -> str:
    """What refuses a defect most clearly, in the network in which that is least clear."""
    found = min((max(shares(row)), row["network"], bool(row["refused"])) for row in rows)
    (share, what), network, refused = found
    if not all(row["refused"] for row in rows):
        return f"PASSES ({', '.join(row['network'] for row in rows if not row['refused'])})"
    # Two digits.
    times = float(f"{share:.2g}")
    return f"{what}, {times:,g} ({network})" if share > 1 else f"updates ({network})"


def shares(row):
    """(share of the limit, what) of all that was held."""
    for kind, what, off, limit in row["held"]:
        gradient = "gradient" if what.startswith("the gradient") else "first change"
        yield (off / limit if off == off else float("inf")), KINDS.get(kind, gradient)
