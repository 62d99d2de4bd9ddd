"""What both sides of the narrow proof must know."""

# The seed of random start values; the seeds of inputs follow it.
SEED = 20161

# Batch normalisation needs several samples where the last maps are 2 x 2; more samples only add work.
BATCH = 8

# float32 rounds w - rate * g to a part of 2**-24 of the larger term, so (w0 - w1) / rate gives g to 2**-24 * (1 + |w| /
# (rate |g|)). At this rate the second term is negligible for every gradient above 1e-6 of its weight; a power of two
# adds no rounding of its own.
RECOVERY_RATE = 2.0**20

# Steps of each call; weights are read after every one. The call of three shows that `run` does all its steps.
CALLS = (1, 3, 1, 1, 1, 1, 1, 1)

# Steps of each group in its turns, where ranks do not wait for one another. The turn of three shows that a group sees
# its own updates.
TURNS = (1, 3, 1)
# Steps of each group when all step at once, the share of the specification's learning rate, and how often this is
# tried. Without a lock, updates are lost where two meet. Groups that begin together may stay in step, so that each
# update meets another: so in each trial, they begin apart by another part of a step.
TOGETHER = 8
TRIALS = 9
SLOW = 2.0**-8
