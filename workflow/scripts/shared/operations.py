"""What rows of single operations call themselves, where both sides must know it. Plain Python that 3.6 can import."""

# Of sums over ranks: the bytes of a number, the ways, and the role by whether it is the gradients.
BYTES = 4
SUM, COPY = "all-reduce", "copy in memory"
ROLES = {False: "an array", True: "the gradients"}
# Of steps beside a slow rank: the states of all ranks.
ALONE, SLOW = STATES = ("alone", "one slow")
