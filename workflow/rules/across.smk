# What is asked across the papers: whether their claims hold, whether ours agrees with theirs, what there is.


localrules:
    agreement,
    catalogue,
    findings,


# The artefacts whose cells are times of networks that papers timed too.
TIMED = [name for name in PLAN.artefacts if name.startswith("shi2016_")]
PAPER_DATA = [str(path) for path in sorted(Path("resources/papers").glob("*/*"))]


rule findings:
    """What the five papers claim in words, checked against their own numbers and against ours."""
    input:
        **WORDS,
        merged=[f"results/merged/{name}.parquet" for name in TIMED],
        papers=PAPER_DATA,
        builder=[
            f"{REPORT}/findings.py",
            f"{REPORT}/evidence.py",
            f"{REPORT}/expressions.py",
            "workflow/scripts/steptime/networks/specification.py",
        ],
    output:
        table_files("findings"),
    log:
        "logs/report/findings.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.findings --merged {input.merged} --papers resources/papers"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/findings 2>&1 | tee {log} >&2"


rule agreement:
    """The papers' order of the frameworks against ours, as a table, and our times against theirs, as a figure."""
    input:
        **WORDS,
        merged=merged_if_any(REPORTED),
        papers=PAPER_DATA,
        builder=[
            *FIGURE_CODE,
            f"{REPORT}/agreement.py",
            f"{REPORT}/evidence.py",
            f"{REPORT}/expressions.py",
            f"{REPORT}/scatter.py",
        ],
    output:
        table_files("agreement"),
        figure_files("agreement"),
    log:
        "logs/report/agreement.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.agreement --merged {input.merged} --papers resources/papers"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --table-prefix results/tables/agreement --figure-prefix results/figures/agreement 2>&1 | tee {log} >&2"


rule catalogue:
    """Every table and figure of the papers by name, with its state in the grid, and why some cannot be made."""
    input:
        **WORDS,
        papers=PAPER_DATA,
        builder=[f"{REPORT}/catalogue.py", f"{REPORT}/evidence.py", f"{REPORT}/expressions.py"],
    output:
        table_files("catalogue"),
    log:
        "logs/report/catalogue.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        targets=targets_of_papers,
        grid=CONFIGURATION.grid_name,
    shell:
        "workflow/scripts/launch artefacts.catalogue --targets {params.targets:q} --grid {params.grid:q}"
        " --papers resources/papers --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/catalogue 2>&1 | tee {log} >&2"


# What `rule all` asks for: the artefacts of this file whose cells the grid has.
ACROSS = [*rules.catalogue.output, *rules.findings.output]
if REPORTED_CELLS:
    ACROSS += [*rules.agreement.output]
