# Tables and figures: a rule for each entry of the catalogues (resources/), under its own name. What its code is follows
# from the imports of its kind's module.


for name, artefact in CATALOGUE.items():

    rule:
        name:
            name
        input:
            **inputs_of(artefact),
        output:
            **outputs_of(artefact),
        log:
            f"logs/artefacts/{name}.log",
        priority: AFTER_STEPS
        localrule: True
        conda:
            OWN_SOFTWARE
        params:
            job=lambda wildcards, artefact=artefact: facts_of(artefact),
            data=lambda wildcards, artefact=artefact: data_digest(artefact),
            code=lambda wildcards, kind=artefact.entry["kind"]: kind_digest(kind),
            # Made of the inputs, so that Snakemake makes nothing again because of it.
            files=lambda wildcards, input: json.dumps(
                {
                    word: [files] if isinstance(files, str) else files
                    for word, files in input.items()
                }
            ),
        shell:
            '"$STEPTIME_LAUNCH" artefacts.make --job {params.job:q} --files {params.files:q} 2>&1 | tee {log} >&2'

    describe_rule(name, artefact.entry["says"])


# All of one paper: `make paper PAPER=shi2016` asks for it in the paper's own grid.
for owner in dict.fromkeys(artefact.owner for artefact in MADE if artefact.is_of_paper):

    rule:
        name:
            f"make_{owner}"
        input:
            plain_outputs([artefact for artefact in MADE if artefact.owner == owner]),

    describe_rule(
        f"make_{owner}", f"Make all tables and figures of {owner} that the grid has cells for."
    )


rule write_report:
    """The report: one page with every table, figure and cell of the run, to open in a browser."""
    input:
        shown=plain_outputs(MADE),
        merged=merged(EVERY_CELL),
    output:
        report(
            "results/report/index.html",
            caption=str(ROOT / "workflow/report/page.rst"),
            category="steptime",
        ),
    log:
        "logs/report/index.log",
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        job=report_job,
        data=lambda wildcards: digests.digest(
            list(map(file_digest, [*PAPER_FILES, *sum(WORDS.values(), [])]))
        ),
        code=lambda wildcards: digests.program_digest("steptime.page.page"),
    shell:
        '"$STEPTIME_LAUNCH" page.page --job {params.job:q} --merged {input.merged} --output {output}'
        " 2>&1 | tee {log} >&2"
