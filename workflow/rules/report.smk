# What belongs to no paper: how near each framework is to the specification, to the machine's peak, and to its start.


localrules:
    proofs,
    efficiency,
    startup,
    ratios,
    timeline,
    zoo,
    history,
    write_report,


REPORT = "workflow/scripts/steptime/artefacts"

WORDS = {
    "frameworks": "resources/papers/frameworks.yaml",
    "networks": "config/networks.yaml",
    "code": [
        f"{REPORT}/common.py",
        f"{PAPERS}/inputs.py",
        "workflow/scripts/steptime/render/words.py",
        "workflow/scripts/steptime/merge/intervals.py",
        "workflow/scripts/steptime/merge/summary.py",
        "workflow/scripts/worker/statistics.py",
        *TABLE_CODE,
    ],
}


rule peak:
    """Measure what a platform's machine itself reaches at each thread count, alone on its host."""
    output:
        "results/peaks/{platform}.json",
    log:
        "logs/peaks/{platform}.log",
    conda:
        "../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(),
        host=100,
    params:
        threads=lambda wildcards: sorted(
            {cell.threads for cell in REPORTED_CELLS if cell.platform == wildcards.platform}
        ),
        code=digests.program_digest("steptime.machine.peak"),
    shell:
        "workflow/scripts/launch machine.peak --threads {params.threads} --output {output} 2>&1 | tee {log} >&2"


rule proofs:
    """The proofs that every framework trains the same network, as a table."""
    input:
        **WORDS,
        proofs=[f"results/proofs/{name}.details.json" for name in PROVEN],
        builder=[f"{REPORT}/proofs.py", "workflow/scripts/steptime/networks/specification.py"],
    output:
        table_files("proofs"),
    log:
        "logs/report/proofs.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        owners=json.dumps({name: CONFIGURATION.framework_of(name) for name in grid_environments()}),
    shell:
        "workflow/scripts/launch artefacts.proofs --proofs {input.proofs} --owners {params.owners:q}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/proofs 2>&1 | tee {log} >&2"


rule efficiency:
    """The share of the machine's peak of every network and framework, as a table and a roofline figure."""
    input:
        **WORDS,
        merged=f"results/merged/{REPORTED}.parquet",
        peaks=[f"results/peaks/{platform}.json" for platform in PEAKS],
        builder=[
            *FIGURE_CODE,
            f"{REPORT}/efficiency.py",
            f"{REPORT}/roofline.py",
            "workflow/scripts/steptime/networks/counts.py",
            "workflow/scripts/steptime/networks/specification.py",
        ],
    output:
        table_files("efficiency"),
        figure_files("efficiency"),
    log:
        "logs/report/efficiency.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.efficiency --merged {input.merged} --peaks {input.peaks}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --table-prefix results/tables/efficiency --figure-prefix results/figures/efficiency 2>&1 | tee {log} >&2"


rule ratios:
    """How much slower every framework is than the fastest, with intervals, as a table and a forest plot."""
    input:
        **WORDS,
        merged=f"results/merged/{REPORTED}.parquet",
        builder=[*FIGURE_CODE, f"{REPORT}/ratios.py", f"{REPORT}/forest.py"],
    output:
        table_files("ratios"),
        figure_files("ratios"),
    log:
        "logs/report/ratios.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.ratios --merged {input.merged}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --table-prefix results/tables/ratios --figure-prefix results/figures/ratios 2>&1 | tee {log} >&2"


rule startup:
    """What a start costs in every network and framework, as a table and a figure."""
    input:
        **WORDS,
        shards=lambda wildcards: shards_at_hand([cell.key for cell in REPORTED_CELLS]),
        builder=[
            *FIGURE_CODE,
            f"{REPORT}/startup.py",
            f"{REPORT}/bars.py",
        ],
    output:
        table_files("startup"),
        figure_files("startup"),
    log:
        "logs/report/startup.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        artefact=REPORTED,
        # The grid names the shards again inside the program: thousands of paths do not fit on a command line.
        config=json.dumps(config, sort_keys=True),
    shell:
        "workflow/scripts/launch artefacts.startup --artefact {params.artefact} --config {params.config:q}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --table-prefix results/tables/startup --figure-prefix results/figures/startup 2>&1 | tee {log} >&2"


