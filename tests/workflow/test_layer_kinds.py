"""What a new layer kind, and an edit of an old one, make a run do again."""

import re

import pytest

RECORD = '''"""x / (1 + |x|) of each value."""

import numpy as np

from steptime.networks.layers import LayerKind, moved_by_fused


def forward(node, own, x):
    size = 1.0 + np.abs(x)
    return x / size, lambda dy: ([dy / size**2], {})


LAYER = LayerKind(forward, numbers_moved=moved_by_fused)
'''
NETWORK = """
fcn5-softsign:
  variant_of: fcn5
  why: another activation
  parameters: 109603968
  layers:
    - dense: {units: hidden}
    - softsign
    - dense: {units: classes}
"""


@pytest.fixture
def checkout(new_checkout):
    return new_checkout()


def edit(checkout, path, old, new):
    path = checkout.root / path
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)


def jobs(checkout):
    """What decides each proof and each cell of the grid `ci`, as the run would be told: (program, JSON)."""
    listed = checkout.snakemake(
        "--dry-run", "--quiet", "host", "--printshellcmds", "--config", "grid=ci"
    )
    assert listed.returncode == 0, listed.stdout
    found = re.findall(r"(prove\.network|cells\.measure) --job '(.+?)' --", listed.stdout)
    assert len(found) > 30
    return set(found)


def test_a_new_layer_kind_proves_and_times_nothing_again(checkout):
    """Its record, its line in an adapter, and a network that has it, which no grid asks for."""
    before = jobs(checkout)
    layers = "workflow/scripts/steptime/networks/layers"
    edit(checkout, f"{layers}/softsign.py", "", RECORD)
    line = '    "softsign": lambda node, _: nn.Softsign(),\n'
    relu = '    "relu": lambda'
    edit(checkout, "workflow/scripts/worker/frameworks/torch/__init__.py", relu, line + relu)
    edit(checkout, "config/networks.yaml", "", NETWORK)
    assert jobs(checkout) == before

    edit(checkout, f"{layers}/conv.py", "** 2", "**2 * 1")
    changed = {
        (program, re.search(r'"network": "([^"]+)"', job)[1])
        for program, job in jobs(checkout) - before
    }
    assert changed == {("prove.network", name) for name in ("alexnet", "resnet50", "mnist")}
