"""Real cells with a real framework through Snakemake's own plugin on a real SLURM. The runs go on side by side."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cluster import Cluster, missing, wait
from conftest import hear_interrupts
from today import JAX, MXNET, TORCH

from steptime.cells import shard

HERE = Path(__file__).parent
PLACES = {
    "desktop-cpu": "cpu1",
    "server-cpu": "cpu2",
    "gtx980": "gtx980",
    "gtx1080": "gtx1080",
    "k80": "k80",
}
# As a user types it, and less waiting than for a real cluster.
FASTER = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5")


class Run:
    """One Snakemake run on the cluster, which goes on while others do."""

    def __init__(
        self,
        cluster,
        checkout,
        grid: str,
        *arguments: str,
        target: str = "steptime_times",
        variables: dict[str, str] | None = None,
    ) -> None:
        shutil.copy(HERE / "platforms.yaml", checkout.root)
        config = ("--config", f"grid={grid}", "platforms=platforms.yaml", "--", target)
        command = ("--workflow-profile", "profiles/slurm", *FASTER, *arguments, *config)
        self.checkout = checkout
        self.output = (checkout.root / f"{time.monotonic_ns()}.txt").open("w")
        self.process = subprocess.Popen(
            [part for part in checkout.command(*command) if part not in ("--cores", "2")],
            cwd=checkout.root,
            env=checkout.environment() | cluster.variables() | (variables or {}),
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=hear_interrupts,
        )

    def interrupt(self) -> None:
        """Ctrl-C at the terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float = 1200) -> tuple[int, str]:
        """Exit code and what was printed, once it has ended."""
        try:
            code = self.process.wait(seconds)
        finally:
            self.process.kill()
        return code, self.said()

    def said(self) -> str:
        """What was printed so far."""
        return Path(self.output.name).read_text()

    def shards(self) -> dict[str, Path]:
        """Shards by "platform/environment.mode.precision-network-..."."""
        folder = self.checkout.root / "results/cells"
        return {str(path.relative_to(folder)): path for path in folder.rglob("*.parquet")}

    def logs(self) -> list[Path]:
        """What lies among the logs of cells."""
        folder = self.checkout.root / "logs/cells"
        return [path for path in folder.rglob("*") if path.is_file()]

    def rows(self) -> pd.DataFrame:
        """The first row of each shard, with the node of its footer."""
        read = [shard.read(path) for path in self.shards().values()]
        return pd.DataFrame(
            table.to_pandas().iloc[0].to_dict() | {"node": footer["machine"]["slurm"]["node"]}
            for table, footer in read
        )


class Watch:
    """Asks the queue every half second: which job is on which node."""

    def __init__(self, cluster) -> None:
        self.cluster, self.seen, self.stopped = cluster, [], threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.stopped.wait(0.5):
            self.seen.append(self.cluster.busy_nodes())

    def end(self) -> list[list[str]]:
        """The nodes of the running jobs at every moment."""
        self.stopped.set()
        self.thread.join()
        return self.seen


