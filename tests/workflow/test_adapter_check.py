"""`make adapter-check` names what the stand-in adapter lacks or gets wrong, one thing each."""

import pytest

STANDIN = "workflow/scripts/worker/frameworks/standin/__init__.py"


@pytest.fixture(scope="module")
def checkout(new_checkout):
    """A checkout with the stand-in's environment."""
    made = new_checkout("faults")
    made.run("--config", "grid=faults", "--", "results/environments/standin-1.0.json")
    return made


def check(checkout, adapter, *options):
    return checkout.launch("prove.adapter", "--adapter", adapter, *options)


@pytest.mark.parametrize(
    ("old", "new", "options", "code", "words"),
    [
        ("", "", [], 0, "What standin declares, it does."),
        ('"sigmoid")', ")", [], 0, "Missing: has no layer sigmoid: fcn5, fcn8, "),
        pytest.param(
            *("def versions(", "def version(", [], 1, "the adapter standin has no 'versions'."),
            marks=pytest.mark.seldom,
        ),
        ("", "", ["--mode", "wrong"], 1, "Wrong: layer dense: every update is 2 times the spec"),
    ],
)
def test_what_is_missing_or_wrong_is_said(checkout, old, new, options, code, words):
    path = checkout.root / STANDIN
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    try:
        done = check(checkout, "standin", *options)
    finally:
        path.write_text(text)
    assert words in done.stdout and done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_adapter_that_nobody_has_is_one_sentence(checkout):
    for name, words in {
        "pytorch": "There is no adapter 'pytorch' in worker/frameworks: did you mean 'torch'?",
        "jax": "has the adapter",
    }.items():
        done = check(checkout, name)
        assert done.returncode and words in done.stderr and len(done.stderr.splitlines()) == 1
