"""How much else a machine may do while a worker is timed."""

# Beyond these limits every table marks a run: a tenth of a CPU at work for others, a hundredth of the machine's time
# given to other guests. A thread that waits at a barrier for one that lost its CPU loses as much itself. How often the
# kernel took a CPU away is no limit: thread pools that yield (TensorFlow's) make thousands of switches a second on an
# idle machine.
MOST_FOREIGN_CPUS = 0.1
MOST_STEAL_SHARE = 0.01
