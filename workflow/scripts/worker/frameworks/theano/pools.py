"""Theano's max pool gives each of several equal maxima of a window the whole gradient: here, the first one alone."""

from theano.tensor.signal import pool

_GIVEN = "gx[0] = gx[0] + gz[0];"


class OfOne(pool.MaxPoolGrad):
    """Theano's own, in whose C code what was met equals nothing more."""

    def c_code(self, *asked):
        return super().c_code(*asked).replace(_GIVEN, _GIVEN + " maximum = NAN;")

    def c_code_cache_version(self):
        return super().c_code_cache_version() + ("of one",)


def give_to_one():
    """Has Theano's pools take this gradient, which they look up by its name."""
    pool.MaxPoolGrad = OfOne
