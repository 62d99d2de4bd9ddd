"""What defects are planted with: other specifications, layers, losses and updates."""

import copy
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import yaml
from defects.stand_in import Trainer, adapter, replacing
from today import entry_of, prefix_of

from steptime import networks
from steptime.cells.measure import fill
from steptime.prove import golden
from steptime.supervisor import supervise

ROOT = Path(__file__).parents[2]
CATALOGUE = yaml.safe_load((ROOT / "config/networks.yaml").read_text())
# Networks with dropout and no data set, as people write them.
DROPPING = yaml.safe_load((ROOT / "tests/cases/dropout.yaml").read_text())
CATALOGUE |= DROPPING
# Right networks as people write them.
HONEST = yaml.safe_load((ROOT / "tests/cases/honest.yaml").read_text())
# So that a defect can be planted in each framework that has its layer: some have no exact GELU, or no attention.
CATALOGUE["bert-base-tanh"] = json.loads(
    json.dumps(CATALOGUE["bert-base"]).replace('"gelu"', '"gelu_tanh"')
)
CATALOGUE["fcn5-adamw"] = CATALOGUE["fcn5"] | {
    "optimiser": CATALOGUE["gpt-small-adamw"]["optimiser"]
}


def prove_in(environment, mode, jobs, folder):
    """Proves jobs, each with its defect, in a real framework: one process for all of them."""
    prefix, entry = prefix_of(environment), entry_of(environment)
    done = subprocess.run(
        [prefix / "bin/python", ROOT / "tests/defects/in_frameworks.py"],
        input=json.dumps(list(jobs)),
        # What a version of Theano has compiled, another one cannot load: it lies in the environment's own home.
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "workflow/scripts")}
        | supervise.own_folders(prefix, str(folder))
        | fill(entry.get("variables", {}), 1, mode, prefix),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def changed(network, narrow=None, **entry):
    """A mutation: the narrow specification of the network with other sizes or layers."""
    catalogue = copy.deepcopy(CATALOGUE)
    catalogue[network] = networks.resolve(network, catalogue) | entry
    catalogue[network]["narrow"].update(narrow or {})
    return lambda spec: networks.specify(network, catalogue, narrow=True)


# A planted defect is (network, adapter, words of the refusal).
LOSS = "the first loss is"


def by(network, trainer, words=LOSS):
    """A defect of a trainer."""
    return network, adapter(trainer), words


def wrong(network, words=LOSS, **operations):
    """A defect of layer kinds: these operations in their places."""
    return by(network, replacing(**operations), words)


def other(network, words=LOSS, feed=None, **entry):
    """A defect of the network: its narrow specification has other sizes or layers."""
    return network, adapter(mutate=changed(network, **entry), feed=feed), words


class Updating(Trainer):
    """Takes another step than its optimiser, but for plain SGD, by which a proof reads gradients."""

    def update(self, taken):
        if self.spec["optimiser"]["name"] == "sgd":
            return super().update(taken)
        kept = self.__dict__.setdefault("kept", {})
        found = self.updated(taken.gradients, kept)
        self.values = {name: values.astype(np.float32) for name, values in found.items()}


def losing(value):
    """A trainer whose loss is another one."""

    class Losing(Trainer):
        def step(self):
            rightful = golden.loss_of
            golden.loss_of = lambda spec: value
            try:
                return super().step()
            finally:
                golden.loss_of = rightful

    return Losing
