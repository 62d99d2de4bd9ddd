"""A watch: what its analyses cost, and the folder in which a candidate becomes an environment."""

import argparse
import math
import statistics
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from examples import NETWORKS, results_of, write_wheel
from test_timing import Network, measured
from today import TENSORFLOW, TORCH

from steptime.compare import bisect, candidate, interim, releases, results, watch, words
from steptime.compare.candidate import Folder
from steptime.compare.sides import CompareError
from steptime.environments import pins
from steptime.plan.schemas import ConfigurationError
from steptime.statistics import intervals
from steptime.statistics.intervals import Ratio
from steptime.statistics.verdicts import EQUAL, FASTER, NOT_DECIDED, SLOWER

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@pytest.mark.parametrize("cells", [1, 6])
def test_looks_do_not_add_up_to_false_words_and_a_slowdown_is_found(cells):
    import watching

    random = np.random.default_rng(cells)
    noise = 0.035 * random.standard_t(5, 4000) / np.sqrt(5 / 3)
    same = [watching.watched(random, noise, cells, 0) for _ in range(40)]
    assert sum(any(word in (SLOWER, FASTER) for word, _ in each) for each in same) <= 4
    assert np.mean([word == EQUAL for each in same for word, _ in each]) > 0.5
    slow = [watching.watched(random, noise, cells, 0.1) for _ in range(20)]
    assert np.mean([(word, pairs) == (SLOWER, 6) for each in slow for word, pairs in each]) > 0.8


@pytest.mark.parametrize("factor", [1.05, 1.1, 1.15, 1.2])
def test_a_word_and_the_interval_beside_it_are_by_the_same_look(tmp_path, factor):
    """At 95 % an interval may lie above 1 where a look, which may err less often, does not decide."""
    results_of(tmp_path / "results", {"torch-1.4": 1.0, "torch-9.9": factor})
    own = argparse.Namespace(networks=[*NETWORKS], margin=0.03, minutes=1)
    one = watch.Watch(SimpleNamespace(root=tmp_path), "torch-1.4", "torch-9.9", own)
    one._decide(6)
    rows = one.table()
    assert set(rows["verdict"]) <= {SLOWER, NOT_DECIDED}
    assert ((rows["ratio_low"] > 1) == (rows["verdict"] == SLOWER)).all()


def test_of_one_result_the_answer_is_its_line():
    line = {"known": Ratio(-0.4, 0.1, 5), "verdict": NOT_DECIDED, "one_platform": "local-cpu"}
    line |= {"ratio": 0.67, "ratio_low": 0.43, "ratio_high": 1.05, "other_platform": "local-cpu"}
    assert words.answer("a", "b", pd.DataFrame([line]), 0.03).startswith(
        "No difference between b and a is shown on local-cpu: b takes 0.67 ± 0.38 times as long"
    )


def test_a_candidate_whose_every_third_step_takes_twice_as_long_is_not_equal():
    same, longer = Ratio(0.0, 0.002, 10), Ratio(math.log(4 / 3), 0.002, 10)
    assert interim.decided({1: [same, same]}, 0.03, 6, 1) == {1: EQUAL}
    assert interim.decided({1: [same, longer]}, 0.03, 6, 1) == {1: SLOWER}
    assert interim.decided({1: [same, longer._replace(error=0.3)]}, 0.03, 6, 1) == {}


@pytest.mark.parametrize("seconds", [0.004, 0.038, 0.15, 1.0])
@pytest.mark.parametrize("every", [10, 30])
def test_a_candidate_whose_every_tenth_step_takes_ten_times_as_long_is_slower(seconds, every):
    """No median shows it: each process must take so many steps that some of them are among its samples."""
    draw = Random(every)

    def processes(slow):
        medians, means = {}, {}
        for repeat in range(1, 7):
            own, phase = seconds * math.exp(draw.gauss(0, 0.005)), draw.randrange(every)

            def step(at, own=own, phase=phase):
                is_slow = slow and (at + phase) % every == 0
                return own * math.exp(draw.gauss(0, 0.01)) * (10 if is_slow else 1)

            taken = measured(Network(step), *watch.SAMPLING.values())[2]
            samples = [each for _, each in taken]
            medians[repeat], means[repeat] = statistics.median(samples), statistics.fmean(samples)
        return medians, means

    for _ in range(3):
        pairs = zip(processes(slow=True), processes(slow=False), strict=True)
        logs = [intervals.paired(*pair) for pair in pairs]
        ratios = [interim.ratios_of({1: each}, {1: 1})[1] for each in logs]
        assert interim.decided({1: ratios}, watch.MARGIN, 6, 1) == {1: SLOWER}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("watch") / "a_b")


