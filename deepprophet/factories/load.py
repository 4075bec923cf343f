"""From what the command is given to a model with its example batch. Needs PyTorch."""

from __future__ import annotations

from deepprophet.errors import InputError
from deepprophet.factories import functions
from deepprophet.graph.subject import Subject

TRANSFORMERS = "transformers:"
"""What begins with this is a model of the library transformers."""


def load_subject(path: str, batch_size: int | None = None, length: int | None = None) -> Subject:
    """Return what ``MODULE:FACTORY`` or ``transformers:NAME`` gives. Raises InputError.

    ``batch_size`` of None: that of the example batch. ``length``: the tokens of an example, of transformers alone.
    """
    if not path.startswith(TRANSFORMERS):
        if length is not None:
            raise InputError(f"--length is of {TRANSFORMERS}NAME; a factory makes its own batch")
        return functions.load(path, batch_size)
    from deepprophet.factories import transformers_models  # noqa: PLC0415 - the library takes a second, and may be missing

    return transformers_models.load(path.removeprefix(TRANSFORMERS), batch_size, length)