rule timeline:
    """When each cell of the grid was measured, and whether any two of one machine overlapped, as a figure."""
    input:
        frameworks=WORDS["frameworks"],
        networks=WORDS["networks"],
        # They come after the shards; to name each of thousands here again would take Snakemake a second.
        merged=[f"results/merged/{artefact}.parquet" for artefact in PLAN.artefacts],
        builder=[*FIGURE_CODE, f"{REPORT}/common.py", f"{REPORT}/timeline.py"],
    output:
        figure_files("timeline"),
    log:
        "logs/report/timeline.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        config=json.dumps(config, sort_keys=True),
    shell:
        "workflow/scripts/launch artefacts.timeline --config {params.config:q}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --figure-prefix results/figures/timeline 2>&1 | tee {log} >&2"


rule zoo:
    """Every framework beside every network: time, share of the peak, start, memory, or why there is none."""
    input:
        **WORDS,
        merged=f"results/merged/{REPORTED}.parquet",
        peaks=[f"results/peaks/{platform}.json" for platform in PEAKS],
        builder=[
            *FIGURE_CODE,
            f"{REPORT}/efficiency.py",
            f"{REPORT}/startup.py",
            f"{REPORT}/tiles.py",
            f"{REPORT}/zoo.py",
            "workflow/scripts/steptime/networks/counts.py",
            "workflow/scripts/steptime/networks/specification.py",
        ],
    output:
        table_files("zoo"),
        figure_files("zoo"),
    log:
        "logs/report/zoo.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        artefact=REPORTED,
        # The grid names the shards again inside the program: thousands of paths do not fit on a command line.
        config=json.dumps(config, sort_keys=True),
    shell:
        "workflow/scripts/launch artefacts.zoo --artefact {params.artefact} --config {params.config:q}"
        " --merged {input.merged} --peaks {input.peaks} --frameworks {input.frameworks} --networks {input.networks}"
        " --table-prefix results/tables/zoo --figure-prefix results/figures/zoo 2>&1 | tee {log} >&2"


rule history:
    """The same networks through the versions of each framework, as a table and a figure."""
    input:
        **WORDS,
        merged=f"results/merged/{REPORTED}.parquet",
        builder=[*FIGURE_CODE, f"{REPORT}/history.py"],
    output:
        table_files("history"),
        figure_files("history"),
    log:
        "logs/report/history.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.history --merged {input.merged}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --table-prefix results/tables/history --figure-prefix results/figures/history 2>&1 | tee {log} >&2"


# What `rule all` asks for: the artefacts of this file whose cells the grid has.
REPORTS = [*rules.proofs.output, *rules.timeline.output]
if REPORTED_CELLS:
    REPORTS += [
        *rules.efficiency.output,
        *rules.ratios.output,
        *rules.startup.output,
        *rules.zoo.output,
    ]
if len(grid_environments()) > len(
    {CONFIGURATION.framework_of(name) for name in grid_environments()}
):
    REPORTS += [*rules.history.output]


rule write_report:
    """The report: one page with every table, figure and cell of the run, to open in a browser."""
    input:
        **WORDS,
        shown=every_shown_file,
        merged=[f"results/merged/{artefact}.parquet" for artefact in PLAN.artefacts],
        papers=sorted(
            str(path.relative_to(ROOT)) for path in ROOT.glob("resources/papers/*/paper.yaml")
        ),
        builder=[
            f"workflow/scripts/steptime/page/{name}"
            for name in "page.py cells.py embed.py explorer.py report.html.jinja page.css page.js".split()
        ],
    output:
        "results/report/index.html",
    log:
        "logs/report/index.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        job=report_job,
    shell:
        "workflow/scripts/launch page.page --job {params.job:q} --merged {input.merged} --papers {input.papers}"
        " --frameworks {input.frameworks} --networks {input.networks} --output {output} 2>&1 | tee {log} >&2"
