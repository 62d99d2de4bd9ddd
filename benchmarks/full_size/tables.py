"""The tables of docs/evidence/proofs.md from the rows of this benchmark, in Markdown."""

from collections import defaultdict

# What a distance is of, in few words; the last two are of the end of the samples.
KINDS = {
    "loss": "loss",
    "middle": "median",
    "end loss": "loss*",
    "end": "change*",
}


def print_tables(rows: list[dict]) -> None:
    """Right frameworks' shares of their nearest limit, and what refuses each defect, by what multiple of its limit."""
    right = [row for row in rows if row["defect"] == "right"]
    names = [row["environment"] for row in right]
    columns = [f"{row['network']}, {row['batch']}, {row['threads']}" for row in right]
    print_table("environment", names, columns, map(nearest_of, right))
    planted = defaultdict(dict)
    for row in rows:
        if row["defect"] != "right":
            column = f"{row['network']}, {row['batch']}"
            planted[row["defect"], column][row["environment"]] = row
    environments = list(dict.fromkeys(name for found in planted.values() for name in found))
    print(f"\nIn each place {', '.join(environments)}:\n")
    names, columns = zip(*planted, strict=True)
    texts = [refused_in(found, environments) for found in planted.values()]
    print_table("defect", names, columns, texts)


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
    return f"{share:.2f} {what}{refused}{lacking}"


def refused_in(found, environments) -> str:
    """What refuses a defect on a network most clearly, and by how many times its limit, in each environment.

    Where that is the same in all of them, it stands once.
    """
    told = [_refused_by(found.get(name)) for name in environments]
    kinds = {kind for kind, _ in told if kind}
    if len(set(told)) == 1:
        return " ".join(told[0]).removesuffix(" +")
    if len(kinds) == 1:
        return " ".join([*kinds, *(times for _, times in told)])
    return ", ".join(" ".join(each).strip() for each in told)


def _refused_by(row):
    """(what, how many times its limit): a left out update has none, and neither has what was not run."""
    if row is None:
        return "", "-"
    share, what = max(shares(row))
    if not row["refused"]:
        return "PASSES", f"{share:.2g}"
    return (what, f"{float(f'{share:.2g}'):,g}") if share > 1 else ("updates", "+")


def shares(row):
    """(share of the limit, what) of all that was held."""
    for kind, what, off, limit in row["held"]:
        gradient = "gradient" if what.startswith("the gradient") else "change"
        yield (off / limit if off == off else float("inf")), KINDS.get(kind, gradient)
