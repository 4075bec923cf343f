"""An interface's traffic control out of the kernel's messages, and what somebody else has changed there, in words."""

from __future__ import annotations

import struct

import pytest

from host_reporter.nic.rtnetlink import CLASS, FILTER, OPTIONS, QDISC, Entry, parse
from host_reporter.nic.state import NicState, Root, differences, in_front, inside, parts, state
from host_reporter.nic.tensorlights.installed import NO_PARTS, present


def attribute(number: int, body: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(body), number) + body + bytes(-len(body) % 4)


def message(
    what: int, index: int, handle: int, parent: int, info: int, kind: str, *options: bytes, flags: int = 2
) -> bytes:
    body = struct.pack("=BBHiIII", 0, 0, 0, index, handle, parent, info)
    body += attribute(1, kind.encode() + b"\0") + attribute(OPTIONS, b"".join(options))
    return struct.pack("=IHHII", 16 + len(body), what, flags, 1, 0) + body


DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def u32(pref: int, mask: int, value: int, at: int, leaf: int, number: int, major: int = 0x7472) -> bytes:
    selector = bytes([1, 0, 1]) + bytes(13) + struct.pack(">II", mask, value) + struct.pack("=ii", at, 0)
    options = attribute(1, struct.pack("=I", major << 16 | leaf)) + attribute(5, selector)
    return message(FILTER, 3, 0x80000000 | number, major << 16, pref << 16 | 8, "u32", options)


def nic(*more: bytes, direct: int = 0, rate: int = 7) -> NicState:
    return state(entries_of(*more, direct=direct, rate=rate))


def entries_of(*more: bytes, direct: int = 0, rate: int = 7) -> list[Entry]:
    sentences = [
        message(QDISC, 3, 0x74720000, 0xFFFFFFFF, 2, "htb", attribute(2, struct.pack("=5I", 3, 10, 0x1F, 0, direct))),
        message(QDISC, 4, 0x99990000, 0xFFFFFFFF, 2, "fq"),
        message(QDISC, 3, 0x75100000, 0x74720010, 1, "bfifo", b"\x01\0\0\0"),
        message(
            CLASS, 3, 0x74720010, 0x74720001, 0, "htb", attribute(1, bytes([rate] * 44)), attribute(3, bytes(direct))
        ),
        message(FILTER, 3, 0x80000000, 0x74720000, 3 << 16 | 8, "u32", attribute(4, b"\x01\0\0\0")),
        u32(3, 0x00FC0000, 59 << 18, 0, 0x10, 59),
        *more,
    ]
    entries, whole, ended = parse(b"".join(sentences) + DONE, 3)
    assert whole and ended
    return entries


def tree_inside(direct: int = 0) -> tuple[bytes, ...]:
    """A tree inside leaf 1700, with a leaf, its queue, and a filter."""
    return (
        message(QDISC, 3, 0x67000000, 0x74721700, 1, "htb", attribute(2, struct.pack("=5I", 3, 10, 0x1000, 0, direct))),
        message(CLASS, 3, 0x74721700, 0x74720001, 0, "htb", attribute(1, bytes(44))),
        message(CLASS, 3, 0x67001000, 0x67000001, 0, "htb", attribute(1, bytes(44))),
        message(QDISC, 3, 0x40000000, 0x67001000, 1, "bfifo", b"\x01\0\0\0"),
        u32(1, 0xFFFF0000, 7101 << 16, 20, 0x1000, 5, major=0x6700),
    )


def named(seen: NicState) -> dict[str, bytes]:
    return parts(seen, classes=lambda minor: minor == 0x10, prefs=(3, 4))


def test_an_interfaces_tree_is_read_and_counters_are_no_difference() -> None:
    seen = nic()
    assert seen.root == Root("htb", 0x7472, 0x1F)
    names = ["the root qdisc 7472:", "class 7472:10", "the queue of class 7472:10", "the filter for DSCP 59"]
    assert list(named(seen)) == names
    assert differences(named(seen), named(nic(direct=8))) == ()


def test_each_difference_of_a_tree_is_told_in_words() -> None:
    before = named(nic())
    assert differences(before, {}) == ("all 4 parts of the tree were gone",)
    assert differences(before, named(nic(rate=8))) == ("class 7472:10 was changed",)
    more = named(nic(u32(3, 0xFFFF0000, 7101 << 16, 20, 0x10, 5)))
    assert differences(before, more) == ("the filter for port 7101 was not the agent's",)
    assert differences(more, before) == ("the filter for port 7101 was gone",)
    many = {f"class 1:{n}": b"" for n in range(6)}
    assert differences(before | many, before) == ("class 1:0, class 1:1, class 1:2, class 1:3 and 2 more were gone",)


def test_a_tree_inside_a_leaf_is_read_apart_from_the_one_around_it() -> None:
    entries = entries_of(*tree_inside())
    around, inner = state(entries), inside(entries, 0x6700)
    assert set(around.classes) == {0x10, 0x1700}
    assert {entry.name for entry in around.filters} == {"DSCP 59"}
    assert inner.root == Root("htb", 0x6700, 0x1000)
    assert set(inner.classes) == set(inner.queues) == {0x1000}
    assert list(parts(inner, classes=lambda _minor: True, prefs=(1,), root=False, where=" in 6700:")) == [
        "class 6700:1000",
        "the queue of class 6700:1000",
        "the filter for port 7101 in 6700:",
    ]
    assert inside(entries, 0x6701) == NicState(Root(), {}, {}, {})
    assert state(entries_of(*tree_inside(direct=9))).queues == around.queues, "a counter is no difference"


def test_trees_inside_are_compared_with_the_installed_ones_each_for_itself() -> None:
    installed = present(entries_of(*tree_inside())).parts()
    assert list(installed.filters) == [0x7472, 0x6700]
    changed = present(entries_of(*tree_inside(), u32(1, 0xFFFF0000, 7102 << 16, 20, 0x1000, 6, major=0x6700)))
    assert differences(installed.together, changed.parts().together) == (
        "the filter for port 7102 in 6700: was not the agent's",
    )
    assert changed.differing(installed) == [(0x6700, 1)]
    assert present(entries_of()).differing(installed) == [], "what is gone has nothing to be removed"
    assert present([]).parts() == NO_PARTS


def test_filters_of_others_before_ours_are_told_and_those_behind_are_not() -> None:
    everything = (0, 0, 0, 0x1F)
    (said,) = in_front("eth0", nic(u32(1, *everything, 7), u32(49152, *everything, 8)), (3, 4))
    assert "(pref 1)" in said
    assert "tc filter del dev eth0 parent 7472: pref 1" in said
    assert in_front("eth0", nic(), (3, 4)) == ()


def test_a_dump_that_was_interrupted_or_refused_is_not_believed() -> None:
    interrupted = message(QDISC, 3, 0x74720000, 0xFFFFFFFF, 2, "htb", flags=0x12)
    assert parse(interrupted + DONE, 3)[1] is False
    assert parse(interrupted, 3)[2] is False
    with pytest.raises(PermissionError):
        parse(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1), 3)
    with pytest.raises(OSError, match="cut off"):
        parse(bytes(16), 3)
