"""What a check has found, and how it is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

State = Literal["ok", "missing", "note"]


class Verdict(NamedTuple):
    """What one check has found, in words, and what would help.

    missing: the agent cannot do what its options ask for. note: it can, and something is worth to know.
    """

    check: str
    state: State
    text: str
    help: str | None = None


def ok(check: str, text: str) -> Verdict:
    """Returns that something is there."""
    return Verdict(check, "ok", text)


def missing(check: str, text: str, would_help: str) -> Verdict:
    """Returns that something is missing."""
    return Verdict(check, "missing", text, would_help)


def note(check: str, text: str, would_help: str | None = None) -> Verdict:
    """Returns that something is worth to know."""
    return Verdict(check, "note", text, would_help)


def lines(verdicts: Iterable[Verdict]) -> list[str]:
    """Returns a line for each check, and one more for what would help."""
    shown = []
    for each in verdicts:
        shown.append(f"{each.state:<8} {each.check}: {each.text}")
        if each.help is not None:
            shown.append(f"{'':<8} would help: {each.help}")
    return shown


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """Returns 0 where nothing is missing, and 1 otherwise."""
    return int(any(each.state == "missing" for each in verdicts))
