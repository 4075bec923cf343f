"""What DeepProphet cannot do; each message is for people, one line."""

from __future__ import annotations


class ProphetError(Exception):
    """It did not work: exit status 1."""


class InputError(ProphetError):
    """What was given is wrong, or does not suffice: exit status 2."""


class TraceError(InputError):
    """A model whose iteration cannot be laid out without running it."""


class UncalibratedError(InputError):
    """A device that was never measured."""


def exited(error: SystemExit) -> str:
    """What is said of a model's code that would have ended this command, and silently where it says 0."""
    given = "" if error.code is None else repr(error.code)[:80]
    return f"it called sys.exit({given}), which ends a program; it must return instead"