def await_empty(cluster, checkout) -> None:
    """Waits until no job of a checkout is left."""
    folder = str(checkout.root)
    words = "what Ctrl-C should cancel stays in the queue"
    wait(lambda: [folder] not in cluster.queue("%Z"), words, 600)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if reason := missing():
        pytest.skip(f"the tests on a SLURM cluster are left out: {reason}")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def runs(cluster, new_checkout):
    """Runs, ended: the ten cells before and after Ctrl-C, the lost node, and what is refused or stopped."""
    watch = Watch(cluster)
    told = {}
    limits = ("--retries", "0", "--set-resources", "measure_cell:runtime=1")
    refused = Run(cluster, new_checkout("faults"), "refused", *limits)
    lost = Run(cluster, new_checkout("slurm"), "lost")
    five = Run(cluster, new_checkout("slurm"), "five")
    started = [refused, lost, five]
    try:
        wait(lambda: cluster.measuring("lost1", "lost2"), "no cell to lose starts", 600)
        # PyTorch is imported meanwhile, and samples are taken for 12 s.
        time.sleep(5)
        (told["lost node"],) = cluster.measuring("lost1", "lost2")
        cluster.lose(told["lost node"])
        # What Snakemake has not yet seen to be finished is lost with what is under way.
        wait(
            lambda: five.said().count("(Rule: measure_cell)") >= 2, "no two cells are measured", 600
        )
        five.interrupt()
        told["interrupted"] = five.end(600)
        # SLURM ends a cancelled job after `scancel` has returned. One that is not cancelled goes on to its shard.
        await_empty(cluster, five.checkout)
        told["kept"] = {name: path.stat().st_mtime_ns for name, path in five.shards().items()}
        again = Run(cluster, five.checkout, "five")
        started.append(again)
        told["again"], told["lost"], told["refused"] = again.end(), lost.end(), refused.end()
    finally:
        for run in started:
            run.process.kill()
        told["nodes"] = watch.end()
    for name in ("interrupted", "again", "lost", "refused"):
        print(f"== {name}: exit code {told[name][0]}\n{told[name][1]}")
    return told | {"five": again, "frail": lost, "others": refused}


@pytest.fixture(scope="module")
def runs_of_ranks(cluster, new_checkout):
    """Runs of cells on two nodes, ended: one to its end, and one whose rank is killed before Ctrl-C."""
    # The first cell of this one must not have ended before its rank is killed: the other one begins then.
    halves = _slow_to_tell(cluster, new_checkout("slurm"))
    started = [halves]
    try:
        halved = _halve(cluster, halves)
        pair = Run(cluster, new_checkout("slurm"), "pair", target="steptime_scaling")
        started.append(pair)
        paired = pair.end()
    finally:
        for run in started:
            run.process.kill()
    for name, (code, said) in {"halved": halved, "paired": paired}.items():
        print(f"== {name}: exit code {code}\n{said}")
    return {"halved": halved, "paired": paired, "pair": pair, "halves": halves}


def _slow_to_tell(cluster, checkout) -> Run:
    """A run of which each question to SLURM takes some seconds, and can be seen meanwhile."""
    folder, path = checkout.root / "slow", cluster.variables()["PATH"]
    folder.mkdir()
    slow = folder / "squeue"
    slow.write_text(
        f'#!/bin/sh\ntouch asks\nsleep 3\nexec {shutil.which("squeue", path=path)} "$@"\n'
    )
    slow.chmod(0o755)
    found = {"PATH": f"{folder}:{path}"}
    return Run(cluster, checkout, "halves", target="steptime_scaling", variables=found)


def _halve(cluster, run: Run) -> tuple[int, str]:
    """Kills the second rank of a first cell, and ends a run by Ctrl-C while the ranks of a second one are at work.

    Just then Snakemake asks SLURM for its jobs' states, and would cancel none by itself.
    """
    wait(lambda: cluster.ranks("half2"), "no rank starts on the second node", 600)
    # Its framework is imported meanwhile, and samples are taken for two minutes.
    time.sleep(5)
    (second,) = cluster.ranks("half2")
    second.kill()
    wait(run.shards, "a killed rank is no row", 600)
    wait(lambda: cluster.ranks("half2"), "no second cell is measured", 600)
    asks = run.checkout.root / "asks"
    asks.unlink(missing_ok=True)
    wait(asks.exists, "Snakemake does not ask SLURM", 600)
    run.interrupt()
    told = run.end(600)
    await_empty(cluster, run.checkout)
    return told


def test_each_of_ten_cells_is_on_its_platform_s_node(runs):
    code, said = runs["again"]
    rows = runs["five"].rows()
    assert code == 0, said
    assert len(rows) == 10
    assert rows["node"].tolist() == [PLACES[platform] for platform in rows["platform"]]
    assert rows[rows["platform"] != "k80"]["status"].tolist() == ["ok"] * 8, rows[
        ["platform", "status", "reason"]
    ]
    # The only cells that ask for the GPU itself, which is none.
    assert rows[rows["platform"] == "k80"]["reason"].str.contains("sees no CUDA device").all()
    table = (runs["five"].checkout.root / "results/tables/steptime_times.md").read_text()
    assert all(f"Here: {platform}" in table for platform in PLACES), table


