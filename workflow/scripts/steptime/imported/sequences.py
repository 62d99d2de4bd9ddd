"""Maps PyTorch's operators along steps - embeddings, attention, recurrences - by their names."""

import math
from dataclasses import replace
from typing import Any

from steptime.imported import views
from steptime.imported.arithmetic import Arithmetic
from steptime.imported.found import End, wants
from steptime.imported.views import Value, bare, fresh, shown


class Sequences(Arithmetic):
    """Operators that compute along steps. `x` is a value, `weight` a parameter of the module."""

    def op_embedding(self, weight, ids, padding=-1, scale=False, sparse=False):
        rows, units = weight.shape
        if isinstance(ids, dict):
            values = ids.get("values")
            flat = values[0] if values and isinstance(values[0], list) else values
            wants(flat == list(range(len(flat or []))), "ids that are no positions")
            return replace(weight, rows=True)
        wants(padding == -1, "with padding_idx")
        wants(ids.form == "row" and ids.layer == "input", "ids that are not the input")
        if self.uses.get(weight.name, 0) > 1:
            table = self.add(
                "table", ["input"], {"rows": rows, "units": units}, weight=[(weight.name, "same")]
            )
            self.tables[weight.name] = table
            name = self.add("lookup", ["input", table])
        else:
            options = {"vocabulary": rows, "units": units}
            name = self.add("embedding", ["input"], options, weight=[(weight.name, "same")])
        features = (views.Atom(units),)
        return Value(name, (*ids.axes, features), (*ids.dims, features))

    def op_scaled_dot_product_attention(
        self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        mask = attn_mask
        if isinstance(mask, dict):
            is_causal = is_causal or mask.get("causal", False)
            opened = mask.get("open") or mask.get("zero") and not mask.get("values")
            mask = None if mask.get("causal") or opened else mask
        wants(mask is None, "with a mask that is not causal")
        *_, heads, _, size = q.shape
        pairs = k.shape[-3]
        alike = len(q.shape) == 4 and k.shape == v.shape == [q.shape[0], pairs, *q.shape[2:]]
        wants(alike and heads % pairs == 0, "queries and keys of other shapes")
        wants(q.turned == k.turned and not v.turned, "queries and keys that are not turned alike")
        wants(scale is None or math.isclose(scale, size**-0.5), "another scale")
        if "refused" in (q.layer, k.layer, v.layer):
            return fresh("refused", self.shape)
        joined, batch, stepped = self.joined(q, k, v)
        options: dict[str, Any] = {"heads": heads} | ({"causal": True} if is_causal else {})
        options |= {"kv_heads": pairs} if pairs < heads else {}
        options |= {"rotary": q.turned} if q.turned else {}
        options |= {"dropout": dropout_p} if dropout_p else {}
        name = self.add("attention", [joined], options)
        head, own = views.Atom(heads), views.Atom(size)
        return Value(name, (batch, stepped, (head, own)), (batch, (head,), stepped, (own,)))

    def joined(self, q, k, v):
        """Returns the layer whose output has queries, keys and values side by side."""
        if q.layer == k.layer == v.layer:
            for place, value in enumerate((q, k, v)):
                (atom,) = value.fixed
                *_, last = value.axes
                alike = bare(last) == bare((atom, *value.dims[1], *value.dims[3]))
                wants(
                    alike and value.fixed[atom] == place and atom.size == 3,
                    "heads in another order",
                )
                wants(bare(value.axes[1]) == bare(value.dims[2]), "steps in another order")
            return q.layer, q.axes[0], q.axes[1]
        made = [
            next(layer for layer in self.layers if layer.name == each.layer) for each in (q, k, v)
        ]
        wants(
            {layer.kind for layer in made} == {"dense"},
            "queries, keys or values that no linear gives",
        )
        wants(len({layer.inputs[0] for layer in made}) == 1, "queries and keys of other values")
        wants(
            len({"bias" in layer.sources for layer in made}) == 1,
            "a bias of some of queries, keys and values",
        )
        for value in (q, k, v):
            alike = bare(value.axes[-1]) == bare(value.dims[1] + value.dims[3]) and not value.fixed
            wants(alike and bare(value.axes[1]) == bare(value.dims[2]), "heads in another order")
        own = {
            role: [each for layer in made for each in layer.sources[role]]
            for role in made[0].sources
        }
        options = {**made[0].options, "units": sum(layer.options["units"] for layer in made)}
        return self.add("dense", made[0].inputs, options, **own), q.axes[0], q.axes[1]

    def op_lstm(self, x, states, weights, bias, layers, rate, train, both, batch_first):
        return self.recurrent("lstm", x, states, weights, bias, layers, rate, both, batch_first)

    def op_gru(self, x, state, weights, bias, layers, rate, train, both, batch_first):
        return self.recurrent("gru", x, [state], weights, bias, layers, rate, both, batch_first)

    def op_rnn_tanh(self, x, state, weights, bias, layers, rate, train, both, batch_first):
        return self.recurrent("rnn", x, [state], weights, bias, layers, rate, both, batch_first)

    def recurrent(self, kind, x, states, weights, bias, layers, rate, both, batch_first):
        wants(bias, "with bias=False")
        ways = ("", "back_") if both else ("",)
        wants(len(weights) == 4 * layers * len(ways), "with proj_size")
        wants(
            all(isinstance(state, dict) and state.get("zero") for state in states),
            "a first state that is not 0",
        )
        x = self.settled(x)

        def fits(axes: tuple, dims: tuple) -> bool:
            order = axes if batch_first else (axes[1], axes[0], *axes[2:])
            return len(axes) == 3 and shown(order) == shown(dims)

        x = x if x.layer == "refused" else self.arranged(x, fits)
        units = weights[1].shape[1]
        ends = []
        left = iter(weights)
        options = {"units": units} | ({"bidirectional": True} if both else {})
        for layer in range(layers):
            own = {}
            for way in ways:
                given, again, bias, second = (next(left).name for _ in range(4))
                own[way + "input"] = [(given, "transposed")]
                own[way + "recurrent"] = [(again, "transposed")]
                own[way + "bias"] = [(bias, "same"), (second, "second")]
            name = self.add(kind, [x.layer], dict(options), **own)
            x = self.following(x, name, len(ways) * units)
            ends += [End(x, units if both else 0, way) for way in ways]
            if rate and layer < layers - 1:
                x = self.pointwise(x, "dropout", {"rate": rate})
        return [x, *[("ends", ends)] * 2]
