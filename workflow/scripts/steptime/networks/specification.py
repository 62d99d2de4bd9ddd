"""The neutral specification of a network: what every adapter builds, and what every check compares with.

`specify` expands an entry of `config/networks.yaml` into plain data (it travels to the worker as JSON):

    {"network": "fcn5", "input": {"kind": "dense", "shape": [26752]},
     "nodes": [...], "parameters": [...],
     "loss": "softmax_cross_entropy", "optimiser": {"name": "sgd", "learning_rate": 0.01}}

A network that is trained on real images also has `dataset`, the name of the whole data set, and `epochs`, how many at
most; its optimiser may have `after_epochs`, [[epochs, learning rate from then on] ...], and `decay` (see
`worker.tasks.training`). `options`, such as ["batch_norm epsilon"], are those that adapters must declare besides layer
kinds.

A node is `{"name", "op", "inputs", "in_shape", "shape", ...}`; `inputs` names earlier nodes or "input", and the shapes
are those of one sample, channels first: (features,), (channels, height, width) or (steps, features). The last node
gives the logits. A parameter is `{"name": "<node>/<role>", "shape", "bound", "centre"}`, in the neutral layout that the
record of its kind describes (`steptime.networks.layers`). The loss is the mean over all labels of the batch.

docs/reference/networks.md describes the language of layers.
"""

from collections import ChainMap
from typing import Any

from steptime.networks import narrowing, optimisers
from steptime.networks.layers import DENSE, FORMS, LAYERS, ROW, SIDES, LayerKind, Shape, Values
from steptime.networks.losses import LOSSES
from steptime.networks.records import WISHES, as_number, check_keys, write_instead

LEARNING_RATE, TINY_RATE = 0.01, 0.05
LOSS = "softmax_cross_entropy"
# What a proof reads gradients off, whatever a network is trained with.
PROVEN_WITH = "sgd"
# What a list of layers may have besides layers.
BLOCKS = ("repeat", "residual")
INPUT = "input"

# The axes of each kind of input, and their words.
INPUTS = {
    "dense": ((1, 2), "[features] or [steps, features]"),
    "image": ((3,), "[channels, height, width]"),
    "tokens": ((1,), "[steps]"),
    "one_hot": ((2,), "[steps, words]"),
}
# What to write where a layer is given another form than it takes.
RATHER = {
    ("batch_norm", "row"): "write layer_norm in its place",
    ("batch_norm", "sequence"): "write layer_norm in its place",
    ("group_norm", "row"): "write layer_norm in its place",
    ("group_norm", "sequence"): "write layer_norm in its place",
    ("flatten", "sequence"): "write unstack, mean_steps or last_step in its place",
    ("global_average_pool", "sequence"): "write mean_steps in its place",
    ("mean_steps", "image"): "write global_average_pool in its place",
    ("row", "sequence"): "write unstack, mean_steps or last_step before it",
    ("row", "image"): "write flatten before it",
    ("sequence", "image"): "write patches before it",
    ("words", ""): "write `input: {kind: tokens, shape: [steps], vocabulary: n}`",
    ("", "words"): "write an embedding before it",
}

# Every name by which code belongs to some networks and not to others.
RECORDS = frozenset([*LAYERS, *LOSSES, *optimisers.OPTIMISERS])


