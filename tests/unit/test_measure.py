"""Pieces of the supervisor that need no framework."""

import os
import subprocess
import sys
import time

import pytest

from steptime import machine, project
from steptime.cells import measure, software
from steptime.machine import interference, processes
from steptime.run import progress
from worker import usage
from worker.contract import NotEquivalent
from worker.tasks import step


def test_a_cell_gets_one_cpu_of_each_core_before_it_gets_siblings():
    siblings = {0: (0, 4), 1: (1, 5), 4: (0, 4), 5: (1, 5), 2: (2,)}
    assert machine.order_by_core(siblings) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(
    ("allowed", "cores", "first"),
    [
        ([0, 64, 65], [(0, 64), (1, 65)], [0, 65]),
        ([1, 5, 6, 7], [(0, 4), (1, 5), (2, 6), (3, 7)], [1, 6, 7]),
        # Two sockets whose second threads come last, of which a job has the second alone.
        ([4, 6, 12, 13, 14], [(at, at + 8) for at in range(8)], [4, 6, 13]),
        # Four cores of two threads and four of one thread each.
        ([1, 2, 3, 8, 9], [(0, 1), (2, 3), (4, 5), (6, 7), (8,), (9,)], [1, 2, 8, 9]),
        # Four threads of a core.
        ([2, 3, 5, 6, 7], [(0, 1, 2, 3), (4, 5, 6, 7)], [2, 5]),
    ],
)
def test_of_the_cpus_of_a_job_each_core_comes_before_any_comes_twice(allowed, cores, first):
    siblings = {cpu: core for core in cores for cpu in core if cpu in allowed}
    assert machine.order_by_core(siblings)[: len(first)] == first


def test_more_threads_than_cpus_get_all_cpus():
    assert sorted(machine.cpus_for(10_000)) == sorted(os.sched_getaffinity(0))


def test_a_machine_is_known_again_whatever_its_load_and_kernel():
    described = machine.describe()
    later = described | {"load": 99.0, "kernel": "other", "os": "upgraded"}
    assert machine.identify(later) == machine.identify(described)
    # Another kernel keeps more of 16 GiB for itself, or there is more; the driver of the GPUs is lost.
    less = described | {"memory_bytes": int(15.49 * 2**30), "gpus": []}
    more = described | {"memory_bytes": int(16.01 * 2**30), "gpus": [{"model": "GTX 1080"}]}
    assert machine.identify(less) == machine.identify(more)
    assert machine.kind(less) == machine.kind(more)
    assert machine.kind(more, "gpu") == f"{machine.kind(less)}, GTX 1080"
    other = described | {"cpu": described["cpu"] | {"model": "another CPU"}}
    assert machine.identify(other) != machine.identify(described)
    # A virtual machine's CPU has the model of another one's that knows more.
    older = described | {"cpu": described["cpu"] | {"instruction_sets": ["avx"]}}
    assert machine.kind(older) != machine.kind(described)


def test_what_a_framework_does_in_a_process_below_the_worker_is_counted():
    """As that of a framework that is a program of its own, to which Python only speaks."""
    burn = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as below:
        own, cpu, waited = (time.process_time(), usage.cpu_seconds(), usage.waited_seconds())
        below.stdout.readline()
        spent = usage.cpu_seconds() - cpu
        assert spent > 0.4 + time.process_time() - own
        assert usage.peak_memory() > processes.memory(below.pid)[1] > 2**22
        assert usage.waited_seconds() >= waited
        below.stdin.close()
    assert processes.family(os.getpid()) == [os.getpid()]
    # It has ended, and what it used is not a neighbour's.
    assert usage.cpu_seconds() - cpu > 0.4 + time.process_time() - own


def test_what_the_kernel_does_not_count_is_not_nought(monkeypatch):
    """Without schedstat nobody knows how long threads waited."""
    read = usage.text
    monkeypatch.setattr(usage, "text", lambda path: "" if "schedstat" in path else read(path))
    seen = usage.Usage(time.perf_counter).so_far()
    assert seen["waited_seconds"] is None and seen["wall_seconds"] > 0


class SlowReader:
    """A stand-in for a trainer that waits, but whose first reading of a weight after a block takes 7 ms."""

    now, fresh = 0.0, True

    def run(self, steps):
        self.now, self.fresh = self.now + 0.1 * steps, True

    def weights(self, names):
        self.now, self.fresh = self.now + 0.007 * self.fresh, False

    def late(self, shape):
        spec = {"parameters": [{"name": "embedding/weight", "shape": shape}]}
        return step.late_seconds(self, self.run, spec, lambda: self.now, 1, 0.1)


def test_the_first_copy_of_a_large_weight_is_not_taken_for_work_that_is_left():
    assert SlowReader().late([10_000, 256]) == pytest.approx(0.007)
    with pytest.raises(
        NotEquivalent, match="1 steps return after 0.1 s, but their work takes 0.007 s more"
    ):
        SlowReader().late([256])


