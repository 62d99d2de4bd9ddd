# The tables of Dai and Berleant 2019, each by its name.


localrules:
    dai2019_table1,
    dai2019_table2,
    dai2019_principles,


# What every artefact of dai2019 reads besides its own numbers.
DAI2019 = {**PAPER_INPUTS, **paper_files("dai2019")}


rule dai2019_table1:
    """Table I of Dai and Berleant 2019: kinds of hardware by twelve metrics, and what was measured of the same."""
    input:
        **DAI2019,
        merged=merged_if_any(REPORTED),
        peaks=[f"results/peaks/{platform}.json" for platform in PEAKS],
        printed="resources/papers/dai2019/table1.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/hardware.py"],
    output:
        table_files("dai2019_table1"),
    log:
        "logs/papers/dai2019_table1.log",
    conda:
        "../../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.dai2019 table1 --merged {input.merged} --peaks {input.peaks}"
        " --printed {input.printed} --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/dai2019_table1 2>&1 | tee {log} >&2"


use rule shatnawi2018_table2 as dai2019_table2 with:
    """Table II of Dai and Berleant 2019: sixteen frameworks by seven metrics, as printed and as read from ours."""
    input:
        **DAI2019,
        **ABILITIES,
        printed="resources/papers/dai2019/table2.csv",
        builder=[*TABLE_CODE, f"{PAPERS}/properties.py"],
    output:
        table_files("dai2019_table2"),
    log:
        "logs/papers/dai2019_table2.log",
    params:
        paper="dai2019",
        artefact="table2",


rule dai2019_principles:
    """Section I of Dai and Berleant 2019: the seven principles of benchmarking, asked of this workflow."""
    input:
        **DAI2019,
        merged=merged_if_any(REPORTED),
        proofs=ABILITIES["proofs"],
        builder=[*TABLE_CODE, f"{PAPERS}/principles.py"],
    output:
        table_files("dai2019_principles"),
    log:
        "logs/papers/dai2019_principles.log",
    conda:
        "../../../envs/workflow.yaml"
    shell:
        "workflow/scripts/launch artefacts.dai2019 principles --merged {input.merged} --proofs {input.proofs}"
        " --paper {input.paper} --frameworks {input.frameworks} --networks {input.networks}"
        " --output-prefix results/tables/dai2019_principles 2>&1 | tee {log} >&2"
