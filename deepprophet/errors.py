"""The errors of DeepProphet; each message is one line for people."""

from __future__ import annotations


class ProphetError(Exception):
    """A prediction or calibration failed: exit status 1."""


class InputError(ProphetError):
    """The input is wrong or incomplete: exit status 2."""


class TraceError(InputError):
    """A model whose iteration cannot be laid out without running it."""


class UncalibratedError(InputError):
    """A device that was never measured."""


def exited(error: SystemExit) -> str:
    """Return the message for a model's code that calls sys.exit, which would have ended this command."""
    given = "" if error.code is None else repr(error.code)[:80]
    return f"it called sys.exit({given}), which ends a program; it must return instead"
