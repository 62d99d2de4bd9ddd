# steptime: the time per mini-batch of the same network in many deep-learning frameworks. `snakemake
# --list-target-rules` is the catalogue of what can be asked for by name.
from snakemake.utils import min_version

min_version("9.27")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/engine.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/platforms.smk"


wildcard_constraints:
    # The shards of other platforms are files like any other: no rule of this run makes them, or makes them again.
    platform=choice(platform for platform, reason in ELSEWHERE.items() if reason is None),
    environment=choice(known_environments()),
    mode=choice(
        {mode for name in known_environments() for mode in CONFIGURATION.entry_of(name)["modes"]}
    ),
    network=choice(CONFIGURATION.networks),
    dataset=choice(CONFIGURATION.datasets),
    artefact=choice(CONFIGURATION.artefacts),
    batch=r"\d+",
    threads=r"\d+",
    devices=r"\d+",
    repeat=r"\d+",


include: "workflow/rules/environments.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/prove.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/merge.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/papers.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/across.smk"


rule all:
    """Every table and figure that the grid has cells for, and the report of them."""
    default_target: True
    input:
        # As plain paths: marked ones would stand in Snakemake's own report as if this rule had made them.
        list(map(str, [*every_artefact(), *REPORTS, *ACROSS, *rules.write_report.output])),


mark_for_reports()


onstart:
    begin_run()


onsuccess:
    end_run(succeeded=True)


onerror:
    end_run(succeeded=False)
