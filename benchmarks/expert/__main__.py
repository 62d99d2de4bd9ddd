"""Our adapters beside plain scripts of experts: time per mini-batch, ours / expert.

    .venv/bin/python benchmarks/expert [--environment mxnet-1.9] [--network fcn5] [--threads 1] [--pairs 5]

A pair is two live processes, an adapter as a worker runs it (`ours.py`) and the script of the adapter whose usage names
the network, on the same CPUs, with the environment variables of `config/frameworks.yaml`. A network with a data set
is trained on its images, which a worker's loop feeds to ours, and the script to itself. They train in turn for
about SECONDS_PER_TURN, in the order A B B A ...; turns beside which something else was at work are not kept. The pair's
ratio is the median of the ratios of turns that stand beside each other. Intervals are of pairs, so they hold what
differs between processes; how much that is, all rows of an environment say (`steptime.statistics.spreads`). Pairs
are kept in `results/benchmarks/expert.json`; a later call adds what is missing, and pairs of scripts or adapters that
have changed since no longer count. Limit of the project: 1.03 for every row, 1.00 for their geometric mean, and none
above 1.05.
The last column says of that bound `fails` or `holds` where the whole interval does, `open` where it does not say.
"""

import argparse
import ctypes
import hashlib
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "benchmarks/expert"
RESULTS = ROOT / "results/benchmarks/expert.json"
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from shared import declarations  # noqa: E402
from steptime import machine, networks  # noqa: E402
from steptime.cells import measure as cell  # noqa: E402
from steptime.environments import interpreter  # noqa: E402
from steptime.machine import interference  # noqa: E402
from steptime.machine.variables import isolated  # noqa: E402
from steptime.plan import configuration  # noqa: E402
from steptime.statistics import intervals, spreads  # noqa: E402
from steptime.supervisor import supervise  # noqa: E402
from worker import contract, timing  # noqa: E402

SECONDS_PER_TURN = 0.4
SECONDS_PER_PAIR = 6
LEAST_TURNS = 5
MOST_SECONDS_PER_PAIR = 90
MOST_WARMUP_SECONDS = 10
NOT_IDLE = ("user", "nice", "system", "irq", "softirq", "steal")
PR_SET_PDEATHSIG = 1
BOUND = 1.05


def main() -> None:
    """Measures what is missing, as far as the time allows, and prints the table of all that is there."""
    loaded = configuration.load(ROOT, {"grid": "paper"})
    options = _options(loaded)
    end = time.monotonic() + options.seconds
    every = itertools.product(options.environment, options.network, options.threads)
    cases = [case for case in every if script(loaded, *case[:2])]
    digests = {case: digest(loaded, *case) for case in cases}
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for number, case in itertools.product(range(options.pairs), cases):
        if len(_pairs(rows, case, digests[case])) > number or time.monotonic() > end:
            continue
        pair = measure(loaded, *case)
        if len(pair["ours"]) < LEAST_TURNS:
            print(
                f"{case}: something else was at work in all but {len(pair['ours'])} turns; not kept",
                file=sys.stderr,
            )
            continue
        rows.append({"case": case, "digest": digests[case], "at": time.time()} | pair)
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(rows))
    print_table({case: _pairs(rows, case, digests[case]) for case in cases})


def measure(
    loaded: configuration.Configuration, environment: str, network: str, threads: int
) -> dict[str, Any]:
    """One pair: seconds per mini-batch of every turn of both sides, and the steps of a turn."""
    entry = loaded.entry_of(environment)
    spec = networks.specify(network, loaded.networks)
    images = images_of(loaded, network)
    job = {
        "task": "training" if images else "step",
        "images": {"train": images[0]} if images else {},
        "precision": "float32",
        "device": "cpu",
        "rank": 0,
        "ranks": 1,
        "exchange": "",
        "adapter": entry["adapter"],
        "spec": spec,
        "batch": networks.resolve(network, loaded.networks)["batch"],
        "mode": entry["modes"][0],
        "threads": threads,
    }
    prefix = interpreter.prefix_of(environment)
    variables = cell.fill(entry["variables"], threads, entry["modes"][0], prefix)
    library = contract.of_mode(
        declarations.declared(entry["adapter"])["KERNELS"], entry["modes"][0]
    )
    start = (prefix, threads, variables | {"KERNELS": library or ""})
    with (
        Side(*start, ["ours.py"]) as ours,
        Side(
            *start, [script(loaded, environment, network).name, network, threads, *images]
        ) as expert,
    ):
        ours.send(json.dumps(job))
        sides = {"ours": ours, "expert": expert}
        for name, side in sides.items():
            parameters = side.answer()["parameters"]
            if parameters != networks.count_parameters(spec):
                sys.exit(
                    f"{environment}, {network}: {name} has {parameters:,} parameters, which is another network."
                )
        first = {name: side.train(1)["loss"] for name, side in sides.items()}
        steps = max(side.steps_of_a_turn() for side in sides.values())
        turns: list[dict[str, float]] = []
        order = list(sides)
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < MOST_SECONDS_PER_PAIR and (
            len(turns) < LEAST_TURNS or passed < SECONDS_PER_PAIR
        ):
            order.reverse()
            alone = Alone([side.process.pid for side in sides.values()], machine.cpus_for(threads))
            turn = {name: sides[name].train(steps)["seconds"] / steps for name in order}
            turns += [turn] * alone.was_so()
        for name, side in sides.items():
            last = side.train(1)["loss"]
            if not last < first[name]:
                sys.exit(
                    f"{environment}, {network}: the loss of {name} did not fall: {first[name]:.6g}, then {last:.6g}."
                )
    return {"steps": steps} | {name: [turn[name] for turn in turns] for name in sides}


