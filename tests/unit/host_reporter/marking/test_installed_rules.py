"""What somebody else has changed in the packet filter, in words, and who stands in the marks' way there."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.code_points import POOL_2
from controller.wire import Mark
from host_reporter.marking import table_version
from host_reporter.marking.installed_rules import InstalledRules, class_changes, learned, table
from host_reporter.marking.obstacles import obstacles
from host_reporter.marking.rules_text import SentBytes, new_classes, switch_over

MARKS = [
    Mark(job=job, service_class=k, dscp=dscp, local_port=5000 + k)
    for k, (job, dscp) in enumerate(zip("abc", (59, 51, 43), strict=True))
]
TEXT = switch_over(MARKS, 0, jump=True)

# The same as the tool shows it.
SAVED = """# Generated
*mangle
:OUTPUT ACCEPT [10:1000]
:FORWARD ACCEPT [0:0]
:TRAINYARD - [0:0]
:TRAINYARD-A - [0:0]
:TRAINYARD-A0 - [0:0]
:TRAINYARD-A1 - [0:0]
:TRAINYARD-A2 - [0:0]
:TRAINYARD-B - [0:0]
:TRAINYARD-CLEAR - [0:0]
[5:500] -A FORWARD -j ACCEPT
[5:500] -A OUTPUT -j TRAINYARD
[5:500] -A TRAINYARD -m dscp ! --dscp 0x00 -j TRAINYARD-CLEAR
[5:500] -A TRAINYARD -g TRAINYARD-A
[2:120] -A TRAINYARD-A -p tcp -m tcp --sport 5000 -g TRAINYARD-A0
[2:120] -A TRAINYARD-A -p tcp -m tcp --sport 5001 -g TRAINYARD-A1
[2:120] -A TRAINYARD-A -p tcp -m tcp --sport 5002 -g TRAINYARD-A2
[0:0] -A TRAINYARD-A0 -j DSCP --set-dscp 0x3b
[0:0] -A TRAINYARD-A0 -p tcp -m tcp --tcp-flags FIN,RST,PSH NONE -m length --length 0:80 -j DSCP --set-dscp 0x3f
[0:0] -A TRAINYARD-A1 -j DSCP --set-dscp 0x33
[0:0] -A TRAINYARD-A1 -p tcp -m tcp --tcp-flags FIN,RST,PSH NONE -m length --length 0:80 -j DSCP --set-dscp 0x3f
[0:0] -A TRAINYARD-A2 -j DSCP --set-dscp 0x2b
[0:0] -A TRAINYARD-A2 -p tcp -m tcp --tcp-flags FIN,RST,PSH NONE -m length --length 0:80 -j DSCP --set-dscp 0x3f
""" + "".join(
    f"[0:0] -A TRAINYARD-CLEAR -m dscp --dscp {dscp:#04x} -j DSCP --set-dscp 0x00\n" for dscp in sorted(POOL_2.owned)
)


def installed() -> InstalledRules:
    rules = learned(TEXT, 0, table(SAVED))
    assert rules is not None
    return rules


def without(*words: str) -> str:
    """What was saved without the lines that have one of these words."""
    return "\n".join(line for line in SAVED.splitlines() if not any(word in line for word in words))


def exchanged(one: str, other: str) -> str:
    return other.join(part.replace(other, one) for part in SAVED.split(one))


def test_what_is_as_it_was_installed_has_no_difference_whatever_others_have() -> None:
    assert installed().differences(table(SAVED)) == ()
    more = SAVED + "[1:1] -A OUTPUT -o lo -j ACCEPT\n:OTHERS - [0:0]\n-A TRAINYARD-B -j ACCEPT\n"
    assert installed().differences(table(more)) == ()
    assert installed().differences(table(SAVED.replace("[2:120]", "[9:999]"))) == (), "counters are none of it"


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ("", ("all 6 chains of the agent were gone",)),
        (without("-A OUTPUT"), ("the jump from OUTPUT to TRAINYARD was gone",)),
        (SAVED + "-A OUTPUT -j TRAINYARD\n", ("the jump from OUTPUT to TRAINYARD was there 2 times",)),
        (without("--sport 5001"), ("1 of 3 rules of chain TRAINYARD-A was gone",)),
        (without("--sport 5001", "--sport 5000"), ("2 of 3 rules of chain TRAINYARD-A were gone",)),
        (without("-A TRAINYARD-A "), ("all rules of chain TRAINYARD-A (3) were gone",)),
        (without("TRAINYARD-A0 "), ("chain TRAINYARD-A0 was gone",)),
        (without("-A TRAINYARD"), ("all rules of 6 chains of the agent were gone",)),
        (SAVED.replace("0x33", "0x01", 1), ("1 of 2 rules of chain TRAINYARD-A1 were replaced by others",)),
        (SAVED + "-A TRAINYARD-A -j ACCEPT\n", ("chain TRAINYARD-A had 1 rule that the agent did not make",)),
        (
            exchanged("--sport 5000 -g TRAINYARD-A0", "--sport 5001 -g TRAINYARD-A1"),
            ("the rules of chain TRAINYARD-A were in another order",),
        ),
    ],
)
def test_each_difference_is_told_in_words(seen: str, words: tuple[str, ...]) -> None:
    assert installed().differences(table(seen)) == words


@given(st.sets(st.integers(0, 19), min_size=1))
def test_no_rule_of_ours_goes_unnoticed(lost: set[int]) -> None:
    ours = [n for n, line in enumerate(SAVED.splitlines()) if " -A TRAINYARD" in line or "-j TRAINYARD" in line]
    gone = {ours[n] for n in lost}
    seen = "\n".join(line for n, line in enumerate(SAVED.splitlines()) if n not in gone)
    assert installed().differences(table(seen))


def test_what_others_changed_while_it_was_installed_is_not_learned() -> None:
    assert learned(TEXT, 0, table(without("--sport 5001"))) is None
    assert learned(TEXT, 0, table("")) is None
    assert learned(TEXT, 0, table(SAVED + "-A TRAINYARD-B -j ACCEPT\n")) is not None, "that chain is not in force"


def test_a_new_class_is_known_without_reading_it_back() -> None:
    after = [mark.model_copy(update={"dscp": dscp}) for mark, dscp in zip(MARKS, (11, 51, 59), strict=True)]
    text = new_classes(MARKS, after, 0)
    assert text is not None
    assert class_changes(text) == 2
    seen = SAVED.replace("A0 -j DSCP --set-dscp 0x3b", "A0 -j DSCP --set-dscp 0x0b")
    seen = seen.replace("A2 -j DSCP --set-dscp 0x2b", "A2 -j DSCP --set-dscp 0x3b")
    assert installed().with_new_classes(text).differences(table(seen)) == ()
    assert len(installed().with_new_classes(text).differences(table(SAVED))) == 2


def test_a_version_follows_another_by_ones_own_transaction_alone() -> None:
    assert table_version.follows(8, 7, 1)
    assert table_version.follows(0, 0xFFFFFFFF, 1)
    assert not table_version.follows(9, 7, 1)
    assert table_version.follows((b"a", b"x"), (b"a", b"b"), 1)
    assert not table_version.follows((b"y", b"x"), (b"a", b"b"), 1)
    assert not table_version.follows((b"a",), (b"a", b"b"), 1)
    assert not table_version.follows(None, 7, 1)
    assert not table_version.follows(7, None, 1)


def test_a_tables_entries_are_told_apart_without_their_counters() -> None:
    def entry(counted: bytes, rest: bytes) -> bytes:
        return bytes(90) + struct.pack("=H", 112 + len(rest)) + counted.ljust(20, b"\0") + rest

    first = table_version.split(entry(b"1", b"match") + entry(b"22", b""))
    assert first == table_version.split(entry(b"9", b"match") + entry(b"", b""))
    assert first != table_version.split(entry(b"1", b"other") + entry(b"22", b""))
    for broken in (entry(b"", b"")[:-1], bytes(112), b"\0"):
        with pytest.raises(struct.error):
            table_version.split(broken)


def test_counters_that_somebody_sets_to_zero_go_on() -> None:
    sent = SentBytes()
    sent.change(MARKS)
    sent.count(MARKS, (100, 50, 0))
    sent.count(MARKS, (10, 0, 0))
    assert {job: count.bytes for job, count in sent.totals().items()} == {"a": 110, "b": 50, "c": 0}
    sent.count(MARKS, (20, 1, 7))
    assert {job: count.bytes for job, count in sent.totals().items()} == {"a": 120, "b": 51, "c": 7}


# Who stands in the way -----------------------------------------------------------------------------------------------


def way(*rules: str, chains: str = "") -> tuple[str, ...]:
    return obstacles(table("\n".join([":OUTPUT ACCEPT [0:0]", chains, *rules])))


OUR = "-A OUTPUT -j TRAINYARD"


@pytest.mark.parametrize(
    ("before", "chains"),
    [
        ("-A OUTPUT -j ACCEPT", ""),
        ("-A OUTPUT -p tcp -j RETURN", ""),
        ('-A OUTPUT -p tcp -m comment --comment "it\'s" -j DROP', ""),
        ("-A OUTPUT -j X", ":X - [0:0]\n-A X -p udp -j RETURN\n-A X -j ACCEPT"),
        ("-A OUTPUT -g X", ":X - [0:0]"),
        ("-A OUTPUT -j X", ":X - [0:0]\n:Y - [0:0]\n-A X -j Y\n-A Y -j ACCEPT"),
    ],
)
def test_a_rule_that_takes_all_is_told_with_its_place_and_what_helps(before: str, chains: str) -> None:
    (said,) = way("-A OUTPUT -p udp -j MARK --set-mark 1", before, OUR, chains=chains)
    assert "rule 2 of OUTPUT" in said
    assert "takes all packets that this host sends" in said
    assert "iptables -t mangle -D OUTPUT 2" in said
    assert way(OUR, before, chains=chains) == (), "behind ours it takes nothing away"


@pytest.mark.parametrize(
    "before",
    [
        "-A OUTPUT -d 10.0.0.0/8 -j ACCEPT",
        "-A OUTPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT",
        "-A OUTPUT -p tcp -m tcp --dport 22 -j ACCEPT",
    ],
)
def test_a_rule_that_takes_some_is_told_as_that(before: str) -> None:
    (said,) = way(before, OUR)
    assert "takes the packets that it matches" in said


@pytest.mark.parametrize(
    ("before", "chains"),
    [
        ("-A OUTPUT -o lo -j ACCEPT", ""),
        ("-A OUTPUT -p udp -j ACCEPT", ""),
        ("-A OUTPUT -j MARK --set-xmark 0x1/0xffffffff", ""),
        ("-A OUTPUT -j X", ":X - [0:0]\n-A X -j RETURN"),
        ("-A OUTPUT -j X", ":X - [0:0]\n:Y - [0:0]\n-A X -g Y"),
        ("-A OUTPUT -j X", ":X - [0:0]\n-A X -j X"),
    ],
)
def test_a_rule_that_takes_nothing_of_jobs_is_none_of_our_business(before: str, chains: str) -> None:
    assert way(before, OUR, chains=chains) == ()


def test_a_rule_behind_that_sets_another_dscp_is_told() -> None:
    (said,) = way(OUR, "-A POSTROUTING -o eth0 -j DSCP --set-dscp 0x00")
    assert "a rule of POSTROUTING (-o eth0 -j DSCP --set-dscp 0x00) sets another DSCP" in said
    (said,) = way(OUR, "-A OUTPUT -j X", chains=":X - [0:0]\n-A X -j TOS --set-tos 0x10/0xff")
    assert "a rule of OUTPUT (-j X)" in said
    assert way(OUR, "-A POSTROUTING -p icmp -j DSCP --set-dscp 0x00") == ()
    assert way(OUR, "-A POSTROUTING -j MASQUERADE") == ()
    assert way("-A OUTPUT -j DSCP --set-dscp 0x00", OUR) == (), "ours sets its own behind it"