def test_variables_are_filled_in(tmp_path):
    variables = {
        "OMP_NUM_THREADS": "{threads}",
        "KERAS_BACKEND": "{mode}",
        "THEANORC": "{prefix}/theanorc",
    }
    filled = measure.fill(variables, 2, "theano", tmp_path)
    assert filled == {
        "OMP_NUM_THREADS": "2",
        "KERAS_BACKEND": "theano",
        "THEANORC": f"{tmp_path}/theanorc",
    }
    kept = {"NVIDIA_TF32_OVERRIDE": "0"}
    assert measure.fill(kept, 2, "eager", tmp_path) == kept
    rounded = measure.fill(kept, 2, "eager", tmp_path, "tf32")
    assert rounded["NVIDIA_TF32_OVERRIDE"] == "1"


def test_what_lies_between_two_windows_is_nobodys():
    """Between samples weights are read: neither the cell nor a neighbour has used what that takes."""
    counts = [
        (100.0, 1.0, 3000.0),
        (125.0, 1.4, 2900.0),
        (190.0, 8.0, 2500.0),
        (195.0, 8.0, 1500.0),
    ]
    snapshots = [interference.Snapshot(*count) for count in counts]
    assert interference.between(snapshots, wall_seconds=10.0, cpu_seconds=20.0) == {
        "foreign_cpus": pytest.approx(1.0),
        "steal_share": pytest.approx(0.04),
        "frequency_ratio": 0.5,
        "throttled_seconds": None,
    }
    readings = iter([0.0, 2.0, 50.0, 53.0])
    used = usage.Usage(lambda: next(readings))
    used.pause()
    used.resume()
    used.pause()
    assert used.used["wall_seconds"] == 5.0
    assert interference.growth([1, 3, 10, 14]) == 6 and interference.growth([1, 3, 10]) is None


def test_a_snapshot_is_what_the_kernel_counts():
    """Clock rate and stolen time are of the cell's own CPUs: idle ones clock down, and lose nothing."""
    kernel = {
        "stat": "cpu  100 20 30 4000 9 5 6 7 0 0\ncpu0 1 1 1 1 1 1 1 7 0 0\ncpu1 1 1 1 1 1 1 1 0 0 0\n",
        "cpuinfo": "processor\t: 0\ncpu MHz\t\t: 3000.0\n\nprocessor\t: 1\ncpu MHz\t\t: 800.0\n",
    }
    found = interference.parse(**kernel, cpus=[0])
    assert found.busy_seconds * interference.TICKS == pytest.approx(100 + 20 + 30 + 5 + 6)
    assert found.stolen_seconds * interference.TICKS == pytest.approx(7)
    assert found.megahertz == 3000.0
    assert interference.parse(**kernel).megahertz == 1900.0
    assert interference.parse(**kernel, cpus=[7]).megahertz is None
    # A container may number its CPUs anew.
    for cpus in ([7], None):
        renumbered = interference.parse(**kernel, cpus=cpus)
        assert renumbered.stolen_seconds * interference.TICKS == pytest.approx(3.5)
    assert found.throttled_seconds is None
    held = interference.parse(**kernel, throttling=["throttled_usec 1500000", "throttled_time 5"])
    assert held.throttled_seconds == pytest.approx(1.5)
    assert interference.snapshot().busy_seconds > 0


def test_a_changed_checkout_says_what_differs_from_its_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "ROOT", tmp_path)
    assert software.workflow() == {"commit": None, "changed": None}
    # Of a copy without git's folder.
    (tmp_path / ".commit").write_text("0123456789ab-dirty\n")
    assert software.workflow() == {"commit": "0123456789ab-dirty", "changed": None}
    (tmp_path / ".gitignore").write_text("results/\n.commit")
    author = ["-c", "user.name=A", "-c", "user.email=a"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    clean = software.workflow()
    assert len(clean["commit"]) == 12 and clean["changed"] == []
    (tmp_path / "results").mkdir()
    (tmp_path / "results/shard").touch()
    assert software.workflow() == clean
    # A new adapter changes what is measured though git does not know it yet.
    (tmp_path / "adapter.py").touch()
    assert software.workflow() == {"commit": f"{clean['commit']}-dirty", "changed": ["adapter.py"]}
    (tmp_path / "below").mkdir()
    monkeypatch.setattr(project, "ROOT", tmp_path / "below")
    assert software.workflow()["commit"] is None


@pytest.mark.parametrize(("seconds", "text"), [(42, "42 s"), (420, "7 min"), (11100, "3 h 05 min")])
def test_durations_are_said_as_people_say_them(seconds, text):
    assert progress.duration(seconds) == text
