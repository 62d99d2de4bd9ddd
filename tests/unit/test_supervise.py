"""The supervisor with workers that end in odd ways, each a stand-in that a script plays."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from steptime import plain
from steptime.environments import build
from steptime.machine import interference, processes
from steptime.machine.variables import isolated
from steptime.supervisor import supervise
from steptime.supervisor.pace import Pace


def test_a_worker_inherits_no_thread_knob_and_no_python_path(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "64")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    found = isolated({"OMP_NUM_THREADS": "2"}, "cpu", "alone")
    assert found["OMP_NUM_THREADS"] == "2"
    assert "MKL_NUM_THREADS" not in found
    assert found["PYTHONPATH"] == "alone"
    assert (found["PYTHONNOUSERSITE"], found["CUDA_VISIBLE_DEVICES"]) == ("1", "")


WRITES_TO_A_FULL_DISK = """
try:
    open("/dev/full", "w").write("x" * 10**6)
except OSError as error:
    tell("failed", status="crashed", reason="OSError: {}".format(error))
"""
LITTERS = """
import tempfile
from pathlib import Path
tempfile.mkstemp()
Path.home().joinpath("settings").touch()
tell("done", left=tempfile.gettempdir())
os._exit(0)
"""


def stand_in(folder, text):
    """The folder of an environment whose Python runs `text`, whatever it is asked for."""
    python = folder / "environment/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\n{text}")
    python.chmod(0o755)
    return folder / "environment"


def test_what_a_worker_leaves_behind_is_removed_and_its_settings_stay_with_its_environment(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    outcome = run(tmp_path, LITTERS)
    assert outcome.status == "ok", outcome
    left = outcome.events["done"]["left"]
    assert "steptime-" in left and not os.path.exists(left)
    assert (tmp_path / "environment/home/settings").exists() and not (
        tmp_path / "settings"
    ).exists()


def run(tmp_path, text, *, seconds=600.0, cpus=(0,), task="proof", limit=2**40):
    """The outcome of a worker that runs `text`, in which `tell(event, ...)` speaks to the supervisor.

    Nothing but `done` is asked of a proof.
    """
    prefix = stand_in(tmp_path, SPEAKS + text)
    job, log = {"task": task, "device": "cpu"}, tmp_path / "logs/cell.log"
    return supervise.run_worker(prefix, job, list(cpus), {}, seconds, limit, log)


SPEAKS = """
import json, os, signal, sys, time
pipe = int(sys.argv[-1])
def tell(event, **fields):
    os.write(pipe, json.dumps(dict(fields, event=event)).encode() + b"\\n")
"""


@pytest.mark.parametrize(("least", "is_result"), [(0, True), (2**80, False)])
def test_a_worker_that_found_the_disk_full_is_no_result(tmp_path, monkeypatch, least, is_result):
    """Unless there is space: then it is some other file system, and what the framework does there is its own affair."""
    monkeypatch.setattr(supervise, "LEAST_FREE_BYTES", least)
    if is_result:
        assert "No space left on device" in run(tmp_path, WRITES_TO_A_FULL_DISK).reason
    else:
        with pytest.raises(OSError, match="No space left on device"):
            run(tmp_path, WRITES_TO_A_FULL_DISK)


def of_the_real_worker(tmp_path, python=sys.executable, log=None):
    """The outcome of a worker as it is, of a job that it cannot do."""
    (tmp_path / "environment/bin").mkdir(parents=True)
    (tmp_path / "environment/bin/python").symlink_to(python)
    job, folder = {"task": "no such task", "device": "cpu"}, tmp_path / "environment"
    return supervise.run_worker(folder, job, [0], {}, 600, 2**40, log or tmp_path / "log")


def test_a_log_that_finds_no_space_hides_no_reason(tmp_path):
    (log := tmp_path / "cell.log").symlink_to("/dev/full")
    outcome = of_the_real_worker(tmp_path, log=log)
    assert outcome.reason == "KeyError: 'adapter'", outcome


@pytest.mark.parametrize(
    ("number", "reason"),
    [(40, "ended by signal 40"), (signal.SIGSEGV, "ended by SIGSEGV (Segmentation fault)")],
)
def test_any_signal_that_ends_a_worker_is_a_reason(tmp_path, number, reason):
    outcome = run(tmp_path, f"os.kill(os.getpid(), {int(number)})")
    assert outcome.status == "crashed" and reason in outcome.reason, outcome


def test_what_a_library_writes_to_the_pipe_costs_no_sample(tmp_path):
    outcome = run(
        tmp_path,
        r"""