def specify(name: str, catalogue: dict[str, Any], narrow: bool = False) -> dict[str, Any]:
    """Returns the specification of the network `name` of the catalogue (the parsed `config/networks.yaml`).

    With `narrow`, that of its small version, of the same structure. Raises ValueError, in one sentence, for whatever
    does not exist or does not fit.
    """
    entry = resolve(name, catalogue)
    if narrow and "narrow" not in entry:
        entry = narrowing.narrowed(entry, lambda small: specify(name, {name: small}))
    sizes = dict(entry.get("sizes", {}), **(entry.get("narrow", {}) if narrow else {}))
    plain = {"name": "sgd", "learning_rate": entry.get("learning_rate", LEARNING_RATE)}
    training: dict[str, Any] = {key: entry[key] for key in ("dataset", "epochs") if key in entry}
    loss, optimiser = entry.get("loss", LOSS), entry.get("optimiser", plain)
    try:
        for key in entry.get("narrow", {}):
            if key not in entry.get("sizes", {}):
                instead = write_instead(key, entry.get("sizes", {}))
                raise ValueError(f"the key '{key}' of 'narrow' is none of 'sizes'; {instead}")
        builder = _Builder(entry["input"], sizes)
        builder.add_all(entry["layers"])
        builder.check_ends()
        optimisers.check(optimiser)
        builder.check_loss(loss)
    except ValueError as error:
        raise ValueError(f"network {name}{', narrow' if narrow else ''}: {error}") from error
    return {
        "network": name,
        "input": builder.source,
        "nodes": builder.nodes,
        "parameters": [
            parameter for node in builder.nodes for parameter in LAYERS[node["op"]].parameters(node)
        ],
        "loss": loss,
        "optimiser": optimisers.in_floats(optimiser),
        **training,
        **({"options": options} if (options := _options_of(builder.nodes)) else {}),
    }


def _options_of(nodes: list[dict[str, Any]]) -> list[str]:
    """Returns what adapters must declare besides kinds, each as "kind option"."""
    found = {f"{node['op']} {key}" for node in nodes for key in LAYERS[node["op"]].options_of(node)}
    return sorted(found)


def tiny(kind: str, option: str = "") -> dict[str, Any]:
    """Returns the smallest network of a layer kind, or of one of its options: the record's example, if it has one.

    Otherwise the layer is between two dense ones.
    """
    record = LAYERS[kind]
    source, layers = record.options[option] if option else record.example or (ROW, [DENSE, kind])
    entry = {"input": source, "sizes": {}, "narrow": {}, "layers": [*layers, DENSE]}
    return specify(kind, {kind: entry | {"learning_rate": TINY_RATE}})


def resolve(name: str, catalogue: dict[str, Any]) -> dict[str, Any]:
    """Returns the entry of `name`, with all that a variant takes from its network."""
    entry = catalogue[name]
    if "variant_of" not in entry:
        return entry
    base = resolve(entry["variant_of"], catalogue)
    merged = dict(base, **entry)
    merged["sizes"] = dict(base.get("sizes", {}), **entry.get("sizes", {}))
    return merged


def used_records(spec: dict[str, Any]) -> set[str]:
    """Returns the names in `RECORDS` with which a network is built, trained and proven."""
    return {node["op"] for node in spec["nodes"]} | {
        spec["loss"],
        spec["optimiser"]["name"],
        PROVEN_WITH,
    }


