"""Single operations: wrong ones are refused before they are timed, and what is drawn of right ones."""

from types import SimpleNamespace

import numpy as np
import pytest
from examples import CATALOGUE, FRAMEWORKS, measured, words

from shared.operations import Operation
from steptime import networks
from steptime.artefacts.results import convolutions, products
from steptime.render import tables
from worker import building, contract, parts, timing
from worker.tasks import convolutions as worker_convolutions
from worker.tasks import products as worker_products

SAMPLING = {"budget_seconds": 0.01, "precision": 0.5, "least_samples": 3}
SIZES = {(6, 40, 5): ["forward"], (5, 6, 7): [worker_products.WEIGHTS]}
NODE = {"name": "conv1", "channels": 4, "kernel": 3, "in_shape": [2, 9, 8], "stride": 2}
NODE |= {"padding": 1, "shape": [4, 5, 4], "bias": True}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    for name in ("WARMUP_SECONDS", "LEAST_SECONDS", "BLOCK_SECONDS"):
        monkeypatch.setattr(timing, name, 0.001)


def multiply(part, left=None):
    """A stand-in for a framework: NumPy."""
    left = part.left if left is None else left
    factors = [
        each.T if turned else each
        for each, turned in zip((left, part.right), part.turned, strict=True)
    ]
    kept = [part.weights.copy() if part.calls else None]

    def run(times):
        for _ in range(times):
            product = factors[0] @ factors[1]
            kept[0] = kept[0] - part.rate * product if part.calls else product

    return Operation(run, lambda: kept[0])


def convolve(part, padding):
    """A stand-in for a framework: each place of the result by itself."""
    edge = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    images, kernel = np.pad(part.inputs, edge), part.weights.shape[2]
    made = np.zeros(part.shape, np.float32)
    for row, column in np.ndindex(*part.shape[2:]):
        down, across = (slice(part.stride * at, part.stride * at + kernel) for at in (row, column))
        made[:, :, row, column] = np.tensordot(
            images[:, :, down, across], part.weights, ([1, 2, 3], [1, 2, 3])
        )
    return Operation(lambda times: None, lambda: made)


def bfloat16(values):
    return (values.view(np.uint32) & 0xFFFF0000).view(np.float32)


def told(build, found):
    """What the worker says of each part, by way, when a framework builds them so."""
    module = SimpleNamespace(
        start=lambda job: {"threads": 1, "settings": {}}, versions=dict, build=build
    )
    said = []
    job = {"adapter": "standin.parts", "device": "cpu", "sampling": SAMPLING}
    parts.run(building.Loaded(module, {}, 0.0), job, lambda *e, **f: said.append((*e, f)), found)
    assert [name for name, _ in said][:2] == ["ready", "warmup"] and said[-1][0] == "done"
    return {fields["way"]: fields for name, fields in said if name == "part"}


def test_every_order_and_both_kinds_of_update_are_proven_and_timed():
    found = told(multiply, worker_products.products(SIZES))
    assert list(found) == ["NN", "NT", "TN", "one call", "two calls"]
    for part in found.values():
        assert part["error"] < 1e-6 and not part["lacking"] and len(part["samples"]) >= 3
    assert found["NN"]["flops"] == 2 * 5 * 6 * 7


def test_what_is_wrong_late_or_missing_has_no_time_and_the_others_go_on():
    def build(part):
        if part.way == "NN":
            return multiply(part, bfloat16(part.left))
        if part.way == "NT":
            raise contract.Unsupported("there is no such product")
        right = multiply(part)
        if part.calls == 1:
            # The weights are left as they were.
            return Operation(right.run, lambda: part.weights)
        return right

    found = told(build, worker_products.products({(5, 64, 7): [worker_products.WEIGHTS]}))
    assert "it is off by" in found["NN"]["lacking"] and 1e-4 < found["NN"]["error"] < 1e-2
    assert found["NT"]["lacking"] == "there is no such product"
    assert "it is off by" in found["one call"]["lacking"] and not found["one call"]["samples"]
    assert found["TN"]["samples"] and found["two calls"]["samples"]


def test_a_framework_that_has_no_part_at_all_is_unsupported():
    def build(part):
        raise contract.Unsupported("no products")

    with pytest.raises(contract.Unsupported, match="no products"):
        told(build, worker_products.products(SIZES))


