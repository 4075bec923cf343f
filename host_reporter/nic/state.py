"""An interface's traffic control as values, and the differences between the present state and the installed one. Pure.

The agent reads back what it has installed. So it needs no parser of its own tc commands, and kernels may round rates in
their own way. Counters are left out, because the kernel changes them.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from host_reporter.nic.filters import Key, words
from host_reporter.nic.rtnetlink import CLASS, FILTER, QDISC, Entry

ROOT_PARENT = 0xFFFFFFFF
_HTB_INIT, _HTB_PARAMETERS, _HTB_RATE64, _HTB_CEIL64 = 2, 1, 6, 7
_U32_CLASSID, _U32_SELECTOR = 1, 5
_U32_UNSTEADY = frozenset({2, 9, 11})
"""These attributes of a u32 filter (hash table, hits, offload flags) may change while the filter stays the same."""
_SELECTOR_BYTES, _KEY_BYTES = 16, 16
_DEFAULT_CLASS_AT = 8
_ARP = int.from_bytes((0x0806).to_bytes(2, "big"), sys.byteorder)
_ALL = 0
_SOURCE_PORT, _PORT_AT = 0xFFFF0000, 20
_SHOWN = 4
"""Name at most this many parts in a message, and count the others."""


class Root(NamedTuple):
    """The qdisc of a tree: its kind, its handle's major number (0 for the kernel's own), and HTB's default class."""

    kind: str = ""
    major: int = 0
    default: int = 0


class Filter(NamedTuple):
    """A filter of a tree: its preference, its number, its hash table's number, its target leaf, and its name."""

    pref: int
    number: int
    table: int
    leaf: int
    name: str


class NicState(NamedTuple):
    """A tree, at an interface's root or inside a leaf. The values are the kernel's bytes without counters.

    ``classes`` are by minor number, and ``queues`` by the minor number of their class.
    """

    root: Root
    classes: Mapping[int, bytes]
    queues: Mapping[int, bytes]
    filters: Mapping[Filter, bytes]


Installed = Mapping[str, bytes]
"""The installed parts: the kernel's bytes by a name for people."""


def root_of(entries: Iterable[Entry]) -> Root:
    """Returns the root qdisc among an interface's entries."""
    return next((_root(entry) for entry in entries if entry.what == QDISC and entry.parent == ROOT_PARENT), Root())


def state(entries: Collection[Entry]) -> NicState:
    """Returns the tree below the root from an interface's entries."""
    return _state(entries, root_of(entries))


def inside(entries: Collection[Entry], major: int) -> NicState:
    """Returns the tree inside a leaf, by the major number of its qdisc; it is empty where there is none."""
    qdisc = next((entry for entry in entries if entry.what == QDISC and entry.handle >> 16 == major), None)
    return NicState(Root(), {}, {}, {}) if qdisc is None else _state(entries, _root(qdisc))


def _state(entries: Collection[Entry], root: Root) -> NicState:
    classes, queues, filters = {}, {}, {}
    for entry in entries:
        if entry.what == CLASS and entry.handle >> 16 == root.major:
            classes[entry.handle & 0xFFFF] = _class(entry)
        elif entry.what == QDISC and entry.parent != ROOT_PARENT and entry.parent >> 16 == root.major:
            queues[entry.parent & 0xFFFF] = _queue(entry)
        elif entry.what == FILTER and entry.parent >> 16 == root.major and entry.handle and not _is_table(entry):
            filters[_filter(entry)] = _lead(entry)
    return NicState(root, classes, queues, filters)


def parts(
    seen: NicState, *, classes: Callable[[int], bool], prefs: Collection[int], root: bool = True, where: str = ""
) -> dict[str, bytes]:
    """Returns the present parts by name: classes, their queues, and the filters with the preferences ``prefs``.

    ``classes`` says by minor number which classes count. ``where`` ends the names of filters.
    """
    major = f"{seen.root.major:x}"
    named = {}
    if root and seen.root.major:
        named[f"the root qdisc {major}:"] = _about(seen.root)
    for minor, content in sorted(seen.classes.items()):
        if classes(minor):
            named[f"class {major}:{minor:x}"] = content
    for minor, content in sorted(seen.queues.items()):
        if classes(minor):
            named[f"the queue of class {major}:{minor:x}"] = content
    for entry, content in sorted(seen.filters.items()):
        if entry.pref in prefs:
            name = f"the filter for {entry.name}{where}"
            # A second filter with the same name is another part.
            named[name if name not in named else f"{name} ({entry.table:x}::{entry.number:x})"] = content
    return named


