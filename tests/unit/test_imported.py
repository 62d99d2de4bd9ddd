"""A user's module becomes a network that is the same function, or sentences; wrong mappings are refused."""

import copy
import math

import numpy as np
import pytest
import yaml

from steptime import networks
from steptime.artefacts import common
from steptime.imported import entry as entries
from steptime.imported import found, mapper, module, proof, views
from steptime.imported.digest import function_digest
from steptime.prove import golden
from steptime.reading import InputError


def call(name, op, shape, *args, path="", **kwargs):
    return {
        "name": name,
        "op": op,
        "shape": shape,
        "path": path,
        "args": list(args),
        "kwargs": kwargs,
    }


def of(name):
    return {"node": name}


def graph(nodes, parameters, shape):
    own = [
        {"name": name, "op": "parameter", "parameter": name, "shape": extents, "path": ""}
        for name, extents in parameters.items()
    ]
    taken = {"name": "x", "op": "input", "shape": [8, *shape], "path": ""}
    last = call("output", "output", None, [of(nodes[-1]["name"])])
    return {"nodes": [*own, taken, *nodes, last], "parameters": parameters}


def recurrent():
    """A graph of an LSTM whose last step goes through a linear."""
    parameters = {"ih": [16, 3], "hh": [16, 4], "bih": [16], "bhh": [16], "w": [5, 4], "b": [5]}
    zero = {"name": "zero", "op": "constant", "zero": True, "shape": [1, 8, 4], "path": ""}
    weights = [of(name) for name in ("ih", "hh", "bih", "bhh")]
    nodes = [
        zero,
        call(
            "l",
            "lstm",
            None,
            of("x"),
            [of("zero")] * 2,
            weights,
            True,
            1,
            0.0,
            True,
            False,
            True,
            path="lstm",
        ),
        call("y", "getitem", [8, 6, 4], of("l"), 0),
        call("s", "select", [8, 4], of("y"), 1, -1),
        call("h", "linear", [8, 5], of("s"), of("w"), of("b"), path="head"),
    ]
    return graph(nodes, parameters, [6, 3])