@pytest.mark.parametrize(("padding", "right"), [(1, True), (0, False)])
def test_a_convolution_is_held_against_float64_at_every_place(padding, right):
    ways = worker_convolutions.convolutions([NODE], 3)
    if not right:
        with pytest.raises(contract.Unsupported, match="it is off by"):
            told(lambda part: shifted(part), ways)
        return
    found = told(lambda part: convolve(part, padding), ways)
    assert found["fft"]["error"] < 1e-6 and found["fft"]["flops"] == 2 * 3 * 80 * 18


def shifted(part):
    """Each image moved by one pixel, as wrong padding does."""
    part.inputs = np.roll(part.inputs, 1, axis=3)
    wrong = convolve(part, 1)
    return wrong


def test_fcn8_has_no_size_of_a_product_that_fcn5_has_not():
    sizes = [
        worker_products.sizes(networks.specify(name, CATALOGUE), 64) for name in ("fcn5", "fcn8")
    ]
    assert sizes[0] == sizes[1] and (64, 26752, 2048) in sizes[0]


def inputs(tmp_path, *rows, **entry):
    """What an artefact of these cells may read."""
    return SimpleNamespace(
        measured=measured(tmp_path, *rows),
        frameworks=FRAMEWORKS,
        networks=CATALOGUE,
        page=words(),
        entry={"title": "Title", "caption": "Caption.", "printed_ratio": 3} | entry,
    )


def row(way, seconds, part="2 x 2 by 2 x 2", **changes):
    lacking = "" if seconds else "it has none"
    made = {"part": part, "role": "forward", "way": way, "flops": 10**9, "lacking": lacking}
    return made | {"seconds": seconds, "error": 1e-7, "cpus": 1.0, "task": "products"} | changes


def test_products_are_divided_by_nn_of_the_same_cell_and_dashes_say_why(tmp_path):
    cells = [row("NN", 0.5), row("NT", 1.5), row("TN", None), row("two calls", 0.75)]
    cells += [row("one call", 0.5), row("NN", 0.1, threads=2), row("NT", 0.1, threads=2)]
    cells.append({"environment": "mxnet-1.9", "framework": "mxnet", "status": "crashed"})
    cells[-1] |= {"reason": "SIGSEGV", "seconds": None, "task": "products"}
    made = inputs(tmp_path, *cells)
    data, layout = products.table(made)
    values = data.set_index(["environment", "threads", "way"])["value"]
    assert values["torch-9.9", 1, "NT"] == 3 and values["torch-9.9", 2, "NT"] == 1
    assert values["torch-9.9", 1, "two calls"] == 1.5
    torch = layout.xs("PyTorch 9.9.0", level="Framework").iloc[0]
    assert torch["this machine, 1 thread", products.SPEED].text == "2.00"
    assert torch["this machine, 1 thread", "TN ÷ NN"].footnotes == ("it has none",)
    assert torch["this machine, 1 thread", products.BY_ONE].text == "1.50"
    mxnet = layout.xs("MXNet 9.9.0", level="Framework").iloc[0]
    assert mxnet["this machine, 1 thread", "NT ÷ NN"].footnotes == ("crashed: SIGSEGV",)
    tables.write(tmp_path / "table", data, layout, made.page)
    drawn, _ = products.figure(made)
    assert set(drawn["threads"]) == {2}


def test_a_ratio_of_repeats_is_that_of_processes_of_one_trial(tmp_path):
    times = {"NN": (0.5, 1.0), "NT": (0.9, 2.2)}
    cells = [
        row(way, seconds, repeat=repeat)
        for way, both in times.items()
        for repeat, seconds in enumerate(both, 1)
    ]
    data, layout = products.table(inputs(tmp_path, *cells))
    wanted = (0.9 / 0.5 * 2.2 / 1.0) ** 0.5
    assert data.set_index("way")["value"]["NT"] == pytest.approx(wanted)
    assert layout.iloc[0]["this machine, 1 thread", "NT ÷ NN"].text.startswith(f"{wanted:.2f} ")


def test_the_fastest_way_of_a_layer_is_bold(tmp_path):
    cells = [row("direct", 0.5, "conv1"), row("fft", 0.25, "conv1"), row("im2col", 0.125, "conv2")]
    made = inputs(tmp_path, *cells)
    _, layout = convolutions.table(made)
    line = layout.xs("conv1", level="Layer").iloc[0]["this machine, 1 thread"]
    assert [name for name in line.index if line[name].best is not False] == ["fft"]
    assert line["fft"].text == "250" and line["winograd"].text == "–"
    drawn, _ = convolutions.figure(made)
    assert sorted(drawn["value"]) == [125, 250, 500]
