"""Takes what may be a secret out of a sentence about a file. Pure.

A sentence on a wrong value often shows the value. Where somebody has put a token into the wrong field, the sentence
would carry it into logs, answers and the audit, which others read. Random texts are known by their form; a short
password is not.
"""

from __future__ import annotations

import re

HIDDEN = "(hidden: it may be a secret)"
TOKEN_PREFIX = "trainyard_"  # noqa: S105 - the prefix of tokens, and no token
_MOST_OF_A_NAME = 12
"""A part of a name, between dashes, dots and underscores, that mixes letters and digits is shorter than this."""
_RUN = re.compile(r"[A-Za-z0-9_+/=.~-]{16,}")
_PATH = re.compile(r"~?/|\.{1,2}/|(?=.*/).*\.")
_PREFIXED = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
"""The form of RFC 9562. One in 250 random ones has digits alone in the only part that is long enough to look random."""
_PART = re.compile(r"[A-Za-z0-9+/=]+")
_MOST_MIXED = 12
"""The parts of a name that mix capital letters with small ones are together shorter than this."""


def without_secrets(text: str) -> str:
    """Returns a sentence with a note in the place of each word that looks random. Paths of files stay."""
    return _RUN.sub(lambda match: HIDDEN if _may_be_secret(match.group()) else match.group(), text)


def _may_be_secret(run: str) -> bool:
    if _PATH.match(run):
        return False
    parts = _PART.findall(run)
    return (
        _PREFIXED.search(run) is not None
        or _UUID.search(run) is not None
        or any(map(_looks_random, parts))
        or sum(len(part) for part in parts if _has_both_cases(part)) >= _MOST_MIXED
    )


def _looks_random(part: str) -> bool:
    """Returns whether a part mixes digits with letters, or capital letters with small ones, as no long word does."""
    if len(part) < _MOST_OF_A_NAME or not any(map(str.isalpha, part)):
        return False
    return _has_both_cases(part) or any(map(str.isdigit, part))


def _has_both_cases(part: str) -> bool:
    return any(map(str.isupper, part[1:])) and any(map(str.islower, part))