def pinned(folder, name):
    frameworks = yaml.safe_load((folder.root / "config/frameworks.yaml").read_text())
    owner = next(key for key, entry in frameworks.items() if name in entry["environments"])
    return owner, pins.load(folder.root / f"envs/{name}.yaml").packages, frameworks[owner]


def test_a_version_a_wheel_and_a_file_become_an_environment_beside_the_base(
    folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("UV_FIND_LINKS", "/own/wheels")
    # Without an index, packages stay as they are pinned.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(releases, "available", lambda *_: [])
    name = folder.add(TORCH, "2.12.1")
    owner, packages, _ = pinned(folder, name)
    assert (name, owner, packages["torch"]) == ("torch-2.12.1", "torch", "2.12.1")
    # Another package may have the base's version by chance, as Pygments has.
    name = folder.add(TENSORFLOW, "2.20.0")
    assert pinned(folder, name)[1]["tensorflow-cpu"] == "2.20.0"
    # What else a release needs stands in the project's environment of it.
    name = folder.add(TENSORFLOW, "2.4.1")
    owner, packages, entry = pinned(folder, name)
    assert packages | {"tensorflow-cpu": "2.4.1"} == packages and packages["numpy"] < "1.20"
    assert entry["differing"][name]["adapter"] == "tensorflow20"
    # What differs in the base differs in the candidate.
    owner, _, entry = pinned(folder, folder.add("torch-1.4", "1.5.0"))
    assert entry["differing"]["torch-1.5.0"] == entry["differing"]["torch-1.4"]
    wheel = tmp_path / "torch-2.14.0.dev1+mine-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"one")
    first = folder.add(TORCH, str(wheel))
    wheel.write_bytes(b"two")
    assert first != folder.add(TORCH, str(wheel))
    assert pinned(folder, first)[1]["torch"] == "2.14.0.dev1+mine"
    links = folder.variables["UV_FIND_LINKS"].split(",")
    assert links[0] == str(tmp_path) and "/own/wheels" in links
    assert folder.add(TORCH, "torch-1.4") == "torch-1.4"
    # The same command goes on where it was.
    again = Folder(folder.root).add(TORCH, TORCH)
    assert pinned(folder, again)[1] == pinned(folder, TORCH)[1]


def test_a_version_has_a_python_that_it_has_a_wheel_for(folder, monkeypatch):
    known = {"3.8": ["2.4.0", "2.5.0"], "3.11": ["2.13.0"]}
    known["3.10"] = ["2.8.4", "2.9.0", "2.10.0", "2.13.0"]
    monkeypatch.setattr(releases, "available", lambda package, python: known.get(python, []))
    like = {
        version: folder.like(TENSORFLOW, version)
        for version in ("2.4.0", "2.5.0", "2.9.0", "2.10.0", "2.13.0", "2.30.0")
    }
    assert [name.partition("-")[2] for name in like.values()] == [
        # 2.10 is as near to 2.8 as to 2.12.
        *("2.4", "2.4", "2.8", "2.8", "2.12", TENSORFLOW.partition("-")[2])
    ]
    assert folder.like(f"{TENSORFLOW}-cuda", "2.5.0") == f"{TENSORFLOW}-cuda"
    found = folder.releases(candidate.environment_of("tensorflow"))
    assert found == ["2.4.0", "2.5.0", "2.8.4", "2.9.0", "2.10.0", "2.13.0"]


def test_other_packages_of_a_version_change_where_they_do_not_fit(tmp_path, monkeypatch):
    folder = Folder(tmp_path / "a_b")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    write_wheel(tmp_path, "jax", "0.6.1", "jaxlib>=0.6.0", "numpy>=2", "ml_dtypes>=1", "parts")
    for name, version in pins.load(folder.root / "envs/jax-0.6.yaml").packages.items():
        for other in (version, "0.6.0", "0.6.2", "99"):
            write_wheel(tmp_path, name.replace("-", "_"), other)
    write_wheel(tmp_path, "parts", "1.0")
    name = folder.add("jax-0.6", "0.6.1")
    _, packages, _ = pinned(folder, name)
    known = pins.load(folder.root / "envs/jax-0.6.yaml").packages
    # Its own library is none of a later release.
    changed = {"jax": "0.6.1", "jaxlib": "0.6.0", "ml-dtypes": "99", "parts": "1.0"}
    assert packages == known | changed
    differing = folder.differing("jax-0.6", name)
    assert differing[:2] == ["jax 0.6.2 and 0.6.1", "jaxlib 0.6.2 and 0.6.0"]
    assert differing[-1] == "parts none and 1.0"
    # What the next one is like is an environment of the project, and not this candidate.
    assert folder.like("jax-0.6", "0.6.1") == "jax-0.6"


def test_what_a_release_may_need_was_there_in_its_days():
    def was_there(option, day):
        return ["torch==2.2.2"] if day >= "2024-03-27" else []

    assert releases.day_of(was_there) == ["--exclude-newer", "2024-04-03"]
    # Some indexes know no days, and a folder of wheels has what it has on all.
    assert releases.day_of(lambda *_: []) == releases.day_of(lambda *_: ["torch"]) == []


def test_what_is_no_candidate_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(releases, "available", lambda *_: ["2.12.0", "2.13.0"])
    for asked, said in (
        ("newest", "'newest' is no version, and no file"),
        ("tensorflo-2.12", "did you mean 'tensorflow-2.12'"),
        ("2.99", "There is no release 2.99: the newest are 2.13.0, 2.12.0"),
    ):
        with pytest.raises(CompareError, match=said):
            with Folder(tmp_path / "watch/a_b").kept_where_used() as folder:
                folder.add(TORCH, asked)
        assert not (tmp_path / "watch").exists()
    for asked, kind in ((["torch-9"], "environment"), ([TORCH, ["fcn55"]], "network")):
        with pytest.raises(ConfigurationError, match=f"no {kind} .* did you mean"):
            candidate.environment_of(*asked)
    for asked in ("abc", "-5", "nan"):
        with pytest.raises(CompareError, match=f"'{asked}' is not possible: write a number above"):
            results.number(asked)
    with pytest.raises(CompareError, match="The margin 3 is no share: write 0.05 for 5 %."):
        results.share("3")


class Held:
    """Takes the place of a watch: logarithms of the ratios of releases to the oldest, None where one cannot be made;
    two where those of means are others.
    """

    times: dict[str, float | tuple[float, float] | None] = {}
    last = ""
    # What the watch of two that are alike says of them.
    alike = ""

    def __init__(self, folder, base, candidate, options, against=interim.ONE):
        self.release = candidate.rpartition("-")[2]
        self.against = against
        # Between the ends none is called equal: the one that is asked for is nearer to one of them or not decided.
        assert options.margin == (0.03 if self.release == Held.last else 0)

    def measure(self):
        pass

    def tell(self):
        pass

    def table(self):
        logs = Held.times[self.release]
        logs = logs if isinstance(logs, tuple) else (logs, logs)
        ratios = [None if log is None else Ratio(log, 0.01, 10) for log in logs]
        held = dict(zip(("medians", "means"), ratios, strict=True))
        own = [held[of] for of in self.against.of]
        found = interim.decided({1: own} if None not in own else {}, 0, 6, 1, self.against)
        verdict = (self.release == Held.last and Held.alike) or found.get(1, NOT_DECIDED)
        return pd.DataFrame([dict(zip(results.KNOWN, ratios, strict=True), verdict=verdict)])


STEP = {"2.1.0": 0.01, "2.2.0": None, "2.3.0": 0.22, "2.4.0": 0.22, "2.5.0": 0.22}
# All of them are slower than 2.0.0.
STEPS = {"2.1.0": 0.1, "2.2.0": 0.2, "2.3.0": 0.3, "2.4.0": 0.4, "2.5.0": 0.5}
# Where half of the way cannot be told from a release.
MIDDLE = {"2.1.0": 0.0, "2.2.0": 0.115, "2.3.0": 0.22, "2.4.0": 0.22}
FASTER_NOW = {"2.1.0": -0.01, "2.2.0": -0.22, "2.3.0": -0.22, "2.4.0": -0.22}
# Where some steps take far longer, which no median shows.
STALLS = {"2.1.0": (0.01, 0.0), "2.2.0": (0.0, 0.29), "2.3.0": (0.01, 0.29)}


@pytest.mark.parametrize(
    ("times", "last", "alike", "status", "words"),
    [
        (
            *(STEP, "2.5.0", "", 1),
            "became slower between 2.1.0 and 2.3.0 (1.25 ± 0.03 times the time of 2.0.0, and 1.25 ± 0.03 times in "
            "2.5.0; no time: 2.2.0).",
        ),
        (
            STEP,
            "2.1.0",
            NOT_DECIDED,
            2,
            "2.1.0 cannot be told apart: there is nothing to look for.",
        ),
        (STEP, "2.1.0", EQUAL, 0, "are equal within the margin: there is nothing to look for."),
        (STEP, "2.2.0", "", 2, "2.0.0 or 2.2.0 has no time, as the table says"),
        (FASTER_NOW, "2.4.0", "", 0, "faster between 2.1.0 and 2.2.0 (0.80 ± 0.02 times the"),
        (MIDDLE, "2.4.0", "", 1, "between 2.1.0 and 2.2.0 (1.12 ± 0.03 times the time of 2.0"),
        (MIDDLE, "2.4.0", "", 1, "in 2.4.0; not decided, by the estimate: 2.2.0)."),
        (
            STALLS,
            "2.3.0",
            "",
            1,
            "slower between 2.1.0 and 2.2.0 (1.34 ± 0.03 times the mean time of 2.",
        ),
        (
            STEPS,
            "2.5.0",
            "",
            1,
            "slower between 2.2.0 and 2.3.0 (1.35 ± 0.03 times the time of 2.0.0, and 1.65 ± 0.04 times in 2.5.0).",
        ),
    ],
)
def test_the_release_that_changed_a_time_is_found(
    monkeypatch, capsys, times, last, alike, status, words
):
    monkeypatch.setattr(bisect, "Watch", Held)
    monkeypatch.setattr(Held, "times", times)
    monkeypatch.setattr(Held, "last", last)
    monkeypatch.setattr(Held, "alike", alike)
    folder = SimpleNamespace(add=lambda base, release: f"{base}-{release}")
    options = argparse.Namespace(networks=["lstm32"], margin=0.03)
    known = bisect.within(["2.0.0", *times], "2.0.0", last)
    counted = len(known) == 6
    assert bisect.Search(folder, TORCH, options, known).run() == status
    said = " ".join(capsys.readouterr().out.split())
    assert words in said
    assert ("4 releases between them; about 3 will be measured." in said) == counted


def test_a_release_between_the_ends_is_seldom_put_to_the_wrong_one():
    """What differs from the older end may be nearer to it, and half of the way is known no better than the way."""
    import watching

    random = np.random.default_rng(5)
    noise = 0.035 * random.standard_t(5, 4000) / np.sqrt(5 / 3)
    for way, wrong, right in ((0.25, 1, 0), (0.75, 0, 1)):
        found = [watching.placed(random, noise, way, 0.1) for _ in range(80)]
        assert found.count(watching.PLACES[wrong]) <= 2
        assert found.count(watching.PLACES[right]) > 16
    # Half of the way itself is on either side as seldom as an analysis may err.
    found = [watching.placed(random, noise, 0.5, 0.1) for _ in range(150)]
    assert sum(bool(place) for place in found if place in watching.PLACES) <= 9


def test_releases_are_ordered_as_versions_and_the_wrong_way_round_is_refused():
    known = ["1.10.0", "1.9.0", "1.2.0"]
    assert bisect.within(known, "1.2.0", "1.10.0") == ["1.2.0", "1.9.0", "1.10.0"]
    assert bisect.within([*known, "1.1.0"], "1.1", "1.9") == ["1.1.0", "1.2.0", "1.9.0"]
    with pytest.raises(CompareError, match="1.10.0 is not older than 1.2.0"):
        bisect.within(known, "1.10.0", "1.2.0")
    with pytest.raises(CompareError, match="There is no release 1.3: write one of"):
        bisect.within(known, "1.3", "1.9")
