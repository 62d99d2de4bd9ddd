# The tables and figures of Shi et al. 2016, each by its name.


localrules:
    shi2016_table1,
    shi2016_table2,
    shi2016_table3,
    shi2016_table4,
    shi2016_fig1a,
    shi2016_fig1b,
    shi2016_fig1c,
    shi2016_fig1d,
    shi2016_fig1e,
    shi2016_fig1f,


# What every artefact of shi2016 reads besides its own numbers.
SHI2016 = {**PAPER_INPUTS, **paper_files("shi2016")}


rule shi2016_table1:
    """Table 1 of Shi et al. 2016: the software that was measured, beside the paper's."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_table4.parquet",
        printed="resources/papers/shi2016/table1.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/software.py"],
    output:
        table_files("shi2016_table1"),
    log:
        "logs/papers/shi2016_table1.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shi2016",
        artefact="table1",
    shell:
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact}"
        " --merged {input.merged} --printed {input.printed} --paper {input.paper}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


rule shi2016_table2:
    """Table 2 of Shi et al. 2016: the networks as specified, beside the paper's."""
    input:
        **SHI2016,
        printed="resources/papers/shi2016/table2.csv",
        builder=[
            *TABLE_CODE,
            f"{PAPERS}/networks.py",
            "workflow/scripts/steptime/networks/specification.py",
        ],
    output:
        table_files("shi2016_table2"),
    log:
        "logs/papers/shi2016_table2.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shi2016",
        artefact="table2",
    shell:
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact} --printed {input.printed}"
        " --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


use rule shi2016_table1 as shi2016_table3 with:
    """Table 3 of Shi et al. 2016: the machines that were measured, beside the paper's."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_table4.parquet",
        printed="resources/papers/shi2016/table3.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/machines.py"],
    output:
        table_files("shi2016_table3"),
    log:
        "logs/papers/shi2016_table3.log",
    params:
        paper="shi2016",
        artefact="table3",


use rule shi2016_table1 as shi2016_table4 with:
    """Table 4 of Shi et al. 2016: time per mini-batch of networks and frameworks, beside the paper's."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_table4.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/times.py"],
    output:
        table_files("shi2016_table4"),
    log:
        "logs/papers/shi2016_table4.log",
    params:
        paper="shi2016",
        artefact="table4",


rule shi2016_fig1a:
    """Figure 1(a) of Shi et al. 2016: time per mini-batch of FCN-5 against mini-batch size."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_fig1a.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/sweep.py"],
    output:
        figure_files("shi2016_fig1a"),
    log:
        "logs/papers/shi2016_fig1a.log",
    conda:
        "../../../envs/workflow.yaml"
    params:
        paper="shi2016",
        artefact="fig1a",
    shell:
        "workflow/scripts/launch artefacts.{params.paper} {params.artefact}"
        " --merged {input.merged} --printed {input.printed} --paper {input.paper}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/figures/{params.paper}_{params.artefact} 2>&1 | tee {log} >&2"


use rule shi2016_fig1a as shi2016_fig1b with:
    """Figure 1(b) of Shi et al. 2016: time per mini-batch of FCN-8 against mini-batch size."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_fig1b.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/sweep.py"],
    output:
        figure_files("shi2016_fig1b"),
    log:
        "logs/papers/shi2016_fig1b.log",
    params:
        paper="shi2016",
        artefact="fig1b",


use rule shi2016_fig1a as shi2016_fig1c with:
    """Figure 1(c) of Shi et al. 2016: time per mini-batch of AlexNet against mini-batch size."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_fig1c.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/sweep.py"],
    output:
        figure_files("shi2016_fig1c"),
    log:
        "logs/papers/shi2016_fig1c.log",
    params:
        paper="shi2016",
        artefact="fig1c",


use rule shi2016_fig1a as shi2016_fig1d with:
    """Figure 1(d) of Shi et al. 2016: time per mini-batch of ResNet-50 against mini-batch size."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_fig1d.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/sweep.py"],
    output:
        figure_files("shi2016_fig1d"),
    log:
        "logs/papers/shi2016_fig1d.log",
    params:
        paper="shi2016",
        artefact="fig1d",


use rule shi2016_fig1a as shi2016_fig1e with:
    """Figure 1(e) of Shi et al. 2016: time per mini-batch of LSTM-32 against mini-batch size."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_fig1e.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/sweep.py"],
    output:
        figure_files("shi2016_fig1e"),
    log:
        "logs/papers/shi2016_fig1e.log",
    params:
        paper="shi2016",
        artefact="fig1e",


use rule shi2016_fig1a as shi2016_fig1f with:
    """Figure 1(f) of Shi et al. 2016: time per mini-batch of LSTM-64 against mini-batch size."""
    input:
        **SHI2016,
        merged="results/merged/shi2016_fig1f.parquet",
        printed="resources/papers/shi2016/table4.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/sweep.py"],
    output:
        figure_files("shi2016_fig1f"),
    log:
        "logs/papers/shi2016_fig1f.log",
    params:
        paper="shi2016",
        artefact="fig1f",
