"""What kind of work an operator is, and how much of it: floating-point operations and bytes, from its shapes. Pure.

The families are those that share a machine's limit: what multiplies matrices, what convolves (by kind of filter), what
streams through memory, what only makes a view. An operator that is not named here is of the family ``other``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from deepprophet.graph.spec import Call, TensorSpec

OTHER = "other"

_FAMILIES = {
    "matmul": "mm addmm bmm baddbmm dot mv addmv linear",
    "attention": "_scaled_dot_product\\w* _flash\\w*attention\\w* _efficient_attention\\w*",
    "recurrent": "mkldnn_rnn_layer mkldnn_rnn_layer_backward _thnn\\w* _cudnn_rnn\\w* lstm\\w* gru\\w*",
    "normalise-grad": "\\w*(?:batch|layer|group|rms)_norm\\w*backward\\w*",
    "normalise": "\\w*(?:batch|layer|group|rms)_norm\\w*",
    "pool-grad": "\\w*(?:max|avg)_pool\\w*backward",
    "pool": "\\w*(?:max|avg)_pool\\w*",
    "loss": "nll_loss\\w*",
    "softmax": "_softmax\\w* _safe_softmax _log_softmax\\w* logsumexp",
    "lookup-grad": "_?embedding\\w*backward index_put\\w* _index_put\\w* index_add\\w* scatter\\w*",
    "lookup": "embedding\\w* _embedding\\w* index\\w* _index\\w* gather\\w* _unsafe_index\\w* take\\w* "
    "masked_select sort topk unique\\w*",
    "reduce": "sum mean amax amin max min argmax argmin var\\w* std\\w* norm linalg_vector_norm any all prod cumsum",
    "random": "bernoulli\\w* native_dropout normal\\w* uniform\\w* rand\\w*",
    "copy": "copy_? clone _to_copy contiguous cat stack constant_pad_nd zeros\\w* ones\\w* full\\w* fill_? zero_ "
    "new_zeros new_ones new_full repeat roll flip select_backward slice_backward arange tril\\w* triu\\w* "
    "scalar_tensor lift_fresh\\w* unfold_backward embedding_renorm_",
    "view": "view _unsafe_view t_? transpose_? permute expand detach_? slice select unsqueeze squeeze as_strided alias "
    "_reshape_alias (?:unsafe_)?split\\w* unbind chunk narrow unfold diagonal view_as_\\w* _conj resize_? is_same_size "
    "set_ _local_scalar_dense reshape empty\\w* new_empty\\w*",
    "function": "exp_? expm1 log_? log1p sqrt_? rsqrt_? pow_? tanh_? tanh_backward sigmoid_? sigmoid_backward gelu\\w* "
    "silu\\w* elu\\w* mish\\w* softplus\\w* sin cos erf\\w* xlogy binary_cross_entropy\\w* log_sigmoid\\w*",
    "elementwise": "add_? sub_? rsub mul_? div_? neg_? abs relu_? threshold_backward native_dropout_backward "
    "hardtanh\\w* hardswish\\w* leaky_relu\\w* where masked_fill\\w* clamp\\w* eq ne lt le gt ge logical_\\w* "
    "bitwise_\\w* addcmul_? addcdiv_? lerp_? reciprocal sign maximum minimum floor ceil round remainder mse_loss\\w* "
    "smooth_l1_loss\\w* l1_loss\\w* huber_loss\\w* isnan isinf nan_to_num _foreach_\\w* _fused_adam\\w* _fused_sgd\\w* "
    "square glu\\w*",
}
"""By family the operators' names; the first that fits counts."""

_PATTERNS = {family: re.compile(r"^(?:" + "|".join(names.split()) + r")$") for family, names in _FAMILIES.items()}
FAMILIES = (*_FAMILIES, "conv-point", "conv-spatial", "conv-grouped", "conv-grad-point", "conv-grad-spatial",
            "conv-grad-grouped", OTHER)  # fmt: skip


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
    if kind == "matmul":
        # The last two factors are the matrices: addmm and baddbmm have a term before them.
        left = shapes[-2] if len(shapes) >= 2 else (1,)
        return 2.0 * out * left[-1]
    if kind.startswith("conv"):
        return _convolution_flops(call, results)
    if kind == "attention":
        return _attention_flops(call, shapes)
    if kind == "recurrent" and len(shapes) >= 3:
        length_and_batch = math.prod(shapes[0][:-1])
        weights = sum(math.prod(shape) for shape in shapes[1:3] if len(shape) == 2)
        return 2.0 * length_and_batch * weights * (2.0 if "backward" in call.name else 1.0)
    if "foreach" in call.name:
        return float(sum(math.prod(shape) for shape in shapes))
    return 0.0 if kind == "view" else float(max([out, *(math.prod(shape) for shape in shapes)], default=0))


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
    groups = next((a for a in reversed(call.arguments) if type(a) is int), 1)
    if groups > 1:
        return f"conv-{back}grouped"
    return f"conv-{back}{'point' if math.prod(weight.shape[2:]) == 1 else 'spatial'}"


def _weight(call: Call) -> TensorSpec:
    tensors = list(call.tensors())
    return tensors[2 if "backward" in call.name else 1]


def _convolution_flops(call: Call, results: Sequence[TensorSpec]) -> float:
    weight = _weight(call)
    each = 2.0 * math.prod(weight.shape[1:])
    if "backward" in call.name:
        grad = next(call.tensors())
        wanted = call.arguments[-1]
        ways = sum(bool(part) for part in wanted[:2]) if isinstance(wanted, list) else 2
        return each * grad.elements * ways
    return each * (results[0].elements if results else 0)


def _attention_flops(call: Call, shapes: Sequence[tuple[int, ...]]) -> float:
    back = "backward" in call.name
    query, key = (shapes[1], shapes[2]) if back else (shapes[0], shapes[1])
    products = math.prod(query) * key[-2]
    return 2.0 * products * (5 if back else 2)
