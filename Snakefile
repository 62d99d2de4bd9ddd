# For `snakemake` in a checkout, and for `snakemake --directory <folder> --snakefile <checkout>/Snakefile`. The workflow itself
# stands where Snakemake's conventions put it, which is also what a module names.
include: "workflow/Snakefile"


ENGINE.make_by_default("all")