os.write(pipe, b'a line\n\xff\xfe\n42\n[]\n{"no": 1}\n' + b"[" * 100000 + b"\nno end of line: ")
tell("sample", steps=1, seconds=0.5)
tell("done")
""",
    )
    assert (outcome.status, outcome.samples) == ("ok", [(1, 0.5)]), outcome


KERNEL = r"""
kernel = dict(stat="cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1", cpuinfo="", throttling=[])
"""


@pytest.mark.parametrize(
    "odd",
    [
        *("event=[1]", "event='sample'", "event='failed'", "event='warmup'"),
        "event='sample', steps='a', seconds=0.5",
        # Steps and seconds that nobody takes; a step in less than a thousand cycles.
        *(f"event='sample', steps={steps}, seconds=0.5" for steps in ("0", "2**40")),
        *(f"event='sample', steps=1, seconds={long}" for long in ("1e-9", "float('nan')")),
        *(f"event='warmup', kernel={odd}" for odd in ("{}", "dict(kernel, cpus=[0])")),
        *(f"event='warmup', kernel=dict(kernel, stat={stat!r})" for stat in ("", "cpu x")),
        "event='failed', status='ok', reason=''",
        "event='failed', status='crashed', reason=5",
        "event='failed', reason='no status'",
        "event='ready', versions={'framework_version': 1}",
        # It has taken no sample yet.
        "event='done'",
        *("event='epoch', epoch=1", "event='part', part='a'", "event='trained', stopped='bored'"),
    ],
)
def test_what_holds_no_words_of_a_worker_is_no_event(tmp_path, odd):
    outcome = run(
        tmp_path,
        f"""{KERNEL}
os.write(pipe, json.dumps(dict({odd})).encode() + b"\\n")
tell("ready", libraries=["a"], parameters=5)
tell("warmup", kernel=kernel)
tell("sample", steps=2, seconds=0.5)
os.write(pipe, json.dumps(dict({odd})).encode() + b"\\n")
tell("sampled", kernel=kernel)
tell("done", last_loss=1.0)
""",
        task="step",
    )
    assert (outcome.status, outcome.samples) == ("ok", [(2, 0.5)]), outcome
    assert not outcome.epochs and not outcome.parts
    assert outcome.libraries == ["a"] and outcome.events["done"] == {"last_loss": 1.0}
    assert outcome.events["ready"] == {"parameters": 5} and len(outcome.snapshots) == 2


@pytest.mark.parametrize(
    ("task", "lacking"),
    [
        ("step", "warmup, sample, sampled"),
        ("training", "began, epoch, trained"),
        ("products", "warmup, part, sampled"),
        ("stragglers", "warmup, part, sampled"),
    ],
)
def test_nothing_is_done_that_was_not_measured(tmp_path, task, lacking):
    outcome = run(tmp_path, "tell('ready'); tell('done')", task=task)
    assert outcome.status == "crashed" and outcome.reason.endswith(f"under {lacking}"), outcome


@pytest.mark.parametrize(
    ("told", "ends", "limits", "status"),
    [
        ("tell('timed', wall_seconds=2.0)", "time.sleep(60)", {"seconds": 1.0}, "ok"),
        ("tell('timed', wall_seconds=2.0)", "held = bytearray(2**28); time.sleep(60)", {}, "ok"),
        ("pass", "time.sleep(60)", {"seconds": 1.0}, "timeout"),
    ],
    ids=["time", "memory", "before the samples are done"],
)
def test_a_limit_behind_the_samples_ends_the_proof_and_not_the_row(
    tmp_path, told, ends, limits, status
):
    measured = "tell('sample', steps=1, seconds=0.5); tell('proven', loss=1e-9, gradients=False)"
    outcome = run(tmp_path, f"{measured}; {told}; {ends}", limit=2**27, **limits)
    assert (outcome.status, outcome.samples) == (status, [(1, 0.5)]), outcome
    if status == "ok":
        assert outcome.events["done"]["wall_seconds"] == 2.0
        assert outcome.events["proven"]["loss"] == 1e-9
        assert "limit" in outcome.events["proven"]["lacking"] and not outcome.reason


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        ("tell('sample', steps=10, seconds=0.02)", "by its clock 0.2 s"),
        ("tell('sample', steps=10, seconds=0.08); tell('sample', steps=1, seconds=0.1)", ""),
        # What comes behind it is not in its seconds.
        ("tell('sample', steps=1, seconds=0.00001); tell('sampled', kernel=kernel)", ""),
    ],
)
def test_a_clock_that_goes_wrong_is_refused(tmp_path, measured, words):
    outcome = run(
        tmp_path,
        f"""{KERNEL}
