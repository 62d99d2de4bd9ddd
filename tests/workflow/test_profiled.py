"""A framework's own profiler names what its steps are made of, beside an explanation."""

import pytest
from today import JAX, MXNET, TENSORFLOW, TORCH, prefix_of

from steptime import project
from steptime.explain import profiled
from steptime.plan import configuration


@pytest.mark.parametrize(
    ("environment", "operator"),
    [
        (TORCH, "aten::convolution_backward"),
        pytest.param(TENSORFLOW, "Conv2DBackpropFilter", marks=pytest.mark.seldom),
        pytest.param(MXNET, "_backward_Convolution", marks=pytest.mark.seldom),
        pytest.param(JAX, "convolution", marks=pytest.mark.seldom),
    ],
)
def test_the_dearest_operators_are_named_in_the_framework_s_own_words(
    environment, operator, tmp_path
):
    prefix_of(environment)
    known = configuration.without_grid(project.ROOT)
    said = profiled.said(known, environment, "It", "lenet", tmp_path / "logs/log")
    assert said.startswith("It, by its own profiler, ") and operator in said
    shares = [float(words.split()[-1]) for words in said.rstrip(".").split(": ", 1)[1].split(", ")]
    assert len(shares) == 5 and shares == sorted(shares, reverse=True) and 0.3 < sum(shares) <= 1.01
