# Tables and figures: a rule for each entry of the catalogues (resources/), under its own name. What its code is follows
# from the imports of its kind's module.


for name, artefact in CATALOGUE.entries.items():

    rule:
        name:
            name
        input:
            **CATALOGUE.inputs_of(artefact),
        output:
            **CATALOGUE.outputs_of(artefact),
        log:
            f"logs/artefacts/{name}.log",
        priority: TURNS.after_steps
        localrule: True
        conda:
            OWN_SOFTWARE
        params:
            job=lambda wildcards, artefact=artefact: CATALOGUE.facts_of(artefact),
            data=lambda wildcards, artefact=artefact: CATALOGUE.data_digest(artefact),
            code=lambda wildcards, kind=artefact.entry["kind"]: CATALOGUE.kind_digest(kind),
            # Made of the inputs, so that Snakemake makes nothing again because of it.
            files=lambda wildcards, input: json.dumps(
                {
                    word: [files] if isinstance(files, str) else files
                    for word, files in input.items()
                }
            ),
        shell:
            '"$STEPTIME_LAUNCH" artefacts.make --job {params.job:q} --files {params.files:q} 2>&1 | tee {log} >&2'

    ENGINE.describe_rule(name, artefact.entry["says"])


# All of one paper: `make paper PAPER=shi2016` asks for it in the paper's own grid.
for owner in dict.fromkeys(artefact.owner for artefact in CATALOGUE.made if artefact.is_of_paper):

    rule:
        name:
            f"make_{owner}"
        input:
            CATALOGUE.plain_outputs(
                [artefact for artefact in CATALOGUE.made if artefact.owner == owner]
            ),

    ENGINE.describe_rule(
        f"make_{owner}", f"Make all tables and figures of {owner} that the grid has cells for."
    )


rule write_report:
    """The report: one page with every table, figure and cell of the run, to open in a browser."""
    input:
        shown=CATALOGUE.plain_outputs(CATALOGUE.made),
        merged=merged(CATALOGUE.every_cell),
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
        job=CATALOGUE.report_job,
        data=CATALOGUE.report_digest,
        code=code_of("page.page"),
    shell:
        '"$STEPTIME_LAUNCH" page.page --job {params.job:q} --merged {input.merged} --output {output}'
        " 2>&1 | tee {log} >&2"
