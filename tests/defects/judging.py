"""Which layers of the network gan are its judge's, by name; the others are the generator's."""

JUDGE = ("dense4", "dense5", "dense6")
