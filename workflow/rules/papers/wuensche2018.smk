# The tables and figures of Wünsche 2018 (drafts a and b), each by its name; figures are numbered as in draft a.


localrules:
    wuensche2018_table1,
    wuensche2018_transfer,
    wuensche2018_fig2,
    wuensche2018_fig4,


# What every artefact of wuensche2018 reads besides its own numbers.
WUENSCHE2018 = {**PAPER_INPUTS, **paper_files("wuensche2018")}

TOPOLOGIES = within_reach("topology", (cell.platform for cell in REPORTED_CELLS))


use rule shi2016_table1 as wuensche2018_table1 with:
    """Table I of Wünsche 2018: time per mini-batch of a fully connected network by threads."""
    input:
        **WUENSCHE2018,
        merged=merged_if_any(REPORTED),
        printed="resources/papers/wuensche2018/table1.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/times.py"],
    output:
        table_files("wuensche2018_table1"),
    log:
        "logs/papers/wuensche2018_table1.log",
    params:
        paper="wuensche2018",
        artefact="table1",


rule wuensche2018_transfer:
    """Section IV-B of Wünsche 2018: transfer to several devices as a calculation, with this machine's bandwidth too."""
    input:
        **WUENSCHE2018,
        peaks=[f"results/peaks/{platform}.json" for platform in PEAKS],
        printed="resources/papers/wuensche2018/transfer.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/transfer.py"],
    output:
        table_files("wuensche2018_transfer"),
    log:
        "logs/papers/wuensche2018_transfer.log",
    conda:
        "../../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.wuensche2018 transfer --peaks {input.peaks} --printed {input.printed}"
        " --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/wuensche2018_transfer 2>&1 | tee {log} >&2"


use rule shi2016_fig1a as wuensche2018_fig2 with:
    """Figure 2 of Wünsche 2018, draft a (1 of draft b): what a second device saves."""
    input:
        **WUENSCHE2018,
        merged=merged_if_any(REPORTED),
        printed="resources/papers/wuensche2018/scaling.csv",
        builder=[*FIGURE_CODE, f"{PAPERS}/scaling.py"],
    output:
        figure_files("wuensche2018_fig2"),
    log:
        "logs/papers/wuensche2018_fig2.log",
    params:
        paper="wuensche2018",
        artefact="fig2",


rule topology:
    """Write down how a platform's machine is built."""
    output:
        "results/topology/{platform}.json",
    log:
        "logs/topology/{platform}.log",
    conda:
        "../../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(),
    params:
        code=digests.program_digest("steptime.machine.topology"),
    shell:
        "workflow/scripts/launch machine.topology --output {output} 2>&1 | tee {log} >&2"


rule wuensche2018_fig4:
    """Figure 4 of Wünsche 2018, draft a (3 of draft b): the processing units of the machine that is really there."""
    input:
        **WUENSCHE2018,
        topologies=[f"results/topology/{platform}.json" for platform in TOPOLOGIES],
        builder=[*FIGURE_CODE, f"{PAPERS}/topology.py"],
    output:
        figure_files("wuensche2018_fig4"),
    log:
        "logs/papers/wuensche2018_fig4.log",
    conda:
        "../../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.wuensche2018 fig4 --topologies {input.topologies} --paper {input.paper}"
        " --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/figures/wuensche2018_fig4 2>&1 | tee {log} >&2"
