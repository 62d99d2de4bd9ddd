"""Exports a user's module as a graph of operators, with one training step of it in float64.

    python export.py '{"from": "train.py:Net", "with": "", "shape": [3, 32, 32], "vocabulary": 0, "loss": "", "to": ""}'

Runs by itself in any Python that has the user's packages: it imports nothing of the project. Writes `graph.json`, which
may hold a `mistake` of the user instead, and `arrays.npz` into the folder `to`.
"""

import ast
import importlib.util
import json
import logging
import os
import sys
import traceback
import warnings

# Images of more numbers have fewer samples: float64 is slow.
LARGE = 3 * 64 * 64
# So many values of constants are written down, at most.
MOST_VALUES = 100000
# Weights move by this part of their size, and by no less than the second number: no branch stays shut.
MOVE, LEAST_MOVE = 0.05, 0.02
NOISE = 1e-15
# What is added to scores that are not to count: the root of a head's numbers is far below it.
UNSEEN = -1e4
# The ending of a file with a program that was exported already.
SAVED = ".pt2"
# What is drawn anew in each step is no constant.
DRAWN = (
    "bernoulli",
    "bernoulli_",
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "randperm",
    "normal_",
    "uniform_",
)


class Mistake(Exception):
    """A mistake of the user, in one sentence."""


def main():
    job = json.loads(sys.argv[1])
    # Where an export fails, PyTorch shows the graph so far, above the one sentence that we say.
    logging.disable(logging.CRITICAL)
    try:
        graph = export(job)
    except Mistake as error:
        graph = {"mistake": str(error)}
    with open(os.path.join(job["to"], "graph.json"), "w") as file:
        json.dump(graph, file)


def export(job):
    """Returns the graph of the module as plain data; writes the results of a step beside it."""
    try:
        import torch
    except ImportError:
        raise Mistake(
            "%s has no PyTorch: name a Python that has it, PYTHON=.../bin/python" % sys.executable
        )
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    batch = 8 if job["vocabulary"] or size_of(job["shape"]) <= LARGE else 2
    saved = None
    if job["from"].endswith(SAVED):
        saved = load_saved(job["from"])
        module = saved.module().double()
        batch = saved.example_inputs[0][0].shape[0]
    else:
        module = load(job["from"], job["with"])
        module.double().train()
    shape = [batch] + job["shape"]
    if job["vocabulary"]:
        inputs = torch.randint(0, job["vocabulary"], shape)
    else:
        inputs = torch.randn(shape, dtype=torch.float64)
    try:
        module(inputs)
    except Exception as error:
        advice = "; write a module around it that takes one" if isinstance(error, TypeError) else ""
        raise Mistake(
            "%s does not take an input of %s: %s%s"
            % (job["from"], "x".join(map(str, job["shape"])), said(error), advice)
        )
    try:
        exported = saved or torch.export.export(module, (inputs,))
    except Exception as error:
        if "DataDependent" in type(error).__name__:
            raise Mistake(
                "%s takes its way by values of a tensor%s, which no layer does: write one way"
                % (job["from"], place_of(error, job["from"].rpartition(":")[0]))
            )
        raise Mistake("torch.export cannot export %s: %s" % (job["from"], said(error)))
    names = {id(value): name for name, value in module.named_parameters()}
    graph = describe(exported, module, names)
    sharpen(module)
    redraw(module)
    arrays = {"inputs": inputs.numpy()}
    for name, value in module.named_parameters():
        arrays["parameter/" + name] = value.detach().numpy().copy()
    arrays.update(step(module, inputs, job["loss"]))
    with torch.no_grad():
        for value in module.parameters():
            value.mul_(1.0 + NOISE * torch.randn(value.shape, dtype=value.dtype))
    if not job["vocabulary"]:
        inputs = inputs * (1.0 + NOISE * torch.randn(shape, dtype=torch.float64))
    moved = step(module, inputs, job["loss"], arrays.get("labels"))
    for name in moved:
        if name not in ("labels",):
            arrays["moved/" + name] = moved[name] - arrays[name]
    import numpy

    numpy.savez(os.path.join(job["to"], "arrays.npz"), **arrays)
    return dict(graph, batch=batch, torch=torch.__version__)


def take_masks_as_they_are():
    """Keeps nn.TransformerEncoder from looking whether its mask is causal: an export has no values."""
    import torch

    folder = torch.nn.modules.transformer
    if hasattr(folder, "_detect_is_causal_mask"):
        folder._detect_is_causal_mask = lambda mask, is_causal, size: is_causal is True