def convolutional(epsilon=1e-5, up=False, extent=8, momentum=0.1):
    half = -(-extent // 2)
    parameters = {"w": [4, 3, 3, 3], "g": [4], "be": [4], "h": [5, 4 * half**2]}
    maps = [8, 4, extent, extent]
    small = [8, 4, half, half]
    none = [None, None]
    nodes = [
        call("c", "conv2d", maps, of("x"), of("w"), None, [1, 1], [1, 1], path="conv"),
        call(
            "n",
            "batch_norm",
            maps,
            of("c"),
            of("g"),
            of("be"),
            *none,
            True,
            momentum,
            epsilon,
            True,
            path="norm",
        ),
        call("r", "relu_", maps, of("n"), path="act"),
        call("p", "max_pool2d", small, of("r"), [2, 2], [2, 2], [0, 0], [1, 1], up, path="pool"),
        call("f", "flatten", [8, math.prod(small[1:])], of("p"), 1),
        call("o", "linear", [8, 5], of("f"), of("h"), path="head"),
    ]
    return graph(nodes, parameters, [3, extent, extent])


def mapped(of_module, shape):
    job = {"shape": shape, "vocabulary": 0, "loss": "softmax_cross_entropy"}
    return module.imported(of_module, job, "net")


def upsampling(align_corners=False, wide=16):
    """A graph of a convolution whose image is made larger, by interpolation."""
    large = [8, 4, 12, wide]
    nodes = [
        call("c", "conv2d", [8, 4, 6, 8], of("x"), of("w"), None, [1, 1], [1, 1]),
        call("u", "upsample_bilinear2d", large, of("c"), None, align_corners, [2.0, wide / 8]),
        call("f", "flatten", [8, 48 * wide], of("u"), 1),
        call("o", "linear", [8, 5], of("f"), of("h")),
    ]
    return graph(nodes, {"w": [4, 3, 3, 3], "h": [5, 48 * wide]}, [3, 6, 8])


def one_dimensional(shape=(2, 40)):
    """A graph of convolutions along steps: one with a stride, a depthwise one with gaps, added to what it was given."""
    parameters = {"w": [4, 2, 5], "b": [4], "g": [4], "be": [4], "d": [4, 1, 3], "h": [5, 4]}
    maps, small, none = [8, 4, 20], [8, 4, 10], [None, None]
    taken = of("x")
    nodes = []
    if len(shape) == 1:
        nodes, taken = [call("v", "unsqueeze", [8, 1, *shape], of("x"), 1)], of("v")
        parameters["w"] = [4, 1, 5]
    nodes += [
        call("c", "conv1d", maps, taken, of("w"), of("b"), [2], [2], path="conv"),
        call("n", "batch_norm", maps, of("c"), of("g"), of("be"), *none, True, 0.1, 1e-5, True),
        call("r", "relu", maps, of("n")),
        call("p", "max_pool1d", small, of("r"), [2], [2]),
        call("d1", "conv1d", small, of("p"), of("d"), None, [1], [2], [2], 4),
        call("a", "add", small, of("d1"), of("p")),
        call("m", "mean", [8, 4], of("a"), [-1]),
        call("o", "linear", [8, 5], of("m"), of("h")),
    ]
    return graph(nodes, parameters, list(shape))


def as_theirs(values, how):
    values = values.T if how in ("transposed", "of one pixel") else values
    values = values[:, :, 0] if how == "one row" else values
    return values[:, :, None, None] if how == "of one pixel" else values


def stepped(layers, spec):
    """What a module that is this network would have written down, by its own names."""
    random = np.random.RandomState(3)
    theirs = {}
    for layer in layers:
        for role, sources in layer.sources.items():
            shape = next(
                e["shape"] for e in spec["parameters"] if e["name"] == f"{layer.name}/{role}"
            )
            for name, how in sources:
                values = random.normal(size=shape) / 3
                theirs[name] = as_theirs(values, how)
    arrays = {f"parameter/{name}": values for name, values in theirs.items()}
    weights = {
        f"{layer.name}/{role}": proof._joined(sources, arrays, "parameter")
        for layer in layers
        for role, sources in layer.sources.items()
    }
    arrays["inputs"] = random.normal(size=[8, *spec["input"]["shape"]])
    arrays["labels"] = random.randint(0, 5, 8)
    logits, tape = golden.forward(spec, weights, arrays["inputs"])
    arrays["outputs"] = logits.copy()
    arrays["loss"], flowing = golden.loss_of(spec)(logits, arrays["labels"])
    gradients = golden.backward(spec, tape, flowing)
    for layer in layers:
        for role, sources in layer.sources.items():
            for name, how in sources:
                own = gradients[f"{layer.name}/{role}"]
                arrays[f"gradient/{name}"] = as_theirs(own, how)
                arrays[f"moved/gradient/{name}"] = 0.0 * arrays[f"gradient/{name}"]
    return arrays | {"moved/outputs": 0.0 * logits}


@pytest.fixture(scope="module")
def lstm():
    layers, content = mapped(recurrent(), [6, 3])
    spec = networks.specify("net", {"net": content})
    return layers, spec, stepped(layers, spec)


def test_a_module_is_mapped_with_its_paths_and_nothing_left_over():
    layers, content = mapped(convolutional(), [3, 8, 8])
    assert [layer.kind for layer in layers] == [
        "conv", "batch_norm", "relu", "max_pool", "flatten", "dense",
    ]  # fmt: skip
    assert content["parameters"] == 108 + 8 + 4 * 16 * 5
    told = entries.text("net", content, layers)
    assert "- conv: {channels: 4, kernel: 3, padding: 1, bias: false}" in told and "# conv" in told


def test_a_right_mapping_is_the_same_function(lstm):
    layers, spec, arrays = lstm
    verdict = proof.compare(spec, layers, arrays)
    assert not verdict.reason and verdict.gradients < 1e-12


def wrong_recurrent(sources):
    sources["recurrent"] = [(sources["recurrent"][0][0], "same")]


def wrong_bias(sources):
    sources["bias"] = [sources["bias"][0], (sources["bias"][0][0], "second")]


@pytest.mark.parametrize(("wrong", "said"), [(wrong_recurrent, "shape"), (wrong_bias, "differ by")])
def test_a_wrong_place_of_a_recurrent_parameter_is_refused(lstm, wrong, said):
    layers, spec, arrays = copy.deepcopy(lstm)
    wrong(layers[0].sources)
    assert said in proof.compare(spec, layers, arrays).reason


def test_gates_in_another_order_are_refused(lstm):
    layers, spec, arrays = lstm
    # As Keras's older releases and CNTK have them, in both matrices and the biases.
    turned = dict(arrays)
    for name in ("ih", "hh", "bih", "bhh"):
        i, f, g, o = np.split(arrays[f"parameter/{name}"], 4)
        turned[f"parameter/{name}"] = np.concatenate([i, g, f, o])
    assert "its outputs differ by" in proof.compare(spec, layers, turned).reason


def test_a_recurrent_square_matrix_that_is_not_transposed_is_refused():
    """Of one gate, the matrix is square: no shape tells."""
    layers, content = mapped(recurrent(), [6, 3])
    content["layers"][0], layers[0].kind = {"rnn": {"units": 4}}, "rnn"
    layers[0].name = "rnn1"
    spec = networks.specify("net", {"net": content})
    arrays = stepped(layers, spec)
    assert not proof.compare(spec, layers, arrays).reason
    layers[0].sources["recurrent"] = [("hh", "same")]
    assert "its outputs differ by" in proof.compare(spec, layers, arrays).reason


def test_a_gradient_alone_can_refuse(lstm):
    layers, spec, arrays = lstm
    wrong = arrays | {"gradient/w": arrays["gradient/w"] * (1 + 1e-8)}
    assert "the gradients of w differ" in proof.compare(spec, layers, wrong).reason


def test_what_moves_by_itself_proves_nothing(lstm):
    layers, spec, arrays = lstm
    moved = arrays | {"moved/outputs": arrays["outputs"] * 1e-7}
    assert "nothing can be proven" in proof.compare(spec, layers, moved).reason


def test_a_parameter_has_exactly_one_place():
    layers, _ = mapped(convolutional(), [3, 8, 8])
    assert "left has no part" in proof.placed(layers, convolutional()["parameters"] | {"left": [2]})
    layers[-1].sources["bias"] = [("be", "same")]
    assert "be is shared by" in proof.placed(layers, convolutional()["parameters"])


def test_all_refusals_are_said_at_once():
    nodes = convolutional()
    nodes["nodes"].insert(-1, call("a", "mish", [8, 5], of("o"), path="end"))
    nodes["nodes"].insert(-1, call("b", "mish", [8, 5], of("a"), path="end2"))
    nodes["nodes"].insert(-1, call("d", "log_softmax", [8, 5], of("b"), 1))
    nodes["nodes"][-1]["args"] = [[of("d")]]
    with pytest.raises(InputError) as error:
        mapped(nodes, [3, 8, 8])
    first, second, last = str(error.value).split("\n")
    assert first == "net uses mish 2 times (first: end): no layer kind does that. Nearest: silu."
    assert "log_softmax once: no layer kind does that. Nearest: leave it out" in second
    assert last == "net is not imported: 3 operators without a layer."


def test_an_attention_that_is_written_out_is_said_once_for_each_module():
    said = [
        ("matmul", "a product of two values", "one.attn"),
        ("softmax", "", "one.attn"),
        ("index", "", "two.attn"),
        ("einsum", "", "two.attn"),
        ("softmax", "", "two.attn.shares"),
        ("softmax", "", "end"),
    ]
    gathered = mapper.gathered([mapper.Refusal(*each) for each in said])
    assert [(each.operator, each.why, each.path) for each in gathered] == [
        ("attention", "written out", "one.attn"),
        ("attention", "with relative positions", "two.attn"),
        ("softmax", "", "end"),
    ]


@pytest.mark.parametrize(
    ("changed", "written"),
    [
        ({"epsilon": 1e-3, "momentum": 0.01}, {"batch_norm": {"epsilon": 1e-3, "momentum": 0.01}}),
        ({"up": True, "extent": 9}, {"max_pool": {"kernel": 2, "stride": 2, "up": True}}),
    ],
)
def test_a_value_that_is_not_the_usual_one_is_written(changed, written):
    layers, _ = mapped(convolutional(**changed), [3, *[changed.get("extent", 8)] * 2])
    ((kind, options),) = written.items()
    own = next(layer.options for layer in layers if layer.kind == kind)
    assert {key: own[key] for key in own if key != "raised"} == options


def test_squeeze_and_excitation_and_a_branch_of_channels():
    maps = [8, 4, 8, 8]
    nodes = [
        call("p", "constant_pad_nd", [8, 4, 9, 8], of("x"), [0, 0, 0, 1]),
        call("c", "conv2d", maps, of("p"), of("w"), None, [1, 1], [0, 1], [1, 1]),
        call("m", "adaptive_avg_pool2d", [8, 4, 1, 1], of("c"), [1, 1]),
        call("s", "conv2d", [8, 4, 1, 1], of("m"), of("v"), None, [1, 1], [0, 0]),
        call("h", "hardsigmoid", [8, 4, 1, 1], of("s")),
        call("y", "mul", maps, of("h"), of("c")),
        call("k", "chunk", None, of("y"), 2, 1),
        call("l", "getitem", [8, 2, 8, 8], of("k"), 1),
        call("f", "flatten", [8, 128], of("l"), 1),
        call("o", "linear", [8, 5], of("f"), of("h2")),
    ]
    parameters = {"w": [4, 4, 2, 3], "v": [4, 4, 1, 1], "h2": [5, 128]}
    layers, content = mapped(graph(nodes, parameters, [4, 8, 8]), [4, 8, 8])
    kinds = [layer.kind for layer in layers]
    assert kinds[3:7] == ["dense", "hard_sigmoid", "scale_channels", "channel_part"]
    assert layers[0].options == {"rows": [0, 1], "columns": [0, 0]}
    assert layers[1].options["kernel"] == [2, 3] and layers[1].options["padding"] == [0, 1]
    spec = networks.specify("net", {"net": content})
    assert not proof.compare(spec, layers, stepped(layers, spec)).reason


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (([], {}), {}),
        # As people write it by its place, behind a mask of minus infinity.
        (([of("m"), 0.1], {}), {"causal": True, "dropout": 0.1}),
        (([], {"dropout_p": 0.1}), {"dropout": 0.1}),
    ],
)
def test_dropout_of_shares_is_written(given, written):
    """Module and reference are compared without dropout: no number would tell that it is lost."""
    args, kwargs = given
    mask = {"name": "m", "op": "constant", "causal": True, "shape": [6, 6], "path": ""}
    heads = [8, 2, 6, 2]
    nodes = [mask]
    for name in "qkv":
        nodes += [
            call(f"{name}l", "linear", [8, 6, 4], of("x"), of(f"{name}w")),
            call(f"{name}s", "view", [8, 6, 2, 2], of(f"{name}l"), [8, 6, 2, 2]),
            call(name, "transpose", heads, of(f"{name}s"), 1, 2),
        ]
    nodes += [
        call("a", "scaled_dot_product_attention", heads, *map(of, "qkv"), *args, **kwargs),
        call("t", "transpose", [8, 6, 2, 2], of("a"), 1, 2),
        call("y", "view", [8, 6, 4], of("t"), [8, 6, 4]),
        call("o", "linear", [8, 6, 5], of("y"), of("h")),
    ]
    layers, _ = mapped(
        graph(nodes, {f"{n}w": [4, 3] for n in "qkv"} | {"h": [5, 4]}, [6, 3]), [6, 3]
    )
    assert layers[1].options == {"heads": 2} | written