class Alone:
    """Whether processes that take turns on some CPUs had them to themselves since this was made."""

    def __init__(self, pids: list[int], cpus: list[int]) -> None:
        self.processes, self.cpus = [psutil.Process(pid) for pid in pids], cpus
        self.start = self.now()

    def now(self) -> tuple[float, float]:
        """Monotonic seconds, and the CPU seconds that others used on these CPUs or a hypervisor gave away."""
        every = psutil.cpu_times(percpu=True)
        busy = [sum(getattr(every[cpu], kind) for kind in NOT_IDLE) for cpu in self.cpus]
        own = [process.cpu_times() for process in self.processes]
        return time.monotonic(), sum(busy) - sum(used.user + used.system for used in own)

    def was_so(self) -> bool:
        """False where others used more of these CPUs than a cell may lose without a mark."""
        (began, before), (ended, after) = self.start, self.now()
        return after - before <= interference.MOST_FOREIGN_CPUS * (ended - began)


class Side:
    """A process that trains on command."""

    def __init__(
        self, prefix: Path, threads: int, variables: dict[str, str], command: list[Any]
    ) -> None:
        def prepare() -> None:
            os.sched_setaffinity(0, machine.cpus_for(threads))
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

        self.log = tempfile.TemporaryFile("w+")
        self.scratch = tempfile.TemporaryDirectory()
        variables = variables | supervise.own_folders(prefix, self.scratch.name)
        self.process = subprocess.Popen(
            [prefix / "bin/python", *map(str, command)],
            cwd=HERE,
            # Workers look for modules nowhere but there; these find each other beside them.
            env=isolated(
                variables, "cpu", f"{supervise.worker_path(self.scratch.name)}{os.pathsep}{HERE}"
            ),
            preexec_fn=prepare,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.scratch.cleanup()

    def send(self, line: str) -> None:
        """Writes one line to the process."""
        print(line, file=self.process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        """The next answer; ends the program with the process's own words when it died."""
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            sys.exit(
                f"{' '.join(map(str, self.process.args))} ended before its time:\n{self.log.read()}"
            )
        return json.loads(line)

    def train(self, steps: int) -> dict[str, Any]:
        """Trains; returns the seconds of all steps and the last loss."""
        self.send(str(steps))
        return self.answer()

    def steps_of_a_turn(self) -> int:
        """Warms up until steady, as a worker does, and says how many steps make a turn."""
        warm = timing.warm_up(
            lambda steps: self.train(steps)["loss"], time.perf_counter, MOST_WARMUP_SECONDS
        )
        seconds = self.train(warm["per_block"])["seconds"] / warm["per_block"]
        return math.ceil(SECONDS_PER_TURN / seconds)


def script(loaded: configuration.Configuration, environment: str, network: str) -> Path | None:
    """The script of the adapter whose usage, in its docstring, names the network; None where no expert wrote one."""
    adapter = loaded.entry_of(environment)["adapter"]
    for path in HERE.glob(f"{adapter}_*.py"):
        usage = re.search(rf"python {path.name} (\S+)", path.read_text())
        if network in usage[1].strip("{}").split(","):
            return path
    return None


def images_of(loaded: configuration.Configuration, network: str) -> list[str]:
    """The file of the images that a network is trained on; of other networks none."""
    if "dataset" not in loaded.networks[network]:
        return []
    name = loaded.dataset_of(loaded.networks[network]["dataset"])
    path = ROOT / f"results/datasets/{name}/train.npz"
    if not path.exists():
        sys.exit(f"There is no {path.relative_to(ROOT)} yet: a run that trains {network} makes it.")
    return [str(path)]


def digest(
    loaded: configuration.Configuration, environment: str, network: str, threads: int
) -> str:
    """Of everything that makes up a pair: the files of both sides and their environment variables."""
    entry = loaded.entry_of(environment)
    adapter = ROOT / f"workflow/scripts/worker/frameworks/{entry['adapter']}/__init__.py"
    run = [environment, entry["modes"][0], entry["variables"]]
    parts = [
        path.read_bytes()
        for path in (
            script(loaded, environment, network),
            HERE / "blocks.py",
            HERE / "loops.py",
            HERE / "ours.py",
            adapter,
        )
    ]
    return hashlib.sha256(b"".join([*parts, json.dumps(run).encode()])).hexdigest()[:12]


def print_table(pairs: dict[tuple[str, str, int], list[dict[str, Any]]]) -> None:
    """Prints the table in Markdown: medians in milliseconds, the ratio and its 95 % interval, and geometric means."""
    print(
        "| environment | network | threads | ours, ms | expert, ms | ours / expert | 95 % interval | pairs "
        f"| at most {BOUND} |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | --- | ---: | --- |")
    means: dict[str, list[float]] = {}
    logs = {case: logs_of(found) for case, found in pairs.items() if found}
    own: dict[str, list[spreads.Spread]] = {}
    for case, values in logs.items():
        if len(values) > 1:
            own.setdefault(case[0], []).append(spreads.spread_of(values))
    priors = spreads.priors(own)
    for (environment, network, threads), values in logs.items():
        found = pairs[environment, network, threads]
        middle, low, high = interval_of(values, priors.get(environment))
        means.setdefault(environment, []).append(math.log(middle))
        ours, expert = (
            1e3 * median(turn for pair in found for turn in pair[side])
            for side in ("ours", "expert")
        )
        interval = f"{low:.3f} to {high:.3f}" if len(found) > 1 else ""
        print(
            f"| {environment} | {network} | {threads} | {ours:.4g} | {expert:.4g} | {middle:.3f} | {interval} "
            f"| {len(found)} | {verdict(low, high, len(found))} |"
        )
    for environment, logarithms in means.items():
        print(
            f"\nGeometric mean of {environment}, {len(logarithms)} rows: {math.exp(fmean(logarithms)):.3f}"
        )


def verdict(low: float, high: float, pairs: int) -> str:
    """Whether a row is within the bound, as far as its interval says."""
    if pairs < 2 or low <= BOUND < high:
        return "open"
    return "fails" if low > BOUND else "holds"


def logs_of(pairs: list[dict[str, Any]]) -> list[float]:
    """The logarithm of ours / expert of each pair of processes: the median of turns that stand beside each other."""
    return [
        math.log(
            median(ours / expert for ours, expert in zip(pair["ours"], pair["expert"], strict=True))
        )
        for pair in pairs
    ]


def interval_of(logs: list[float], prior: spreads.Prior | None) -> tuple[float, float, float]:
    """Ours / expert with its 95 % interval (itself three times for one pair)."""
    if len(logs) < 2:
        return (math.exp(logs[0]),) * 3
    return intervals.ratio_of(logs, spreads.combined(spreads.spread_of(logs), prior)).interval


def _pairs(
    rows: list[dict[str, Any]], case: tuple[str, str, int], wanted: str
) -> list[dict[str, Any]]:
    return [row for row in rows if tuple(row["case"]) == case and row["digest"] == wanted]


def _options(loaded: configuration.Configuration) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Time our adapters beside plain scripts of experts."
    )
    paper = [
        name
        for name, entry in loaded.networks.items()
        if "variant_of" not in entry or name.endswith("-adamw")
    ]
    written = {path.stem.split("_")[0] for path in HERE.glob("*_*.py")}
    every = [name for entry in loaded.frameworks.values() for name in entry["environments"]]
    adapters = {name: loaded.entry_of(name)["adapter"] for name in every}
    environments = [name for name in every if adapters[name] in written]
    newest = {adapters[name]: name for name in reversed(environments)}
    threads = [count for count in (1, 2) if count <= len(os.sched_getaffinity(0))]
    for name, choices, default in (
        ("environment", environments, list(newest.values())),
        ("network", paper, paper),
        ("threads", threads, threads),
    ):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            choices=choices,
            default=default,
            type=type(choices[0]),
            metavar=name.upper(),
        )
    parser.add_argument(
        "--pairs", type=int, default=5, help="pairs of processes of each row (default 5)"
    )
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no pair after so many seconds"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
