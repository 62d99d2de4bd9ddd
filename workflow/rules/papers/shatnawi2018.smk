# The tables and figures of Shatnawi et al. 2018, each by its name.


localrules:
    shatnawi2018_table1,
    shatnawi2018_table2,
    shatnawi2018_table3,
    shatnawi2018_fig1,
    shatnawi2018_fig2,
    shatnawi2018_fig3,
    shatnawi2018_fig4,
    shatnawi2018_fig5,
    shatnawi2018_epochs,
    shatnawi2018_curves,
    shatnawi2018_resources,


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
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact} --merged {input.merged}"
        " --proofs {input.proofs} --metadata {input.metadata} --printed {input.printed} --paper {input.paper}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


rule shatnawi2018_fig1:
    """Figure 1 of Shatnawi et al. 2018: sample images of MNIST's digits, from the images that are trained on here."""
    input:
        **SHATNAWI2018,
        images=images_of("mnist"),
        builder=[*FIGURE_CODE, f"{PAPERS}/samples.py"],
    output:
        figure_files("shatnawi2018_fig1"),
    log:
        "logs/papers/shatnawi2018_fig1.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shatnawi2018",
        artefact="fig1",
    shell:
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact} --images {input.images} --paper {input.paper}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/figures/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


use rule shatnawi2018_fig1 as shatnawi2018_fig2 with:
    """Figure 2 of Shatnawi et al. 2018: sample images of CIFAR-10's classes, from the images that are trained on here."""
    input:
        **SHATNAWI2018,
        images=images_of("cifar10"),
        builder=[*FIGURE_CODE, f"{PAPERS}/samples.py"],
    output:
        figure_files("shatnawi2018_fig2"),
    log:
        "logs/papers/shatnawi2018_fig2.log",
    params:
        paper="shatnawi2018",
        artefact="fig2",


# Table III and its figures are of whole trainings; without `training` in the grid they have the printed numbers alone.
rule shatnawi2018_table3:
    """Table III of Shatnawi et al. 2018: time of a whole training on MNIST and CIFAR-10."""
    input:
        **SHATNAWI2018,
        trained=trainings_of(),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/times.py", f"{PAPERS}/trained.py"],
    output:
        table_files("shatnawi2018_table3"),
    log:
        "logs/papers/shatnawi2018_table3.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shatnawi2018",
        artefact="table3",
        trained=lambda wildcards, input: f"--trained {input.trained}" if input.trained else "",
        folder="tables",
    shell:
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact} {params.trained}"
        " --printed {input.printed} --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/{params.folder}/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


use rule shatnawi2018_table3 as shatnawi2018_fig3 with:
    """Figure 3 of Shatnawi et al. 2018: time of a whole training on MNIST by threads."""
    input:
        **SHATNAWI2018,
        trained=trainings_of(base="mnist", device="cpu"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/grouped.py", f"{PAPERS}/trained.py"],
    output:
        figure_files("shatnawi2018_fig3"),
    log:
        "logs/papers/shatnawi2018_fig3.log",
    params:
        paper="shatnawi2018",
        artefact="fig3",
        trained=lambda wildcards, input: f"--trained {input.trained}" if input.trained else "",
        folder="figures",


use rule shatnawi2018_table3 as shatnawi2018_fig4 with:
    """Figure 4 of Shatnawi et al. 2018: time of a whole training on CIFAR-10 by threads."""
    input:
        **SHATNAWI2018,
        trained=trainings_of(base="cifar10", device="cpu"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/grouped.py", f"{PAPERS}/trained.py"],
    output:
        figure_files("shatnawi2018_fig4"),
    log:
        "logs/papers/shatnawi2018_fig4.log",
    params:
        paper="shatnawi2018",
        artefact="fig4",
        trained=lambda wildcards, input: f"--trained {input.trained}" if input.trained else "",
        folder="figures",


use rule shatnawi2018_table3 as shatnawi2018_fig5 with:
    """Figure 5 of Shatnawi et al. 2018: time of a whole training on a GPU."""
    input:
        **SHATNAWI2018,
        trained=trainings_of(device="gpu"),
        printed="resources/papers/shatnawi2018/table3.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/grouped.py", f"{PAPERS}/trained.py"],
    output:
        figure_files("shatnawi2018_fig5"),
    log:
        "logs/papers/shatnawi2018_fig5.log",
    params:
        paper="shatnawi2018",
        artefact="fig5",
        trained=lambda wildcards, input: f"--trained {input.trained}" if input.trained else "",
        folder="figures",


rule shatnawi2018_epochs:
    """Epochs and seconds to an accuracy, by seeds: what Shatnawi et al. 2018 chose and did not print."""
    input:
        **SHATNAWI2018,
        trained=TRAINED,
        builder=[*TABLE_CODE, f"{PAPERS}/epochs.py", f"{PAPERS}/trained.py"],
    output:
        table_files("shatnawi2018_epochs"),
    log:
        "logs/papers/shatnawi2018_epochs.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shatnawi2018",
        artefact="epochs",
        folder="tables",
    shell:
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact} --trained {input.trained}"
        " --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/{params.folder}/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


use rule shatnawi2018_epochs as shatnawi2018_curves with:
    """Accuracy against the time of training, of the networks of Shatnawi et al. 2018."""
    input:
        **SHATNAWI2018,
        trained=TRAINED,
        builder=[*FIGURE_CODE, f"{PAPERS}/curves.py", f"{PAPERS}/trained.py"],
    output:
        figure_files("shatnawi2018_curves"),
    log:
        "logs/papers/shatnawi2018_curves.log",
    params:
        paper="shatnawi2018",
        artefact="curves",
        folder="figures",


use rule shatnawi2018_epochs as shatnawi2018_resources with:
    """CPUs, memory and GPUs over the time of training, which Shatnawi et al. 2018 compared in words."""
    input:
        **SHATNAWI2018,
        trained=TRAINED,
        builder=[*FIGURE_CODE, f"{PAPERS}/resources.py", f"{PAPERS}/trained.py"],
    output:
        figure_files("shatnawi2018_resources"),
    log:
        "logs/papers/shatnawi2018_resources.log",
    params:
        paper="shatnawi2018",
        # The name begins a path among the inputs, and is none.
        artefact=lambda wildcards: "resources",
        folder="figures",