def test_an_image_is_upsampled_between_its_pixels_but_not_its_corners():
    layers, content = mapped(upsampling(), [3, 6, 8])
    assert layers[1].options == {"factor": 2, "bilinear": True}
    assert networks.specify("net", {"net": content})["options"] == ["upsample bilinear"]
    with pytest.raises(InputError) as error:
        mapped(upsampling(align_corners=True), [3, 6, 8])
    told = "upsample_bilinear2d once, with align_corners=True: no layer kind has that"
    assert f"{told}. Nearest: align_corners=False." in str(error.value)
    with pytest.raises(InputError, match="a factor that is no whole number"):
        mapped(upsampling(wide=12), [3, 6, 8])


def test_an_output_of_one_channel_is_in_order():
    """Of an axis of one, no order can be seen: a U-Net's map of a single class, as a row."""
    nodes = [
        call("c", "conv2d", [8, 1, 6, 8], of("x"), of("w"), None, [1, 1], [1, 1]),
        call("f", "flatten", [8, 48], of("c"), 1),
    ]
    layers, _ = mapped(graph(nodes, {"w": [1, 3, 3, 3]}, [3, 6, 8]), [3, 6, 8])
    assert [layer.kind for layer in layers] == ["conv", "flatten"]


@pytest.mark.parametrize("shape", [(2, 40), (40,)])
def test_what_is_convolved_along_steps_is_an_image_of_one_row(shape):
    layers, content = mapped(one_dimensional(shape), [*shape])
    channels = 2 if len(shape) > 1 else 1
    assert content["input"] == {"kind": "image", "shape": [channels, 1, 40]}
    first, *_, apart = (layer.options for layer in layers if "conv" in layer.kind)
    assert first == {"channels": 4, "kernel": [1, 5], "stride": 2, "padding": [0, 2]}
    gaps = {"padding": [0, 2], "dilation": [1, 2], "groups": 4, "bias": False}
    assert apart == {"channels": 4, "kernel": [1, 3]} | gaps
    assert layers[3].options == {"kernel": [1, 2], "stride": 2}
    spec = networks.specify("net", {"net": content})
    arrays = stepped(layers, spec)
    # As the module takes them.
    arrays["inputs"] = arrays["inputs"].reshape(8, *shape)
    assert not proof.compare(spec, layers, arrays).reason
    turned = arrays | {"parameter/w": arrays["parameter/w"][..., ::-1]}
    assert "its outputs differ by" in proof.compare(spec, layers, turned).reason
    # Of five columns, the pool would leave one.
    small = networks.specify("net", {"net": content}, narrow=True)
    assert small["input"]["shape"] == [channels, 1, 10]