def differences(installed: Installed, seen: Installed) -> tuple[str, ...]:
    """Returns in words which installed parts are gone or changed, and which parts have come; it names only a few."""
    gone = [name for name in installed if name not in seen]
    other = [name for name, content in installed.items() if name in seen and seen[name] != content]
    more = [name for name in seen if name not in installed]
    if gone and not any(name in seen for name in installed):
        return (f"all {len(installed)} parts of the tree were gone",)
    groups = [(gone, "gone"), (other, "changed"), (more, "not the agent's")]
    return tuple(_counted(names, how) for names, how in groups if names)


def in_front(interface: str, seen: NicState, prefs: Collection[int]) -> tuple[str, ...]:
    """Returns sentences about filters of other programs that see packets before the filters with ``prefs``."""
    last, remove = max(prefs), f"tc filter del dev {interface} parent {seen.root.major:x}:"
    return tuple(
        f"a filter of somebody else (pref {pref}) sees packets before the agent's, and takes those that it matches: "
        f"give it a pref above {last}, or remove it ({remove} pref {pref})"
        for pref in sorted({entry.pref for entry in seen.filters if entry.pref <= last and entry.pref not in prefs})
    )


def _counted(names: list[str], how: str) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{shown}{more} {'was' if len(names) == 1 else 'were'} {how}"


def _root(entry: Entry) -> Root:
    options = entry.options.get(_HTB_INIT, b"") if entry.kind == "htb" else b""
    return Root(entry.kind, entry.handle >> 16, _number(options[_DEFAULT_CLASS_AT : _DEFAULT_CLASS_AT + 4]))


def _about(root: Root) -> bytes:
    return f"{root.kind} {root.default}".encode()


def _queue(entry: Entry) -> bytes:
    """Returns a leaf's queue. Of a tree it is the kind and the default class, since the kernel counts packets there."""
    content = _about(_root(entry)) if entry.kind == "htb" else entry.kind.encode() + entry.raw
    return struct.pack("=I", entry.handle) + content


def _class(entry: Entry) -> bytes:
    """Returns a class's parent, kind and rates, without the kernel's counters."""
    options = (entry.options.get(number, b"") for number in (_HTB_PARAMETERS, _HTB_RATE64, _HTB_CEIL64))
    return struct.pack("=I", entry.parent) + entry.kind.encode() + b"".join(options)


def _is_table(entry: Entry) -> bool:
    """Returns whether it is a hash table of filters, which the kernel lists as a filter without a class."""
    return entry.kind == "u32" and _U32_CLASSID not in entry.options


def _filter(entry: Entry) -> Filter:
    leaf = _number(entry.options.get(_U32_CLASSID, b"")) & 0xFFFF if entry.kind == "u32" else 0
    pref, protocol = entry.info >> 16, entry.info & 0xFFFF
    name = _name(_keys(entry)) if entry.kind == "u32" else f"{entry.kind} {entry.handle:x}"
    if protocol == _ARP:
        name = "ARP"
    return Filter(pref, entry.handle & 0xFFF, entry.handle >> 20, leaf, name)


def _lead(entry: Entry) -> bytes:
    steady = (value for number, value in sorted(entry.options.items()) if number not in _U32_UNSTEADY)
    return struct.pack("=I", entry.info) + entry.kind.encode() + b"".join(steady)


def _keys(entry: Entry) -> tuple[Key, ...]:
    """Returns what a u32 filter compares."""
    keys = entry.options.get(_U32_SELECTOR, b"")[_SELECTOR_BYTES:]
    found = []
    for at in range(0, len(keys) - _KEY_BYTES + 1, _KEY_BYTES):
        mask, value = struct.unpack_from(">II", keys, at)
        found.append(Key(value, mask, _number(keys[at + 8 : at + 12])))
    return tuple(found)


def _name(keys: tuple[Key, ...]) -> str:
    """Returns in words what a filter with these keys matches."""
    if (known := words(keys)) is not None:
        return known
    for value, mask, at in keys:
        if (mask, at) == (_SOURCE_PORT, _PORT_AT):
            return f"port {value >> 16}"
    return "all other traffic" if all(mask == _ALL for _, mask, _ in keys) else "something else"


def _number(content: bytes) -> int:
    return int.from_bytes(content, sys.byteorder)