def load(where, given):
    """Returns the module that `FILE:NAME` means, made with arguments that are given as text."""
    import torch

    take_masks_as_they_are()
    path, _, name = where.rpartition(":")
    if not path or not name:
        raise Mistake("FROM=%s names no class: write FROM=file.py:Net" % where)
    if not os.path.isfile(path):
        raise Mistake("there is no file %s: write FROM=file.py:Net" % path)
    folder, file = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    stem = os.path.splitext(file)[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None:
        raise Mistake("%s is no Python file: write FROM=file.py:Net" % path)
    program = importlib.util.module_from_spec(spec)
    sys.modules[stem] = program
    try:
        spec.loader.exec_module(program)
    except ModuleNotFoundError as error:
        raise Mistake(
            "%s imports '%s', which this Python lacks: name one that has it, PYTHON=.../bin/python"
            % (path, error.name)
        )
    except (Exception, SystemExit) as error:
        raise Mistake("%s cannot be imported: %s" % (path, said(error)))
    owner = program
    for part in name.split("."):
        if not hasattr(owner, part):
            known = sorted(
                each
                for each, value in vars(program).items()
                if isinstance(value, type)
                and issubclass(value, torch.nn.Module)
                or isinstance(value, torch.nn.Module)
            )
            raise Mistake(
                "%s has no '%s': write one of %s" % (path, name, ", ".join(known) or "its modules")
            )
        owner = getattr(owner, part)
    if isinstance(owner, torch.nn.Module):
        return owner
    if not callable(owner):
        raise Mistake(
            "%s is no module: name a class, a function that returns a module, or a module" % where
        )
    try:
        made = owner(**arguments(given))
    except TypeError as error:
        raise Mistake(
            "%s cannot be made: %s; give arguments by WITH='name=value, ...'" % (where, said(error))
        )
    except Mistake:
        raise
    except Exception as error:
        raise Mistake("%s cannot be made: %s" % (where, said(error)))
    if not isinstance(made, torch.nn.Module):
        raise Mistake("%s returns %s and no module" % (where, type(made).__name__))
    return made


def load_saved(path):
    """Returns the program that `torch.export.save` has written to a file."""
    import torch

    try:
        return torch.export.load(path)
    except Exception as error:
        raise Mistake("%s cannot be loaded: %s" % (path, said(error)))


def arguments(given):
    """Returns keyword arguments from a text, as in a call."""
    try:
        call = ast.parse("f(%s)" % given, mode="eval").body
        if call.args:
            raise ValueError
        return {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        raise Mistake("WITH='%s' is no list of arguments: write WITH='depth=18, wide=True'" % given)


def said(error):
    """Returns the first line of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "%s: %s" % (type(error).__name__, lines[0] if lines else "no reason given")


def place_of(error, path):
    """Says where in a user's file an error arose; '' where it did not."""
    frames = traceback.extract_tb(error.__traceback__)
    path = os.path.abspath(path)
    lines = [frame.lineno for frame in frames if os.path.abspath(frame.filename) == path]
    return " in line %d" % lines[-1] if lines else ""


def size_of(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


def describe(exported, module, names):
    """Lists a graph's operators in order, with their arguments; constants have their values."""
    import torch

    signature = exported.graph_signature
    nodes, values = [], {}
    of_parameters, buffers = signature.inputs_to_parameters, signature.inputs_to_buffers
    state = dict(module.named_parameters(remove_duplicate=False))
    for node in exported.graph_module.graph.nodes:
        entry = {"name": node.name, "shape": shape_of(node)}
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        entry["path"] = stack[-1][0] if stack else ""
        if node.op == "placeholder":
            if node.name in of_parameters:
                entry.update(op="parameter", parameter=names[id(state[of_parameters[node.name]])])
            elif node.name in buffers:
                entry["op"] = "constant"
                values[node.name] = module.get_buffer(buffers[node.name])
            elif node.name in signature.inputs_to_lifted_tensor_constants:
                entry["op"] = "constant"
                name = signature.inputs_to_lifted_tensor_constants[node.name]
                values[node.name] = exported.constants[name]
            else:
                entry["op"] = "input"
        elif node.op == "output":
            entry.update(op="output", args=plain(list(node.args[0])))
        else:
            target = node.target
            entry["op"] = getattr(target, "__name__", str(target)).split(".")[0]
            entry.update(args=plain(list(node.args)), kwargs=plain(dict(node.kwargs)))
            is_drawn = entry["op"] in DRAWN
            if not is_drawn and all(source.name in values for source in node.all_input_nodes):
                try:
                    values[node.name] = torch.fx.node.map_arg(
                        (node.args, node.kwargs), lambda source: values[source.name]
                    )
                    given, named = values[node.name]
                    values[node.name] = target(*given, **named)
                    entry["op"] = "constant"
                except Exception:
                    del values[node.name]
        if node.name in values and isinstance(values[node.name], torch.Tensor):
            value = values[node.name]
            entry["zero"] = bool((value == 0).all())
            entry.update(meaning(value))
            if value.numel() <= MOST_VALUES and not value.is_floating_point():
                entry["values"] = value.tolist()
        nodes.append(entry)
    return {
        "nodes": nodes,
        "parameters": {name: list(value.shape) for name, value in module.named_parameters()},
    }


def meaning(value):
    """Says what a constant is, where values show it: a mask of no steps or later ones, a table of rotary positions."""
    import torch

    if value.dim() > 1:
        seen = torch.ones(value.shape[-2:], dtype=torch.bool).tril()
    if value.dtype == torch.bool and value.dim() > 1:
        if bool(value.all()):
            return {"open": True}
        return {"causal": bool((value == seen).all())}
    if not value.is_floating_point() or value.dim() < 2 or min(value.shape[-2:]) < 2:
        return {}
    if bool((value[..., seen] == 0).all() and (value[..., ~seen] <= UNSEEN).all()):
        return {"causal": True}
    steps, size = value.shape[-2:]
    table = value.reshape(-1, steps, size)[0].double()
    for name, function, back in (
        ("cosine", torch.cos, torch.acos),
        ("sine", torch.sin, torch.asin),
    ):
        angle = float(back(table[1, 1].clamp(-1, 1)))
        if size > 2 and 0 < angle < 1:
            base = float("%.4g" % angle ** (-size / 2))
            places = torch.arange(0, size, 2, dtype=torch.float64) / size
            angles = torch.outer(torch.arange(steps, dtype=torch.float64), base**-places)
            if torch.allclose(table, function(torch.cat([angles, angles], 1)), atol=1e-4):
                return {"turns": name, "base": base}
    return {}


def shape_of(node):
    """Returns the shape of a node's tensor; None where it is no tensor."""
    value = node.meta.get("val")
    return [int(extent) for extent in value.shape] if hasattr(value, "shape") else None


def plain(value):
    """Returns an argument as JSON has it; {"node": name} is another node's output."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return {"node": value.name} if hasattr(value, "op") else str(value)


def sharpen(module):
    """Gives the frequencies of rotary positions, which modules keep in float32, all digits of float64."""
    import torch

    for value in module.buffers():
        count = value.numel()
        if (
            value.dim() == 1
            and count > 1
            and value.is_floating_point()
            and 0 < value[1] < value[0] == 1
        ):
            base = float("%.4g" % float(value[1]) ** -count)
            exact = base ** -(torch.arange(count, dtype=value.dtype) / count)
            if torch.allclose(value, exact, rtol=1e-5):
                value.copy_(exact)


def redraw(module):
    """Moves each weight: zeros and layer scales of 1e-6 would hide whole branches."""
    import torch

    with torch.no_grad():
        for value in module.parameters():
            size = max(MOVE * float(value.pow(2).mean().sqrt()), LEAST_MOVE)
            value.add_(size * torch.randn(value.shape, dtype=value.dtype))
        for part in module.modules():
            if isinstance(part, torch.nn.GRU) and part.bias:
                for name, values in part.named_parameters():
                    if name.startswith("bias_hh_l"):
                        values[2 * part.hidden_size :] = 0.0


def step(module, inputs, loss, labels=None):
    """Returns outputs, loss and gradients of a training step without dropout."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Kept(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            name = getattr(function, "__name__", "").split(".")[0]
            if name in ("dropout", "dropout_", "feature_dropout", "dropout1d", "dropout2d"):
                return args[0] if args else kwargs["input"]
            if name in ("bernoulli_", "bernoulli") and len(args) > 1:
                # Stochastic depth: what is kept is divided by this chance.
                return args[0].fill_(args[1])
            if name in ("to", "float", "type") and torch.float32 in (
                args + tuple(kwargs.values())
            ) + ((torch.float32,) if name == "float" else ()):
                # Some compute norms and tables in float32, whatever they are given.
                return args[0].double()
            if name == "hardsigmoid":
                # On its own way back, PyTorch multiplies by a sixth that float32 holds.
                return ((args[0] if args else kwargs["input"]) + 3).clamp(0, 6) / 6
            if name == "scaled_dot_product_attention":
                # After queries, keys, values and a mask.
                args = args[:4] + (0.0,) * len(args[4:5]) + args[5:]
                kwargs.update({"dropout_p": 0.0} if "dropout_p" in kwargs else {})
            if name == "multi_head_attention_forward":
                kwargs["training"] = False
            return function(*args, **kwargs)

    for part in module.modules():
        if isinstance(part, torch.nn.RNNBase):
            part.dropout = 0.0
    module.zero_grad()
    with Kept():
        outputs = output_of(module(inputs))
    if loss == "softmax_cross_entropy":
        rows = outputs.reshape(-1, outputs.shape[-1])
        if labels is None:
            labels = torch.randint(0, rows.shape[1], (rows.shape[0],)).numpy()
        value = torch.nn.functional.cross_entropy(rows, torch.from_numpy(labels))
    else:
        if labels is None:
            labels = torch.rand(outputs.shape, dtype=outputs.dtype).numpy()
        value = torch.nn.functional.mse_loss(outputs, torch.from_numpy(labels))
    value.backward()
    arrays = {"outputs": outputs.detach().numpy(), "loss": value.detach().numpy(), "labels": labels}
    for name, weight in module.named_parameters():
        if weight.grad is not None:
            arrays["gradient/" + name] = weight.grad.numpy().copy()
    return arrays


def output_of(returned):
    """Returns the tensor that a module returns: the first of several, or its `logits`."""
    if hasattr(returned, "logits"):
        return returned.logits
    while isinstance(returned, (list, tuple, dict)):
        returned = list(returned.values())[0] if isinstance(returned, dict) else returned[0]
    return returned


if __name__ == "__main__":
    # This folder's modules have names that a user's may have too.
    del sys.path[0]
    main()