def test_a_sequence_that_is_convolved_is_refused_with_what_to_give_instead():
    nodes = one_dimensional()
    turn = call("t", "transpose", [8, 2, 40], of("x"), 1, 2)
    place = next(at for at, node in enumerate(nodes["nodes"]) if node["op"] == "input")
    nodes["nodes"][place]["shape"] = [8, 40, 2]
    nodes["nodes"][place + 1]["args"][0] = of("t")
    nodes["nodes"].insert(place + 1, turn)
    with pytest.raises(InputError) as error:
        mapped(nodes, [40, 2])
    said = "net uses conv1d once (conv), a sequence that is convolved: no layer kind has that. "
    assert f"{said}Nearest: an input of batch, channels and steps" in str(error.value)


def chain(*layers):
    """Layers by kind, options and how far before each its inputs stand."""
    made = []
    for kind, options, offsets in layers:
        names = ["input", *(layer.name for layer in made)]
        inputs = [names[-offset] for offset in offsets]
        path = f"net.{len(made)}"
        made.append(found.Layer(f"{kind}{len(made)}", kind, options, inputs, path))
    return entries.renamed(made)


HEAD, TAIL = ("dense", {"units": 4}, [1]), ("dense", {"units": 3}, [1])
ROUND = [("sigmoid", {}, [1]), ("dense", {"units": 4}, [1]), ("add", {}, [1, 3])]


