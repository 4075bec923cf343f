"""Requests that add, remove and lead the u32 filters of a host's tree, for ``host_reporter.nic.rtnetlink``. Pure.

The order of jobs changes often where jobs have DSCPs of their own, and a process for each change would cost the host
more than the change. linux/pkt_cls.h defines the formats.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator

from controller.code_points import CodePoints
from host_reporter.nic.filters import ARP_PREF, ETHERTYPES, PREFS, Wanted, of_plan, words
from host_reporter.nic.rtnetlink import FILTER, KIND, OPTIONS, Request, attribute
from host_reporter.nic.state import Filter
from host_reporter.nic.tree import HANDLE, leaf

_ROOT = int(HANDLE, 16) << 16
_DELETE = FILTER + 1
_CREATE = 0x400
_CLASSID, _SELECTOR = 1, 5
_SELECTOR_HEAD = struct.Struct("=BBBxHHhhI")
_KEY = struct.Struct(">II")
_OFFSETS = struct.Struct("=ii")
_TERMINAL = 1
"""The flag of a filter that decides alone."""


def changes(present: Collection[Filter], points: CodePoints) -> Iterator[Request]:
    """Yields the changes that turn the ``present`` filters of a tree into those for ``points``. ARP's stays.

    A filter whose class changes is never missing meanwhile.
    """
    wanted = {each[:2]: each for each in of_plan(points)}
    kept: dict[tuple[int, int], Filter] = {}
    for entry in sorted(present):
        place = (entry.pref, entry.number)
        if entry.pref == ARP_PREF or entry.pref not in PREFS:
            continue
        if place in wanted and words(wanted[place].keys) == entry.name:
            kept[place] = entry
        else:
            yield Request(_DELETE, 0, _entry(entry.pref, entry.table, entry.number), attribute(KIND, b"u32\0"))
    for place, each in wanted.items():
        if place not in kept:
            yield _request(each, 0, _CREATE, attribute(_SELECTOR, _selector(each)))
        elif kept[place].leaf != leaf(each.service_class):
            # Without the flag to create it the kernel refuses to change a filter that is gone.
            yield _request(each, kept[place].table, 0, b"")


def _request(wanted: Wanted, table: int, flags: int, selector: bytes) -> Request:
    """Returns the request for a filter in a hash table; 0 is the table of its preference."""
    target = attribute(_CLASSID, struct.pack("=I", _ROOT | leaf(wanted.service_class)))
    content = attribute(KIND, b"u32\0") + attribute(OPTIONS, target + selector)
    return Request(FILTER, flags, _entry(wanted.pref, table, wanted.number), content)


def _entry(pref: int, table: int, number: int) -> tuple[int, int, int]:
    return table << 20 | number, _ROOT, pref << 16 | socket.htons(ETHERTYPES[PREFS[pref]])


def _selector(wanted: Wanted) -> bytes:
    head = _SELECTOR_HEAD.pack(_TERMINAL, 0, len(wanted.keys), 0, 0, 0, 0, 0)
    return head + b"".join(_KEY.pack(key.mask, key.value) + _OFFSETS.pack(key.at, 0) for key in wanted.keys)
