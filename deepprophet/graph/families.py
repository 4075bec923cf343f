"""What kind of work an operator is, and how much of it: floating-point operations and bytes, from its shapes. Pure.

The families are those that share a machine's limit: what multiplies matrices, what convolves (by kind of filter), what
streams through memory, what only makes a view. An operator that is not named here is of the family ``other``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from deepprophet.graph.spec import Call, TensorSpec

OTHER = "other"

_FAMILIES = {
    "matmul": "mm addmm bmm baddbmm dot mv addmv linear _euclidean_dist _cdist\\w*",
    "grouped-matmul": "_(?:scaled_)?grouped_mm grouped_mm transformers::grouped_mm_fallback\\w*",
    "transform": "_fft\\w*",
    "attention": "_scaled_dot_product\\w* _flash\\w*attention\\w* _efficient_attention\\w*",
    "recurrent": "mkldnn_rnn_layer mkldnn_rnn_layer_backward _thnn\\w* _cudnn_rnn\\w* lstm\\w* gru\\w*",
    "normalise-grad": "\\w*(?:batch|layer|group|rms)_norm\\w*backward\\w*",
    "normalise": "\\w*(?:batch|layer|group|rms)_norm\\w*",
    "pool-grad": "\\w*(?:max|avg)_pool\\w*backward",
    "pool": "\\w*(?:max|avg)_pool\\w*",
    "loss": "nll_loss\\w* _ctc_loss\\w* cross_entropy\\w*",
    "resample-grad": "_?upsample\\w*backward grid_sampler\\w*backward",
    "resample": "_?upsample\\w* grid_sampler\\w*",
    "softmax": "_softmax\\w* _safe_softmax _log_softmax\\w* logsumexp",
    "lookup-grad": "_?embedding\\w*backward index_put\\w* _index_put\\w* index_add\\w* scatter\\w*",
    "lookup": "embedding\\w* _embedding\\w* index\\w* _index\\w* gather\\w* _unsafe_index\\w* take\\w* "
    "masked_select sort topk unique\\w* nonzero\\w* argsort",
    "reduce": "sum mean amax amin max min argmax argmin var\\w* std\\w* norm linalg_vector_norm any all prod cumsum "
    "cumprod logcumsumexp cummax cummin histc bincount aminmax",
    "random": "bernoulli\\w* native_dropout normal\\w* uniform\\w* rand\\w*",
    "copy": "copy_? clone _to_copy contiguous cat stack constant_pad_nd zeros\\w* ones\\w* full\\w* fill_? zero_ "
    "new_zeros new_ones new_full repeat roll flip select_backward slice_backward arange tril\\w* triu\\w* "
    "scalar_tensor lift_fresh\\w* unfold_backward embedding_renorm_ im2col col2im pixel_(?:un)?shuffle "
    "(?:reflection|replication)_pad\\w* masked_scatter\\w* select_scatter slice_scatter index_fill\\w* triu_ tril_ eye",
    "view": "view _unsafe_view t_? transpose_? permute expand detach_? slice select unsqueeze squeeze as_strided alias "
    "_reshape_alias (?:unsafe_)?split\\w* unbind chunk narrow unfold diagonal view_as_\\w* _conj resize_? is_same_size "
    "set_ _local_scalar_dense reshape empty\\w* new_empty\\w*",
    "function": "exp_? expm1 log_? log1p sqrt_? rsqrt_? pow_? tanh_? tanh_backward sigmoid_? sigmoid_backward gelu\\w* "
    "silu\\w* elu\\w* mish\\w* softplus\\w* sin cos erf\\w* xlogy binary_cross_entropy\\w* log_sigmoid\\w* sinh cosh "
    "tan atan\\w* asin acos log2 log10 exp2 softshrink\\w* _weight_norm\\w* logit\\w* lgamma digamma",
    "elementwise": "add_? sub_? rsub mul_? div_? neg_? abs relu_? threshold_backward native_dropout_backward "
    "hardtanh\\w* hardswish\\w* leaky_relu\\w* where masked_fill\\w* clamp\\w* eq ne lt le gt ge logical_\\w* "
    "bitwise_\\w* addcmul_? addcdiv_? lerp_? reciprocal sign maximum minimum floor ceil round remainder mse_loss\\w* "
    "smooth_l1_loss\\w* l1_loss\\w* huber_loss\\w* isnan isinf nan_to_num _foreach_\\w* _fused_adam\\w* _fused_sgd\\w* "
    "square glu\\w* hardsigmoid\\w* _prelu\\w* prelu\\w* fmod trunc frac sgn copysign logaddexp\\w* celu\\w* fmax fmin",
}
"""By family the operators' names; the first that fits counts."""

_PATTERNS = {family: re.compile(r"^(?:" + "|".join(names.split()) + r")$") for family, names in _FAMILIES.items()}
FAMILIES = (*_FAMILIES, "conv-point", "conv-spatial", "conv-grouped", "conv-depthwise", "conv-grad-point",
            "conv-grad-spatial", "conv-grad-grouped", "conv-grad-depthwise", OTHER)  # fmt: skip