class _Builder:
    """Turns layers into nodes; remembers the last node, and every node's shape and name."""

    def __init__(self, source: dict[str, Any], sizes: dict[str, int]) -> None:
        self.sizes: ChainMap[str, int] = ChainMap(sizes)
        self.source = dict(source, shape=[self.number(value) for value in source["shape"]])
        if "vocabulary" in source:
            self.source["vocabulary"] = self.number(source["vocabulary"])
        kind, shape, is_words = source["kind"], self.source["shape"], "vocabulary" in source
        axes, words = INPUTS[kind]
        if len(shape) not in axes:
            raise ValueError(f"its input of kind {kind} has the shape {shape}; write {words}")
        if is_words != (kind == "tokens"):
            has, rather = ("a", "leave it out") if is_words else ("no", "write how many words")
            raise ValueError(f"its input of kind {kind} has {has} 'vocabulary'; {rather}")
        if self.source.get("vocabulary") == 1:
            raise ValueError("all samples of one word are alike; write a vocabulary of two or more")
        self.nodes: list[dict[str, Any]] = []
        self.shapes: dict[str, Shape] = {INPUT: list(self.source["shape"])}
        self.forms = {INPUT: "words" if is_words else _form(self.shapes[INPUT])}
        # Nodes by the names that layers are given.
        self.named = {INPUT: INPUT}
        self.last = INPUT
        self.counts: dict[str, int] = {}

    def number(self, value: Any) -> Any:
        """Returns the number that a word means; anything else as it is."""
        if not isinstance(value, str):
            return value
        if value not in self.sizes:
            if value.lower() in ("true", "false"):
                raise ValueError(f"'{value}' is a text to YAML; write {value.lower()}")
            if number := as_number(value):
                raise ValueError(f"'{value}' is a text to YAML; write {number}")
            rather = WISHES.get(value) or f"write {' or '.join([*sorted(self.sizes), 'a number'])}"
            raise ValueError(f"the size '{value}' is not defined; {rather}")
        return self.sizes[value]

    def add_all(self, layers: list[Any]) -> None:
        for layer in layers:
            if isinstance(layer, str):
                self.add_layer(layer, {})
            elif "repeat" in layer:
                self.repeat(layer["repeat"], layer["layers"])
            elif "residual" in layer:
                self.add_residual(layer["residual"])
            else:
                ((kind, options),) = layer.items()
                self.add_layer(kind, options)

    def repeat(self, rounds: int | str | list[dict[str, Any]], layers: list[Any]) -> None:
        """Adds the layers so many times, or once for each set of sizes in a list."""
        outer = self.sizes
        if not isinstance(rounds, list):
            rounds = [{}] * self.number(rounds)
        for sizes in rounds:
            self.sizes = outer.new_child({key: self.number(sizes[key]) for key in sizes})
            self.add_all(layers)
            self.sizes = outer

    def add_residual(self, block: dict[str, Any]) -> None:
        """Adds layers, a shortcut from their input, which may have layers too, and the sum of both.

        Layers of the shortcut do not count as layers of their own, as in papers; a kind may have other start values at
        the end of a branch.
        """
        check_keys("a residual", block, ("layers",), ("shortcut",))
        entered = self.last
        self.add_all(block["layers"])
        main, before = self.last, len(self.nodes)
        if main != entered and "ends_branch" in LAYERS[self.nodes[-1]["op"]].flags:
            self.nodes[-1]["ends_branch"] = True
        self.last = entered
        self.add_all(block.get("shortcut", []))
        for node in self.nodes[before:]:
            if LAYERS[node["op"]].counted:
                node["shortcut"] = True
        self.add_node("add", [main, self.last], {})

    def add_layer(self, kind: str, options: dict[str, Any]) -> None:
        """Adds a layer as it is written, with its inputs and its name, if it has them."""
        if kind not in LAYERS:
            block = f"write `{kind}:` with `layers:`" if kind in BLOCKS else ""
            instead = block or write_instead(kind, [*LAYERS, *BLOCKS])
            raise ValueError(f"there is no layer '{kind}'; {instead}")
        values = {key: options[key] for key in options if key not in ("inputs", "name")}
        inputs = [self.node_named(kind, name) for name in options.get("inputs", [])] or [self.last]
        self.add_node(kind, inputs, values)
        if options.get("name") == INPUT:
            raise ValueError(f"the name '{INPUT}' is that of the network's input; write another")
        if "name" in options:
            self.named[options["name"]] = self.last

    def node_named(self, kind: str, name: str) -> str:
        if name not in self.named:
            raise ValueError(
                f"a layer '{kind}' takes the input '{name}', but no layer before it has this "
                f"`name`; {write_instead(name, self.named)}"
            )
        return self.named[name]

    def check_forms(self, node: dict[str, Any], kind: LayerKind) -> None:
        """Raises ValueError for an input of a form that the kind does not take, and for more words than it has rows."""
        for place, name in enumerate(node["inputs"]):
            takes = (kind.beside,) if kind.beside and place else kind.takes
            form = self.forms[name]
            if form in takes:
                continue
            pairs = [
                (node["op"], form),
                *((each, form) for each in takes),
                (takes[0], ""),
                ("", form),
            ]
            rather = next((RATHER[pair] for pair in pairs if pair in RATHER), "")
            raise ValueError(
                f"layer '{node['name']}' takes {' or '.join(FORMS[each] for each in takes)}, and "
                f"'{name}' gives {FORMS[form]} of shape {self.shapes[name]}; "
                + (rather or "write another layer before it, or leave it out")
            )
        first, *_ = node["inputs"]
        if kind.takes == ("words",):
            words = self.source["vocabulary"]
            rows = node.get("vocabulary") or self.shapes[node["inputs"][-1]][0]
            if rows < words:
                raise ValueError(
                    f"layer '{node['name']}' has rows for {rows:,} words, and '{first}' has "
                    f"{words:,} words; write at least as many rows as words"
                )

    def check_loss(self, loss: str) -> None:
        """Raises ValueError for a loss that is unknown, or does not fit the last layer."""
        if loss not in LOSSES:
            raise ValueError(f"there is no loss '{loss}'; {write_instead(loss, LOSSES)}")
        form, shape = self.forms[self.last], self.shapes[self.last]
        if rather := LOSSES[loss].misfit(form, shape, self.source["shape"]):
            raise ValueError(
                f"the loss {loss} does not fit the last layer, '{self.last}', which gives "
                f"{FORMS[form]} of shape {shape}; {rather}"
            )

    def check_ends(self) -> None:
        """Raises ValueError for a layer that does not lead to the last one."""
        taken = {name for node in self.nodes for name in node["inputs"]}
        for node in self.nodes[:-1]:
            if node["name"] not in taken:
                raise ValueError(
                    f"no layer takes the output of layer '{node['name']}'; give it a `name` and "
                    "write that into the `inputs` of another, or leave it out"
                )

    def add_node(self, op: str, inputs: list[str], options: dict[str, Any]) -> None:
        kind = LAYERS[op]
        self.counts[op] = self.counts.get(op, 0) + 1
        name = f"{op}{self.counts[op]}"
        others = (*kind.defaults, *kind.flags, *kind.options, "inputs", "name")
        check_keys(
            f"layer '{name}'", options, kind.needs, tuple(key for key in others if key != SIDES)
        )
        options = self.values(f"layer '{name}'", kind, options)
        if len(inputs) != kind.inputs if kind.inputs else len(inputs) < 2:
            few = f"{kind.inputs} input{'s' if kind.inputs > 1 else ''}" if kind.inputs else ""
            many = few or "two inputs or more"
            raise ValueError(
                f"layer '{name}' takes {many} and has {len(inputs)}; write {op}: {{inputs: [...]}} "
                "with as many names of earlier layers"
            )
        sources = [self.shapes[each] for each in inputs]
        node = dict(kind.defaults, name=name, op=op, inputs=inputs, in_shape=sources[0], **options)
        self.check_forms(node, kind)
        try:
            node["shape"] = kind.shape(node, *sources)
        except ValueError as error:
            raise ValueError(
                f"layer '{name}' does not fit what stands before it, of shape {sources[0]} "
                f"({error})"
            ) from error
        self.nodes.append(node)
        self.shapes[name] = node["shape"]
        self.forms[name] = "table" if op == "table" else _form(node["shape"])
        self.last = name

    def values(self, owner: str, kind: LayerKind, options: dict[str, Any]) -> dict[str, Any]:
        """Returns a layer's values, with words looked up. Raises ValueError for a value that its kind cannot have."""
        found = {}
        for key, value in options.items():
            values = kind.values_of(key)
            try:
                if (key, value) == ("padding", "same") and self.number(
                    options.get("stride", 1)
                ) == 1:
                    kernel = self.number(options["kernel"])
                    value = kernel // 2 if type(kernel) is int and kernel % 2 else value
                found[key] = self.number(value)
                if key in kind.sided and isinstance(value, list) and len(value) == 2:
                    found[key] = self.sides(value, values)
                    continue
            except ValueError as error:
                raise ValueError(f"{owner} has '{key}: {value}', but {error}") from error
            if not values.hold(found[key]):
                # As YAML has it.
                told = str(value).lower() if isinstance(value, bool) else value
                has = f"no value of '{key}'" if value is None else f"'{key}: {told}'"
                raise ValueError(f"{owner} has {has}; write {values.words}")
            if values.is_float:
                found[key] = float(found[key])
        return found

    def sides(self, value: list[Any], values: Values) -> Any:
        """Returns [of rows, of columns], or one number where they are equal. Raises ValueError."""
        rows, columns = map(self.number, value)
        if not (values.hold(rows) and values.hold(columns)):
            raise ValueError(f"each side of it is {values.words}")
        return rows if rows == columns else [rows, columns]


def _form(shape: Shape) -> str:
    """Returns the one of `FORMS` that values of a shape have."""
    return ("row", "sequence", "image")[len(shape) - 1]