def test_what_cells_are_held_against_is_computed_on_a_node(runs):
    said = runs["interrupted"][1] + runs["again"][1]
    assert "rule_compute_reference" in said, said
    (reference,) = (runs["five"].checkout.root / "results/references").iterdir()
    with np.load(reference) as content:
        assert str(content["reason"]) == ""


def test_no_two_cells_share_a_node(runs):
    assert max(map(len, runs["nodes"])) >= 3
    for nodes in runs["nodes"]:
        assert len(nodes) == len(set(nodes)), nodes


def test_ctrl_c_cancels_what_waits_and_runs_and_keeps_what_is_measured(runs):
    assert runs["interrupted"][0] not in (0, -signal.SIGKILL)
    assert 2 <= len(runs["kept"]) < 10
    # The same command measures only what is missing.
    shards = runs["five"].shards()
    assert {name: shards[name].stat().st_mtime_ns for name in runs["kept"]} == runs["kept"]


def test_the_cell_of_a_lost_node_is_measured_on_another(runs):
    code, said = runs["lost"]
    assert code == 0 and "NODE_FAIL" in said, said
    row = runs["frail"].rows().iloc[0]
    assert (row["status"], row["node"]) == ("ok", ({"lost1", "lost2"} - {runs["lost node"]}).pop())


@pytest.mark.parametrize(
    "sentence",
    [
        # A GPU that the cluster does not have.
        "Batch job submission failed: Requested node configuration is not available",
        # A node that is not what its platform needs.
        "This machine (spare) is not the platform 'misplaced': its GPUs are none, and 1 x gtx980 is needed.",
        # The time limit, and the memory limit where there are no cgroups.
        "SLURM status is: 'TIMEOUT'",
        "SLURM status is: 'FAILED'",
    ],
)
def test_what_cannot_be_measured_is_said_and_is_no_row(runs, sentence):
    code, said = runs["refused"]
    assert code not in (0, -signal.SIGKILL)
    assert sentence in said, said
    assert runs["others"].shards() == {}


@pytest.mark.seldom
def test_ranks_are_tasks_of_one_step_on_two_nodes(runs_of_ranks):
    # Both nodes are this machine: it shows how ranks start and meet, and no time.
    code, said = runs_of_ranks["paired"]
    assert code == 0, said
    shown = {}
    for path in runs_of_ranks["pair"].shards().values():
        table, footer = shard.read(path)
        row = table.to_pandas().iloc[0]
        shown[row["environment"], row["exchange"]] = row["status"], row["reason"]
        if row["status"] == "ok":
            assert [rank["node"] for rank in footer["ranks"]] == ["pair1", "pair2"]
            assert f"{path.stem}.log" in {log.name for log in runs_of_ranks["pair"].logs()}
    ways = [(TORCH, "sync"), (JAX, "sync"), (MXNET, "sync"), (MXNET, "async")]
    assert {way: shown[way] for way in ways} == dict.fromkeys(ways, ("ok", ""))
    # Its weights are in memory that ranks have in common.
    assert shown[TORCH, "async"][0] == "unsupported"


@pytest.mark.seldom
def test_a_killed_rank_is_a_row_and_ends_the_rank_of_the_other_node(runs_of_ranks):
    (row,) = runs_of_ranks["halves"].rows().to_dict("records")
    assert row["status"] == "crashed" and row["reason"].startswith("rank 1: "), row


@pytest.mark.seldom
def test_ctrl_c_ends_the_ranks_of_both_nodes(runs_of_ranks, cluster):
    assert runs_of_ranks["halved"][0] not in (0, -signal.SIGKILL)
    wait(lambda: not any(map(cluster.ranks, ("half1", "half2"))), "ranks go on alone", 600)