def short(name: str) -> str:
    """``aten.add_.Tensor`` is ``add_``; an operator of another library keeps its library's name."""
    library, _, rest = name.partition(".")
    word = rest.partition(".")[0]
    return word if library == "aten" else f"{library}::{word}"


def family(call: Call) -> str:
    """The family of a call."""
    word = short(call.name)
    if ("convolution" in word and not word.startswith("_slow")) or word.startswith(("mkldnn_conv", "cudnn_conv")):
        return _convolution(call, word)
    for name, pattern in _PATTERNS.items():
        if pattern.match(word):
            return name
    return OTHER


def flops(call: Call, results: Sequence[TensorSpec]) -> float:
    """Multiplications and additions of a call; of what is not a product of matrices, one an element."""
    kind, shapes = family(call), [tensor.shape for tensor in call.tensors()]
    out = sum(tensor.elements for tensor in results)
    if kind == "view":
        return 0.0
    if kind.startswith("conv"):
        return _convolution_flops(call, results)
    if kind in _PRODUCTS and len(shapes) >= _PRODUCTS[kind][0]:
        return _PRODUCTS[kind][1](call, shapes, out)
    if "foreach" in call.name:
        return float(sum(math.prod(shape) for shape in shapes))
    return float(max([out, *(math.prod(shape) for shape in shapes)], default=0))


def moved(call: Call, results: Sequence[TensorSpec]) -> float:
    """Bytes that a call reads and writes; a look-up reads rows of its table, not all of it."""
    kind = family(call)
    if kind == "view":
        return 0.0
    read = [tensor.bytes for tensor in call.tensors()]
    written = sum(tensor.bytes for tensor in results)
    if kind == "lookup":
        return float(2 * written + sum(read[1:]))
    return float(sum(read) + written)


def _convolution(call: Call, word: str) -> str:
    back = "grad-" if "backward" in word else ""
    weight = _weight(call)
    if _groups(call) > 1:
        # Each filter sees one channel: there is no product of matrices in it.
        return f"conv-{back}{'depthwise' if weight.shape[1] == 1 else 'grouped'}"
    return f"conv-{back}{'point' if math.prod(weight.shape[2:]) == 1 else 'spatial'}"


def _groups(call: Call) -> int:
    return next((a for a in reversed(call.arguments) if type(a) is int), 1)


def _is_transposed(call: Call) -> bool:
    is_general = short(call.name) in ("convolution", "convolution_backward")
    return is_general and next((a for a in call.arguments if type(a) is bool), False)


Shapes = Sequence[tuple[int, ...]]


def _product_flops(_: Call, shapes: Shapes, out: int) -> float:
    # The last two factors are the matrices: addmm and baddbmm have a term before them.
    return 2.0 * out * shapes[-2][-1]


def _recurrent_flops(call: Call, shapes: Shapes, _: int) -> float:
    length_and_batch = math.prod(shapes[0][:-1])
    weights = sum(math.prod(shape) for shape in shapes[1:3] if len(shape) == 2)
    return 2.0 * length_and_batch * weights * (2.0 if "backward" in call.name else 1.0)


def _grouped_flops(_: Call, shapes: Shapes, out: int) -> float:
    """Of products of which each has some of the rows: all rows once, however they are spread over the groups.

    Where rows are added up over, as for the gradient of the weights, each group has a result of its own.
    """
    left, right = shapes[:2]
    if len(left) == 2 and len(right) == 2:
        return 2.0 * left[0] * left[1] * right[-1]
    return 2.0 * out * left[-1]


def _weight(call: Call) -> TensorSpec:
    tensors = list(call.tensors())
    return tensors[2 if "backward" in call.name else 1]


def _convolution_flops(call: Call, results: Sequence[TensorSpec]) -> float:
    weight = _weight(call)
    each = 2.0 * math.prod(weight.shape[1:])
    given = list(call.tensors())
    if "backward" in call.name:
        wanted = call.arguments[-1]
        ways = sum(bool(part) for part in wanted[:2]) if isinstance(wanted, list) else 2
        return each * given[1 if _is_transposed(call) else 0].elements * ways
    if _is_transposed(call):
        # Each input is spread by the filters, where others are gathered for each result.
        return each * given[0].elements
    return each * (results[0].elements if results else 0)


def _attention_flops(call: Call, shapes: Shapes, _: int) -> float:
    back = "backward" in call.name
    query, key = (shapes[1], shapes[2]) if back else (shapes[0], shapes[1])
    products = math.prod(query) * key[-2]
    return 2.0 * products * (5 if back else 2)


_PRODUCTS: Mapping[str, tuple[int, Callable[[Call, Shapes, int], float]]] = {
    "matmul": (2, _product_flops), "grouped-matmul": (2, _grouped_flops), "attention": (3, _attention_flops),
    "recurrent": (3, _recurrent_flops),
}  # fmt: skip
"""By family how many tensors there are at least, and the operations of its products."""