@pytest.mark.parametrize(
    ("layers", "rounds"),
    [
        ([HEAD, *ROUND * 4, TAIL], [4]),
        # Two blocks, of which one begins where the other ends.
        ([HEAD, *ROUND * 3, *[("tanh", {}, [1]), *ROUND[1:]] * 3, TAIL], [3, 3]),
        # The layer behind them takes what came before them; and they are too few.
        ([HEAD, *ROUND * 4, ("add", {}, [1, 13]), TAIL], []),
        ([HEAD, *ROUND * 2, TAIL], []),
    ],
)
def test_equal_blocks_are_written_once_where_that_is_the_same_network(layers, rounds):
    layers = chain(*layers)
    flat = entries.entry(layers, "Net", [4], 0, "softmax_cross_entropy")
    content = module.shorter(flat, layers)
    told = yaml.safe_load(entries.text("net", content, layers))
    assert networks.specify("net", told) == networks.specify("net", {"net": flat})
    assert [each["repeat"] for each in content["layers"] if "repeat" in each] == rounds


def test_views_say_what_they_show_and_refuse_what_they_cannot():
    value = views.fresh("dense1", [8, 6, 12])
    q = views.select(views.split(value, 2, 3), 2, 1)
    assert q.shape == [8, 6, 4] and [*q.fixed.values()] == [1]
    with pytest.raises(views.Misfit):
        views.reshape(value, [8, 5, 14])


