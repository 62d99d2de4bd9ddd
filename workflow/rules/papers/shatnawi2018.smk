# The tables and figures of Shatnawi et al. 2018, each by its name.


localrules:
    shatnawi2018_table1,
    shatnawi2018_table2,
    shatnawi2018_table3,
    shatnawi2018_fig3,
    shatnawi2018_fig4,
    shatnawi2018_fig5,


# What every artefact of shatnawi2018 reads besides its own numbers.
SHATNAWI2018 = {**PAPER_INPUTS, **paper_files("shatnawi2018")}


use rule shi2016_table1 as shatnawi2018_table1 with:
    """Table I of Shatnawi et al. 2018: the frameworks' versions, ours beside the paper's."""
    input:
        **SHATNAWI2018,
        merged=merged_if_any(REPORTED),
        printed="resources/papers/shatnawi2018/table1.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/software.py"],
    output:
        table_files("shatnawi2018_table1"),
    log:
        "logs/papers/shatnawi2018_table1.log",
    params:
        paper="shatnawi2018",
        artefact="table1",


rule shatnawi2018_table2:
    """Table II of Shatnawi et al. 2018: what the frameworks can do, as printed and as read from ours."""
    input:
        **SHATNAWI2018,
        **ABILITIES,
        printed="resources/papers/shatnawi2018/table2.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/properties.py"],
    output:
        table_files("shatnawi2018_table2"),
    log:
        "logs/papers/shatnawi2018_table2.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shatnawi2018",
        artefact="table2",
    shell:
        "workflow/scripts/steptime papers.{params.paper} {params.artefact} --merged {input.merged}"
        " --proofs {input.proofs} --metadata {input.metadata} --printed {input.printed} --paper {input.paper}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


# Table III and its figures are of whole trainings: they have no cells until a grid has networks of these data sets and
# config/artefacts.yaml says which of them are theirs.
rule shatnawi2018_table3:
    """Table III of Shatnawi et al. 2018: time of a whole training on MNIST and CIFAR-10."""
    input:
        **SHATNAWI2018,
        merged=merged_if_any("shatnawi2018_table3"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/times.py"],
    output:
        table_files("shatnawi2018_table3"),
    log:
        "logs/papers/shatnawi2018_table3.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shatnawi2018",
        artefact="table3",
        merged=lambda wildcards, input: f"--merged {input.merged}" if input.merged else "",
        folder="tables",
    shell:
        "workflow/scripts/steptime papers.{params.paper} {params.artefact} {params.merged}"
        " --printed {input.printed} --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/{params.folder}/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


use rule shatnawi2018_table3 as shatnawi2018_fig3 with:
    """Figure 3 of Shatnawi et al. 2018: time of a whole training on MNIST by threads."""
    input:
        **SHATNAWI2018,
        merged=merged_if_any("shatnawi2018_table3"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/grouped.py"],
    output:
        figure_files("shatnawi2018_fig3"),
    log:
        "logs/papers/shatnawi2018_fig3.log",
    params:
        paper="shatnawi2018",
        artefact="fig3",
        merged=lambda wildcards, input: f"--merged {input.merged}" if input.merged else "",
        folder="figures",


use rule shatnawi2018_table3 as shatnawi2018_fig4 with:
    """Figure 4 of Shatnawi et al. 2018: time of a whole training on CIFAR-10 by threads."""
    input:
        **SHATNAWI2018,
        merged=merged_if_any("shatnawi2018_table3"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/grouped.py"],
    output:
        figure_files("shatnawi2018_fig4"),
    log:
        "logs/papers/shatnawi2018_fig4.log",
    params:
        paper="shatnawi2018",
        artefact="fig4",
        merged=lambda wildcards, input: f"--merged {input.merged}" if input.merged else "",
        folder="figures",


use rule shatnawi2018_table3 as shatnawi2018_fig5 with:
    """Figure 5 of Shatnawi et al. 2018: time of a whole training on a GPU."""
    input:
        **SHATNAWI2018,
        merged=merged_if_any("shatnawi2018_table3"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/grouped.py"],
    output:
        figure_files("shatnawi2018_fig5"),
    log:
        "logs/papers/shatnawi2018_fig5.log",
    params:
        paper="shatnawi2018",
        artefact="fig5",
        merged=lambda wildcards, input: f"--merged {input.merged}" if input.merged else "",
        folder="figures",