tell("ready")
tell("warmup", kernel=kernel)
{measured}
time.sleep(2.5)
tell("sampled", kernel=kernel)
tell("done")
""",
        task="step",
    )
    assert outcome.status == ("not_equivalent" if words else "ok"), outcome
    assert outcome.reason.endswith(words), outcome


def test_a_supervisor_that_is_stopped_or_late_knows_nothing_of_a_clock():
    times = iter([0.0, 0.4, 600.0, 600.2, 700.0, 700.5])
    pace = Pace(lambda: next(times))
    pace.look(0)
    pace.begin()
    pace.look(0)
    pace.look(0)
    pace.end()
    pace.look(0)
    pace.begin()
    pace.end()
    assert pace.seconds == pytest.approx(0.4 + 1.0 + 0.2 + 0.5)
    assert not pace.refusal([(1, 0.6)], []) and pace.refusal([(1, 0.5)], [])
    assert not pace.refusal([], [{"seconds": 0.1, "test_seconds": 0.5}])
    assert pace.refusal([], [{"seconds": 0.1}]) and not pace.refusal([], [])


def test_samples_that_are_taken_once_more_are_compared_with_their_own_seconds():
    """Another program slowed the first ones, which are left out: together they took more than twice as long."""
    seconds = [25.0, 22.0]
    pace, now = Pace(lambda: now), 0.0
    for took in seconds:
        pace.begin()
        for _ in range(int(2 * took)):
            now += 0.5
            pace.look(0)
    pace.end()
    assert pace.seconds == 22.0 and not pace.refusal([(30, 22 / 30)], [])


def test_words_of_a_framework_become_plain_text(tmp_path):
    """Undecodable bytes of a path, colours of a terminal, a change of the direction of writing."""
    outcome = run(
        tmp_path,
        r"""
tell("ready", versions={"blas": "a\x1b[31m b"})
tell("failed", status="crashed", reason="cannot read \x1b[1m/data/x\udce9\x1b[0m\u202e\n\x00now")
""",
    )
    assert outcome.reason == r"cannot read /data/x\xe9 now"
    assert outcome.events["ready"]["versions"]["blas"] == "a b"
    assert plain.plain("\x1b]8;;file:x\x07link\x1b]8;;\x07 \x1b(B±é語") == "link ±é語"


def test_the_last_line_of_a_log_and_an_installers_words_become_plain_text(tmp_path):
    outcome = run(tmp_path, r"""print("\x1b[31mno driver\x1b[0m", flush=True); os._exit(3)""")
    assert outcome.reason.endswith("before it was done: no driver")
    assert build.reason("\x1b[31merror:\x1b[0m no wheel\x1b[K", "failed") == "failed (no wheel)"


@pytest.mark.parametrize("session", ["", "os.setsid()", "os.setsid(); os.fork() and os._exit(0)"])
def test_done_is_done_and_nothing_is_left_of_the_worker(tmp_path, session):
    """A child that goes on holds the pipe open, in a session of its own or as a daemon."""
    outcome = run(
        tmp_path,
        f"""
told, tells = os.pipe()
if os.fork() == 0:
    {session or "pass"}
    stat = "cpu 1 1 1 1 1 1 1 1\\ncpu0 1 1 1 1 1 1 1 1"
    tell("began", kernel=dict(stat=stat, cpuinfo=""), pid=os.getpid())
    os.write(tells, b".")
    time.sleep(1000)