@pytest.mark.parametrize(
    ("given", "vocabulary", "shape"),
    [
        ("3x32x32", 0, [3, 32, 32]),
        ("784", 0, [784]),
        ("tokens:256", 50, [256]),
        ("tokens:256", 0, None),
        ("3*32", 0, None),
    ],
)
def test_an_input_is_a_shape_or_a_sentence(given, vocabulary, shape):
    if shape:
        assert module.shape_of(given, vocabulary) == shape
    else:
        with pytest.raises(InputError, match="INPUT="):
            module.shape_of(given, vocabulary)


def test_a_page_says_which_module_a_network_is_until_it_is_edited():
    net = {"label": "Net", "layers": ["relu", {"dense": {"units": 3}}]}
    same = f"train.py:Net (sha256 1; layers {function_digest(net)})"
    catalogue = {"net": net | {"same_as": same, "batch": 8}, "fcn5": {"label": "FCN-5"}}
    said = common.imported(catalogue, ["fcn5", "net", "net", "gone"])
    assert said == [f"Net is the same function as {same}."]
    catalogue["net"]["layers"] = ["tanh", {"dense": {"units": 3}}]
    assert common.imported(catalogue, ["net"]) == []


def test_small_sizes_are_found_where_an_entry_has_none():
    layers = [
        {"conv": {"channels": 96, "kernel": 4, "stride": 4}},
        "patches",
        "class_token",
        {"positions": {"rows": 197}},
        {"dense": {"units": 288}},
        {"attention": {"heads": 3}},
        "first_step",
        {"dense": {"units": "classes"}},
    ]
    source = {"kind": "image", "shape": [3, 56, 56]}
    content = {"input": source, "layers": layers, "sizes": {"classes": 1000}}
    small = networks.specify("net", {"net": content}, narrow=True)
    assert small["input"]["shape"][1] < 56 and networks.count_parameters(small) < 20000
    assert small["nodes"][5]["heads"] == 3 and small["nodes"][5]["shape"][1] % 3 == 0


@pytest.mark.parametrize(("most", "written"), [(1, {}), (0.001, {"learning_rate": 0.001})])
def test_a_rate_at_which_it_learns_is_written(monkeypatch, most, written):
    """MobileNetV2 was imported, and timed nowhere, since its loss rose at the default."""
    net = {"label": "Net", "family": "FCN", "batch": 8, "input": {"kind": "dense", "shape": [6]}}
    net |= {"parameters": 21, "layers": ["relu", {"dense": {"units": 3}}]}

    def untrainable(spec):
        return "" if spec["optimiser"]["learning_rate"] <= most else "its loss rises"

    monkeypatch.setattr(module.golden, "untrainable", untrainable)
    assert module.learning(net) == written
