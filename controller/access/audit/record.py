"""A record of the audit as one line of JSON that holds the hash of the line before. Pure.

The text of a record is canonical: its members are sorted, nothing is between them, and all characters are ASCII. The
member ``hash`` is the SHA-256 of this text without that member, and ``previous`` is the hash of the record before. So
each byte of each record counts for all hashes after it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

BEGINNING = "0" * 64
"""The first record of all holds this as the hash of the one before."""
FILE = "file"
"""The action of the record that a file begins with. Its ``after.oldest`` is the number of the oldest record kept."""

BEGIN = f'{{"action":"{FILE}",'.encode()
"""The line of that record begins so, because its members are sorted."""


class Link(NamedTuple):
    """A record in its place in the chain: its number, from 1, its hash, and all members of its line."""

    number: int
    hash: str
    content: Mapping[str, Any]

    @property
    def previous(self) -> str:
        """The hash of the record before."""
        return str(self.content["previous"])


def link(content: Mapping[str, Any], number: int, previous: str) -> tuple[Link, bytes]:
    """Returns a record in its place, and its line with the line feed. Members of ``content`` that are None are left
    out.
    """
    members = {name: value for name, value in content.items() if value is not None}
    members |= {"number": number, "previous": previous}
    digest = hashlib.sha256(_canonical(members)).hexdigest()
    members["hash"] = digest
    return Link(number, digest, members), _canonical(members) + b"\n"


def read(line: bytes) -> Link | None:
    """Returns the record in a line without its line feed; None where the line is not as ``link`` made it."""
    try:
        members = json.loads(line)
    except ValueError:
        return None
    if not isinstance(members, dict) or _canonical(members) != line:
        return None
    number, previous, digest = (members.get(name) for name in ("number", "previous", "hash"))
    if not isinstance(number, int) or not isinstance(previous, str) or not isinstance(digest, str):
        return None
    body = {name: value for name, value in members.items() if name != "hash"}
    if hashlib.sha256(_canonical(body)).hexdigest() != digest:
        return None
    return Link(number, digest, members)


def _canonical(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
