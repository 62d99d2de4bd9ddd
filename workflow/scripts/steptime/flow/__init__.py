"""What Snakemake is told: inputs, targets, resources, turns, and what is made again. The rules only wire it together."""
