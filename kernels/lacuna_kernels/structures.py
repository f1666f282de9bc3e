"""The C library's structs (``csrc/linear.h``, ``csrc/layer.c``) and the signatures of its functions."""

from ctypes import POINTER, Structure, c_float, c_int, c_int64, c_void_p


class Linear(Structure):
    """A packed linear: ``width`` inputs, ``out`` outputs, the first ``small`` of them in 4 bit."""

    _fields_ = (
        *((name, c_void_p) for name in ("blocks", "weight", "scale", "bias")),
        *((name, c_int64) for name in ("width", "out", "small")),
    )


class Pair(Structure):
    """An addition to a linear, or NULL twice."""

    _fields_ = (("low", POINTER(Linear)), ("high", POINTER(Linear)))


# The linears of a layer, in the order of the struct.
LINEARS = ("qkv", "output", "gate_up", "down")


class Layer(Structure):
    """The parts of a layer."""

    _fields_ = (
        *(("attn_norm", c_void_p), ("mlp_norm", c_void_p)),
        *((name, POINTER(Linear)) for name in LINEARS),
        *(("added_" + name, POINTER(Pair)) for name in LINEARS),
    )


class Span(Structure):
    """Rows of a pass that have the additions of one kind."""

    _fields_ = tuple((name, c_int64) for name in ("first", "count", "kind"))


class Rows(Structure):
    """The rows of a pass, with ``turns`` angles each, and the ``spans`` of those with additions."""

    _fields_ = (
        *((name, c_int64) for name in ("count", "turns", "heads", "groups", "width")),
        *(("spans", POINTER(Span)), ("num_spans", c_int64)),
        *(("cos", c_void_p), ("sin", c_void_p), ("eps", c_float)),
    )


class Arena(Structure):
    """Keys and values of all layers, with strides in elements."""

    _fields_ = (
        *(("keys", c_void_p), ("values", c_void_p)),
        *((name, c_int64) for name in ("key_layer", "key_group", "key_column")),
        *((name, c_int64) for name in ("value_layer", "value_group", "value_row")),
        *(("head", c_int64), ("tail", c_int64)),
    )


class Mask(Structure):
    """What is added to the scores of a part's rows, or NULL."""

    _fields_ = (("added", c_void_p), ("start", c_int64))


class Part(Structure):
    """``count`` rows of a pass from row ``first``, which share an arena."""

    _fields_ = (
        *(("first", c_int64), ("count", c_int64), ("arena", Arena), ("mask", Mask)),
        *(("runs", c_void_p), ("num_runs", c_int64)),
    )


SIGNATURES = {
    "lacuna_pack": (c_void_p, c_int64, c_int64, c_void_p, c_int),
    "lacuna_pack_blocks": (*(c_void_p,) * 5, c_int64, c_int64, c_void_p, c_int),
    "lacuna_lookup": (POINTER(Linear), c_void_p, c_int64, c_void_p),
    "lacuna_linear": (c_void_p, c_int64, POINTER(Linear), c_void_p, c_int),
    "lacuna_layers": (
        *(c_void_p, POINTER(Rows), POINTER(Layer), c_int64, POINTER(Part)),
        *(c_int64, c_int),
    ),
}
