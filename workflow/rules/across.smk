# What is asked across the papers: whether their claims hold, whether ours agrees with theirs, what there is.


localrules:
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
        builder=[f"{REPORT}/findings.py", f"{REPORT}/expressions.py", "workflow/scripts/worker/networks.py"],
    output:
        table_files("findings"),
    log:
        "logs/report/findings.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "workflow/scripts/steptime report.findings --merged {input.merged} --papers resources/papers"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/findings 2>&1 | tee {log} >&2"


# What `rule all` asks for: the artefacts of this file.
ACROSS = [*rules.findings.output]
