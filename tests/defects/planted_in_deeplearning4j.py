"""Defects in Deeplearning4j: each function returns what takes which place, as (owner, name, value)."""

from types import SimpleNamespace


def in_our_order(adapter):
    """An LSTM whose gates are in the specification's order."""
    return adapter, "LAYOUT", dict(adapter.LAYOUT, gates="ifgo")


def by_samples(adapter):
    """A mean over the samples alone, where each step of them has a label."""
    facts = dict(vars(adapter.specification), count_labels=lambda spec: 1)
    return adapter, "specification", SimpleNamespace(**facts)


def with_its_epsilon(adapter):
    """Batch normalisation with another epsilon, as a user who leaves it out may get."""
    facts = dict(vars(adapter.specification), BATCH_NORM_EPSILON=1e-2)
    return adapter, "specification", SimpleNamespace(**facts)
