"""The timing loop against networks whose true step time is known: a clock that only moves when a step is run."""

import math
import random
import time

import pytest

from shared.statistics import median_interval
from worker import building, timing, undisturbed


class Network:
    """A stand-in network: the clock moves by `seconds(step)` with each step, and the loss falls."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.now = 0.0
        self.step = 0

    def run(self, steps):
        for _ in range(steps):
            self.now += self.seconds(self.step)
            self.step += 1
        return 1.0 / self.step

    def clock(self):
        return self.now


def measured(network, budget=10.0, precision=0.02, least=5):
    warm = timing.warm_up(network.run, network.clock, budget)
    samples = []
    asked = warm["per_block"], budget, precision, least
    timing.sample(network.run, network.clock, *asked, lambda *each: samples.append(each))
    return warm["steps"], warm["per_block"], samples


def test_slow_steps_are_blocks_of_one():
    steps, per_block, samples = measured(Network(lambda step: 4.0))
    assert (steps, per_block) == (3, 1)
    assert samples == [(1, 4.0)] * 5


def test_fast_steps_are_gathered_into_blocks():
    _, per_block, samples = measured(Network(lambda step: 0.0003))
    assert timing.BLOCK_SECONDS <= per_block * 0.0003 < 2 * timing.BLOCK_SECONDS
    assert sum(steps * seconds for steps, seconds in samples) >= timing.LEAST_SECONDS
    assert all(seconds == pytest.approx(0.0003) for _, seconds in samples)


def test_warm_up_lasts_as_long_as_steps_get_faster():
    """A step that halves its time until the 7th: no fixed count of warm-up steps is right for it and for others."""
    steps, _, samples = measured(Network(lambda step: max(6.4 / 2**step, 0.1)))
    assert steps >= 7
    assert all(seconds == pytest.approx(0.1) for _, seconds in samples)


def test_warm_up_that_never_ends_is_cut_and_said():
    network = Network(lambda step: 100.0 * 0.5**step + 0.1)
    assert not timing.warm_up(network.run, network.clock, limit_seconds=60.0)["steady"]


def test_sampling_stops_at_the_precision_or_at_the_budget():
    noisy = Network(lambda step: 0.2 if step % 2 else 0.3)
    _, _, samples = measured(noisy, budget=5.0)
    assert 5.0 <= sum(seconds for _, seconds in samples) < 5.4
    steady = Network(lambda step: 0.2 + 0.0001 * (step % 5))
    assert len(measured(steady)[2]) == 5


def coverage(spread, runs):
    """Share of runs whose interval, when sampling has stopped, holds the true median of 0.2 s."""
    draw = random.Random(7)
    held = 0
    for _ in range(runs):
        network, values = Network(lambda step: 0.2 * math.exp(draw.gauss(0, spread))), []
        asked = network.run, network.clock, 1, 60.0, 0.02, 6
        timing.sample(*asked, lambda _, value, values=values: values.append(value))
        low, high = median_interval(values)
        held += low <= 0.2 <= high
    return held / runs


def test_to_stop_when_the_interval_is_narrow_leaves_it_one_of_95_percent(monkeypatch):
    assert coverage(0.05, 1500) >= 0.935
    monkeypatch.setattr(timing, "LOOKS", 1.0001)
    assert coverage(0.05, 1500) < 0.935, "looking after every sample does no harm"


def test_the_clock_is_described_as_it_is(monkeypatch):
    facts = timing.clock_facts("perf_counter")
    assert facts["monotonic"]
    assert 0 < facts["resolution_seconds"] < 1e-3
    assert 0 < facts["reading_seconds"] < 1e-3
    ticks = iter(range(timing.CLOCK_READINGS))
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks) // 2 * 0.5)
    facts = timing.clock_facts("perf_counter")
    assert facts["resolution_seconds"] == 0.5
    assert facts["reading_seconds"] == pytest.approx(0.25, rel=1e-2)


def test_a_clock_that_can_be_set_back_is_refused():
    with pytest.raises(ValueError, match="time.time of this Python is not monotonic"):
        timing.clock_facts("time")


def test_a_loss_that_is_not_a_number_ends_the_cell():
    network = Network(lambda step: 1.0)
    with pytest.raises(timing.Diverged, match="nan after 2 steps"):
        timing.warm_up(
            lambda steps: math.nan if network.step else network.run(steps), network.clock, 10.0
        )


class Engine(Network):
    """A stand-in with an engine: `run` returns `left` seconds before its work is done, which `read` waits for."""

    def __init__(self, seconds, left, neighbour=()):
        super().__init__(lambda step: seconds)
        self.left, self.neighbour, self.queued = left, iter(neighbour), 0.0

    def run(self, steps):
        loss = super().run(steps)
        self.now -= self.left
        self.queued = self.left
        return loss

    def read(self):
        self.now += 0.001 + self.queued + next(self.neighbour, 0.0)
        self.queued = 0.0


@pytest.mark.parametrize(
    ("left", "neighbour", "late"),
    [
        (0.0, [], 0.0),
        (0.3, [], 0.3),
        # A neighbour delays the first reading of an adapter that waits; the next block tells.
        (0.0, [0.2], 0.0),
        # One that is busy for long delays many, of short blocks.
        (0.0, [0.2, 0.0] * 3, 0.0),
        # And it hides, or not, what is missing.
        (0.3, [0.0, 0.1] + [0.2] * 20, 0.2),
    ],
)
def test_work_that_goes_on_after_a_block_is_seen(left, neighbour, late):
    engine = Engine(0.4, left, neighbour)
    engine.run(1)
    assert timing.late_seconds(
        engine.run, engine.read, engine.clock, 1, limit=0.05
    ) == pytest.approx(late)


def test_samples_are_taken_once_more_where_another_program_had_cpu_time(monkeypatch):
    """Which are kept depends on the kernel's counters alone: the second ones are slower here."""
    counts = {"stat": "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n"}
    busy = {"stat": "cpu  9000 0 0 0 0 0 0 0\ncpu0 9000 0 0 0 0 0 0 0\n"}
    steps = iter([0.1, 0.1, 0.3, 0.3])
    now = [0.0]

    def run(count):
        now[0] += next(steps)
        return 1.0

    monkeypatch.setattr(building, "clock", lambda: now[0])
    monkeypatch.setattr(undisturbed, "kernel_counters", lambda: busy)
    said = []
    job = {"device": "cpu", "ranks": 1}

    def emit(event, **facts):
        said.append((event, facts.get("seconds")))

    _, _, taken = undisturbed.sample(run, 1, (0.15, 0.5, 2), counts, job, emit)
    assert taken == pytest.approx([0.3, 0.3])
    assert [event for event, _ in said] == [
        "sample",
        "sample",
        "again",
        "sample",
        "sample",
        "sampled",
    ]
    assert said[2][1] == pytest.approx([0.1, 0.1])
