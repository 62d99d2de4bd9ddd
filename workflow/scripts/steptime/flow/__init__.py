"""What rules give Snakemake: inputs, targets, resources, turns, and what is made again. Rules only wire it together."""
