"""What the rules ask of Snakemake beyond what it documents, each in a run of the version that is installed.

A failure here says which method of steptime.flow.engine a new version of Snakemake broke.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

WORKFLOW = f"""
import json
from pathlib import Path

include: "{ROOT}/workflow/rules/engine.smk"

ASKED = {{}}

def ask(name, function, *arguments):
    try:
        ASKED[name] = function(*arguments)
    except Exception as error:
        ASKED[name] = repr(error)

rule first:
    output: "first.html"
    shell: "touch {{output}}"

rule third:
    output: "third.txt"
    shell: "echo made >> made; touch {{output}}"

rule second:
    input: "first.html", ancient("third.txt")
    output: "second.txt"
    shell: "touch {{output}}"

rule all:
    input: "second.txt"

def third_again(wildcards):
    return ["third.txt"] if Path("third.txt").exists() else []

ENGINE.make_by_default("all")
ENGINE.decide({{"third": third_again}})

ASKED.update(conda=ENGINE.uses_conda, main=ENGINE.is_main, counts=ENGINE.counts_jobs, cores=ENGINE.cores)
ASKED.update(tells=ENGINE.only_tells)
ask("describe", ENGINE.describe_rule, "first", "Says what it makes.")
ask("described", lambda: rules.first.rule.docstring)
ask("chatter", ENGINE.speak_plainly, str)
ask("shared out", ENGINE.share_out_host)
ask("weights", lambda: [workflow.global_resources["host"].value, rules.first.rule.resources["host"].value])
ask("at start", ENGINE.at_start, lambda: ASKED.update(begun=True))

onstart:
    ASKED.update(forced=ENGINE.is_forced("second.txt"), targets=sorted(ENGINE.asked_targets()))
    ask("jobs", lambda: [list(wildcards) for wildcards in ENGINE.jobs_to_run("first")])
    ask("outputs", lambda: sorted(ENGINE.outputs_of_jobs()))
    ask("to make", lambda: sorted(ENGINE.files_to_make()))
    ask("limited", lambda: workflow.scheduler.job_rate_limiter is not None)
    ask("unlimit", ENGINE.keep_turns)
    ask("limited afterwards", lambda: workflow.scheduler.job_rate_limiter is not None)
    Path("asked.json").write_text(json.dumps(ASKED))
"""


def run(folder, *arguments):
    (folder / "Snakefile").write_text(WORKFLOW)
    snakemake = Path(sys.executable).with_name("snakemake")
    done = subprocess.run(
        [snakemake, "--cores", "1", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "asked.json").read_text()), done.stderr


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the functions gave in a run on this machine that is quiet about its progress, and what it printed."""
    return run(tmp_path_factory.mktemp("engine"), "--quiet", "progress")


def test_snakemake_still_answers(here):
    nothing = ("describe", "unlimit", "chatter", "shared out", "at start")
    files = ["first.html", "second.txt", "third.txt"]
    known = {"conda": False, "main": True, "counts": False, "cores": 1, "tells": False}
    known |= {"forced": False, "targets": []}
    known |= {"described": "Says what it makes.", "jobs": [[]], "outputs": files}
    known |= {"to make": files, "limited": True, "limited afterwards": False}
    known |= {"weights": [100, 10], "begun": True}
    assert here[0] == known | dict.fromkeys(nothing)


def test_chatter_is_hidden_and_the_rest_is_not(here):
    assert "Select jobs" not in here[1] and "Execute " not in here[1]
    assert "rule first:" in here[1]


def test_what_is_asked_for_once_more_is_made_again_and_nothing_else(tmp_path):
    """An input that is marked as old carries it no further."""
    run(tmp_path, "second.txt")
    (tmp_path / "first.html").write_text("kept")
    second = (tmp_path / "second.txt").stat().st_mtime_ns
    (tmp_path / "asked.json").unlink()
    os.utime(tmp_path / "first.html", (0, 0))
    answers, _ = run(tmp_path, "second.txt")
    assert answers["to make"] == ["third.txt"] and answers["targets"] == ["second.txt"]
    assert (tmp_path / "made").read_text() == "made\nmade\n"
    assert (tmp_path / "second.txt").stat().st_mtime_ns == second


def test_jobs_that_are_counted_are_seen_and_chatter_is_shown_to_who_asks_for_it(tmp_path):
    """This is how Snakemake words it today: another wording would come back unseen."""
    answers, printed = run(tmp_path, "--jobs", "2", "--quiet", "host")
    assert answers["counts"] is True
    assert "Select jobs to execute" in printed and "Execute 1 jobs" in printed


TURNS = """
rule all:
    input: expand("small{number}", number=range(6)), "large"

rule small:
    output: "small{number}"
    priority: lambda wildcards: 9 if wildcards.number == "0" else 1
    resources: host=10
    shell: "sleep 0.{wildcards.number}5; echo {wildcards.number} >> order; touch {output}"

rule large:
    input: "small0"
    output: "large"
    priority: 5
    resources: host=100
    shell: "echo large >> order; touch {output}"

onstart:
    ENGINE.keep_turns()
"""


def test_a_job_that_needs_the_host_is_not_overtaken_by_small_ones(tmp_path):
    (tmp_path / "Snakefile").write_text(f'include: "{ROOT}/workflow/rules/engine.smk"\n{TURNS}')
    command = ["--cores", "2", "--resources", "host=100", "--scheduler", "greedy"]
    snakemake = Path(sys.executable).with_name("snakemake")
    done = subprocess.run([snakemake, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Two begin at once; what began beside the first ends, and then it is the turn of the large one.
    assert (tmp_path / "order").read_text().split().index("large") == 2


COPIED = """
rule make:
    output: "file"
    params: number=config["number"]
    shell: "echo {params.number} >> made; touch {output}"

ENGINE.decide({"make": lambda wildcards: ["file"] if config["number"] > 2 else []}, "make")
"""


def test_a_file_says_itself_whether_it_is_made_again_where_its_rule_has_other_parameters(tmp_path):
    (tmp_path / "Snakefile").write_text(f'include: "{ROOT}/workflow/rules/engine.smk"\n{COPIED}')
    snakemake = Path(sys.executable).with_name("snakemake")
    for number, made in ((1, ["1"]), (2, ["1"]), (3, ["1", "3"])):
        command = [snakemake, "--cores", "1", "--config", f"number={number}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "made").read_text().split() == made
