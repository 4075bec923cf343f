"""Why a model cannot be traced, as one line: the operator, the model's line, and what to change. Needs PyTorch."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from deepprophet.errors import exited
from deepprophet.graph.recording.recorder import ForeignTensorError, Recorder, SparseError
from deepprophet.graph.recording.values import tensor_spec
from deepprophet.graph.spec import shaped

MAX_SHOWN = 4
"""An error shows the shapes of at most so many tensors."""

_NO_SHAPE = "{operator} does not say what shape its result has: register a fake kernel for it (torch.library)"
_KNOWN: tuple[tuple[type[BaseException], str], ...] = (
    (
        DynamicOutputShapeException,
        "the shape of {operator}'s result depends on the data: only static shapes can be predicted; take a fixed size "
        "there, such as a mask instead of a selection",
    ),
    (
        DataDependentOutputException,
        "{operator} asks for a value of a tensor, and what runs next depends on the data: a prediction knows shapes "
        "only; keep the decision out of the model, or in tensors (torch.where)",
    ),
    (UnsupportedOperatorException, _NO_SHAPE),
    (
        SparseError,
        "{operator} makes a sparse tensor, and how large that is depends on the data: only dense ones can be "
        "predicted; take sparse=False there",
    ),
    (
        ForeignTensorError,
        "{operator} uses a tensor of {error} that is neither the model's nor the batch's: put it into the batch, or "
        "register it as a buffer of the model",
    ),
)
"""By the kind of error what is wrong, and what to change."""


def problem(error: BaseException, recorder: Recorder, hint: str = "") -> str:
    """Return what cannot be traced. ``hint``: what else may be the reason where shapes do not fit."""
    where = _line(error)
    operator = str(getattr(error, "func", None) or recorder.at or "")
    at = f"{where}: " if where else ""
    known = next((said for kinds, said in _KNOWN if isinstance(error, kinds)), None)
    if known is None and "no fake impl" in str(error):
        known = _NO_SHAPE
    if known is not None:
        return at + known.format(operator=operator, error=error)
    if isinstance(error, SystemExit):
        return f"{at}the model cannot be traced: {exited(error)}"
    reason = str(error).strip().splitlines()[0] if str(error).strip() else "it says nothing more"
    if operator and recorder.given and isinstance(error, (RuntimeError, ValueError, IndexError)):
        given = ", ".join(shaped(tensor_spec(tensor)) for tensor in recorder.given[:MAX_SHOWN])
        said = f"{operator} cannot work on what it is given ({given}): {reason.rstrip('.')}"
        return f"{at}{said}; the model and the batch must fit{hint}"
    doing = f" in {operator}" if operator else ""
    return f"{at}the model cannot be traced{doing}: {type(error).__name__}: {reason}{hint}"


def _line(error: BaseException) -> str:
    """The innermost line that is not PyTorch's own, nor this package's."""
    own = (Path(torch.__file__).parent, Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if frame.lineno is not None and not frame.filename.startswith("<") and not any(o in path.parents for o in own):
            return f"{frame.filename}:{frame.lineno}"
    return ""
