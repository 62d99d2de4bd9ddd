"""Each defect of the layer kinds of today is refused in a real framework: in PyTorch all of them.

With STEPTIME_ZOO=all (`make test-zoo`), specifications are mutated in all frameworks that have the layers, losses and
optimisers. Few frameworks are patched: proofs judge the arrays that a framework gives, whichever it is.
"""

from functools import cache
from pathlib import Path

import pytest
from defects import planting
from defects.planting import LOSS, changed
from defects.transformers import normed_before, untied
from today import ALL, CATALOGUE, TORCH, entry_of, only_zoo, prefix_of

from shared import declarations
from shared.narrow import BATCH
from steptime import networks
from steptime.prove import compare, golden, network
from steptime.tasks import that_proves
from worker import contract


def with_nodes(kind, **changes):
    """The specification with these entries in each node of a kind."""

    def mutate(spec):
        nodes = [node | changes if node["op"] == kind else node for node in spec["nodes"]]
        return spec | {"nodes": nodes}

    return mutate


BERT, GPT = "bert-base-tanh", "gpt-small-rms"
# {defect: (network, mutation, words of the refusal)}
MUTATED = {
    "no causal mask": (GPT, with_nodes("attention", causal=False), LOSS),
    "an epsilon of Keras's layer": (BERT, with_nodes("layer_norm", epsilon=1e-3), LOSS),
    "GELU by tanh": ("vit-tiny", with_nodes("gelu", op="gelu_tanh"), LOSS),
    "pre-norm for post-norm": (BERT, changed(BERT, layers=normed_before(BERT)), LOSS),
    "untied weights": (GPT, changed(GPT, layers=untied(GPT)), "7,296 in the framework"),
    "no decay": (
        "fcn5-adamw",
        lambda spec: spec | {"optimiser": spec["optimiser"] | {"weight_decay": 0.0}},
        "after one step",
    ),
}
# {defect: (network, function of `planted_in_torch`, words of the refusal)}
PLANTED = {
    "no gradient through one of two ties": (GPT, "half_tied", "the gradient of table1"),
    "a detached generator": ("gan", "detached", "the loss does not depend on dense1"),
    "a turned transposed kernel": ("deconv", "turned", LOSS),
    "weight decay in the gradient": ("fcn5-adamw", "decaying", "after one step"),
    "averages in bfloat16": ("fcn5-adamw", "shortened", "of their way in the median"),
}
# {adapter: what is planted there alone, as above; without words, it is no defect}
OWN = {
    "deeplearning4j": {
        "gates in another order": ("lstm32", "in_our_order", LOSS),
        "a mean over samples alone": ("lstm32", "by_samples", LOSS),
        "another epsilon": ("resnet50", "with_its_epsilon", LOSS),
    },
    "jax": {
        "grouped convolutions of GPUs": ("mobilenet", "as_on_a_gpu", ""),
        "transposed convolutions of GPUs": ("deconv", "as_on_a_gpu", ""),
    },
}


@cache
def expected(name):
    return golden.expect(networks.specify(name, planting.CATALOGUE, narrow=True), BATCH, 1)


def having():
    """(environment, mode, entry) of each adapter that has one of these networks; PyTorch's first."""
    for framework in CATALOGUE.values():
        environments = [*framework["environments"], *framework.get("history", ())]
        for environment in environments if ALL else {TORCH} & set(environments):
            entry = entry_of(environment)
            # Without a list of layers, an adapter has nothing to break.
            if (
                entry.get("device") == "gpu"
                or not declarations.declared(entry["adapter"])["LAYERS"]
            ):
                continue
            for mode in entry["modes"] if ALL else entry["modes"][:1]:
                if jobs(mode, entry, Path()):
                    yield environment, mode, entry


def jobs(mode, entry, folder):
    """{defect: (job, words of the refusal)} of all that the framework has, and each network as it is, without words."""
    has, made = declarations.declared(entry["adapter"]), {}
    # Of what is patched, the first mode tells.
    patched = (entry["adapter"], mode) == ("torch", entry["modes"][0])
    cases = MUTATED | (PLANTED if patched else {})
    cases |= OWN.get(entry["adapter"], {})
    right = {f"{name} as it is": (name, None, "") for name, *_ in cases.values()}
    for defect, (name, how, words) in (right | cases).items():
        spec = networks.specify(name, planting.CATALOGUE, narrow=True)
        asked = network.worker_job({"adapter": entry["adapter"], "mode": mode}, spec)
        asked |= {
            "task": "proof",
            "proves": that_proves(spec),
            "masks": {},
            "output": str(folder / f"{len(made)}.npz"),
        }
        try:
            contract.require(entry["adapter"], has, asked)
        except contract.Unsupported:
            continue
        if isinstance(how, str):
            asked["planted"] = how
        elif how:
            asked["mutated"] = how(spec)
        made[defect] = asked, words
    return made


@pytest.mark.parametrize(("environment", "mode", "entry"), [*having()])
def test_a_defect_of_a_layer_kind_is_refused_in_a_real_framework(
    environment, mode, entry, tmp_path
):
    prefix_of(environment)
    asked = jobs(mode, entry, tmp_path)
    planting.prove_in(environment, mode, [job for job, _ in asked.values()], tmp_path)
    # A mode may lack a layer, which its adapter says: then it trains no network that has it, right or wrong.
    made = {name: each for name, each in asked.items() if Path(each[0]["output"]).exists()}
    trained = {job["spec"]["network"] for job, words in made.values() if not words}
    # What it lacks may have been all that a mutation takes away.
    made = {name: each for name, each in made.items() if each[0]["spec"]["network"] in trained}
    assert all(
        name in made for name, (job, _) in asked.items() if job["spec"]["network"] in trained
    )
    assert mode != entry["modes"][0] or any(words for _, words in made.values())
    for defect, (job, words) in made.items():
        wanted = expected(job["spec"]["network"])
        proof = compare.judge(job["spec"], wanted, compare.read(Path(job["output"])))
        assert (proof.passed, words in proof.reason) == (not words, True), (defect, proof.reason)


@only_zoo
@pytest.mark.parametrize("environment", ["cntk-2.7", "cntk-2.5.1", "theano-1.0.5"])
def test_each_layer_kind_of_an_old_framework_is_right_alone(environment, tmp_path):
    """And dropout between LSTMs. No network of the catalogue asks for a bias of CNTK's grouped convolution."""
    entry = entry_of(environment)
    mode, kinds = entry["modes"][0], declarations.declared(entry["adapter"])["LAYERS"]
    asked = {"adapter": entry["adapter"], "mode": mode}
    specs = [networks.specify("drop-seq", planting.CATALOGUE, narrow=True)]
    specs += map(networks.tiny, kinds)
    asked = {spec["network"]: network.worker_job(asked, spec) for spec in specs}
    for kind, job in asked.items():
        job |= {"task": "proof", "proves": "step", "output": f"{tmp_path}/{kind}"}
        job["masks"] = networks.masks.of_network(job["spec"], BATCH)
    planting.prove_in(environment, mode, asked.values(), tmp_path)
    for kind, job in asked.items():
        proof = compare.judge(job["spec"], golden.expect(job["spec"]), compare.read(job["output"]))
        assert proof.passed, (kind, proof.reason)