os.read(told, 1)
tell("done")
""",
    )
    assert outcome.status == "ok", outcome
    assert not psutil.pid_exists(outcome.events["began"]["pid"])


def test_a_flood_of_words_is_ended_and_its_last_line_is_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "MOST_PRINTED_BYTES", 2**20)
    endless = run(tmp_path / "endless", "while True: print('y' * 10**5, flush=True)")
    assert (endless.status, endless.reason) == ("crashed", "it printed more than 0.000976562 GiB")
    monkeypatch.undo()
    ended = run(tmp_path / "ended", "print('y' * 10**8); print('the end', flush=True); os._exit(3)")
    assert ended.reason.endswith("before it was done: the end")


def program(text, **streams):
    """A program of the workflow that runs `text`."""
    script = f"import runpy, sys; runpy.run_module = lambda *_, **__: exec({text!r}); "
    script += "sys.argv.append('carry.pack'); "
    return subprocess.Popen(
        [sys.executable, "-c", script + "from steptime.__main__ import main; main()"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        **streams,
    )


def test_a_reader_that_is_gone_costs_no_cell(tmp_path):
    """As in `make 2>&1 | head -1`: a program that failed then would lose the shard that it has just written."""
    reading, writing = os.pipe()
    os.close(reading)
    text = "from steptime.say import say; say('one'); say('two'); import sys; sys.stderr.flush()"
    assert program(text, stderr=writing).wait() == 0


def test_a_worker_that_closes_its_pipe_is_not_waited_for(tmp_path):
    outcome = run(tmp_path, "os.close(pipe); time.sleep(1000)")
    assert outcome.reason == "the worker closed its pipe before it was done"


def test_what_lies_in_the_users_folder_hides_no_package_and_gets_no_file(tmp_path, monkeypatch):
    """A run may be in any folder: one with a `json.py`, say."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    for name in ("json", "worker"):
        Path(f"{name}.py").write_text("raise SystemExit('hidden')")
    outcome = of_the_real_worker(tmp_path)
    assert outcome.reason == "KeyError: 'adapter'", outcome
    launched = subprocess.run(
        [supervise.WORKER.parent / "launch", "cells.measure", "--help"],
        env=os.environ | {"STEPTIME_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert launched.returncode == 0, launched.stderr


def test_a_crash_writes_no_memory_into_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    text = "import resource; tell('ready', core=resource.getrlimit(resource.RLIMIT_CORE)); "
    outcome = run(tmp_path, text + "os.kill(os.getpid(), signal.SIGSEGV)")
    assert outcome.events["ready"]["core"] == [0, 0] and "SIGSEGV" in outcome.reason


def test_memory_that_forked_processes_share_counts_once(tmp_path, monkeypatch):
    weighed, looks = tmp_path / "weighed", []

    def noted(pid, whole=processes.proportional_memory):
        looks.append(whole(pid))
        weighed.touch()
        return looks[-1]

    monkeypatch.setattr(processes, "proportional_memory", noted)
    outcome = run(
        tmp_path,
        f"""
kept = b"x" * 200 * 2**20
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1000)
while not os.path.exists({str(weighed)!r}):
    time.sleep(0.01)
tell("done")
""",
        limit=500 * 2**20,
    )
    assert outcome.status == "ok", outcome
    assert 200 * 2**20 < looks[0] < 300 * 2**20


def test_a_worker_that_cannot_be_pinned_is_a_row(tmp_path):
    outcome = run(tmp_path, "tell('done')", cpus=[100_000])
    assert outcome.status == "crashed" and "pinned to CPU 100000" in outcome.reason


def test_stolen_time_is_that_of_the_cell_s_own_cpus(tmp_path):
    outcome = run(
        tmp_path,
        r"""
stat = "cpu 1 1 1 1 1 1 1 1000\ncpu0 1 1 1 1 1 1 1 100\ncpu1 1 1 1 1 1 1 1 900"
tell("warmup", kernel=dict(stat=stat, cpuinfo=""))
tell("done")
""",
    )
    assert [each.stolen_seconds for each in outcome.snapshots] == [100 / interference.TICKS]


MAPPED = "open('/proc/self/maps').read()"


def test_a_library_of_the_users_shell_is_in_no_worker(monkeypatch, tmp_path):
    """A copy of one that Python itself loads, by its own name, lies first on the shell's path of libraries."""
    (planted := tmp_path / "planted").mkdir()
    loaded = Path("/proc/self/maps").read_text().split()
    (library,) = {Path(path).resolve() for path in loaded if "/libm.so" in path or "/libm-" in path}
    for name in {library.name, "libm.so.6"}:
        shutil.copyfile(library, planted / name)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(planted))
    command = [sys.executable, "-c", f"print({MAPPED})"]
    assert str(planted) in subprocess.run(command, capture_output=True, text=True).stdout
    outcome = run(tmp_path, f"tell('done', maps={MAPPED})")
    assert "/libm" in (maps := outcome.events["done"]["maps"]) and str(planted) not in maps
