"""Marks as text for iptables, and what its counters say; a small reading of the text shows what packets get."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.code_points import DCB, POOL_2, code_points
from controller.wire import HostPlan, Mark
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.marking import iptables_tool
from host_reporter.marking.enforcement import Enforcement, Marking
from host_reporter.marking.iptables import IptablesError, Marker
from host_reporter.marking.iptables_tool import IptablesTool
from host_reporter.marking.restorer import Restorer
from host_reporter.marking.rules_text import (
    CHAIN,
    CLEAR,
    CLEAR_JOBS,
    GENERATIONS,
    JUMP,
    GroupMark,
    MarkError,
    Sent,
    SentBytes,
    as_saved,
    counts,
    jumps,
    new_classes,
    removal,
    switch_over,
)
from host_reporter.notices import Notices
from host_reporter.tools import ToolError

SAVED = """# Generated
*mangle
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [10:1000]
:TRAINYARD - [0:0]
:TRAINYARD-A - [0:0]
:TRAINYARD-B - [0:0]
:TRAINYARD-D59 - [0:0]
:TRAINYARDS - [0:0]
[5:500] -A OUTPUT -j TRAINYARD
[1:1] -A OUTPUT -j TRAINYARDS
[5:500] -A TRAINYARD -g TRAINYARD-B
[2:120] -A TRAINYARD-A -d 10.0.0.2/32 -p tcp -m tcp --sport 5000 -g TRAINYARD-D59
[3:380] -A TRAINYARD-B -d 10.0.0.2/32 -p tcp -m tcp --sport 5000 -g TRAINYARD-D59
[0:0] -A TRAINYARD-B -d 10.0.0.3/32 -p tcp -m tcp --sport 5000 -g TRAINYARD-D59
[3:380] -A TRAINYARD-D59 -j DSCP --set-dscp 0x3b
COMMIT
"""

LISTED = """-P PREROUTING ACCEPT -c 0 0
-P OUTPUT ACCEPT -c 10 1000
-N TRAINYARD
-N TRAINYARD-B
-A OUTPUT -c 5 500 -j TRAINYARD
-A OUTPUT -p tcp -m comment --comment "like -c 7 8 -j counters" -c 1 2
-A OUTPUT -c 3 4 -j LOG --log-prefix "like -c 7 8 "
-A TRAINYARD-B -d 10.0.0.2/32 -p tcp -m tcp --sport 5000 -c 3 380 -g TRAINYARD-D59
"""


def test_a_listing_is_read_as_the_text_that_is_saved() -> None:
    assert as_saved(LISTED).splitlines() == [
        ":PREROUTING ACCEPT [0:0]",
        ":OUTPUT ACCEPT [10:1000]",
        ":TRAINYARD - [0:0]",
        ":TRAINYARD-B - [0:0]",
        "[5:500] -A OUTPUT -j TRAINYARD",
        '[1:2] -A OUTPUT -p tcp -m comment --comment "like -c 7 8 -j counters"',
        '[3:4] -A OUTPUT -j LOG --log-prefix "like -c 7 8 "',
        "[3:380] -A TRAINYARD-B -d 10.0.0.2/32 -p tcp -m tcp --sport 5000 -g TRAINYARD-D59",
    ]


def mark(job: str, dscp: int = 59, **match: object) -> Mark:
    return Mark.model_validate({"job": job, "service_class": 0, "dscp": dscp, **match})


def dscp_of(text: str, generation: int, remote: str, sport: int, dport: int) -> int | None:
    """What the rules of a chain do to a packet: the first that matches goes to the chain that sets a DSCP."""
    for line in text.splitlines():
        if not line.startswith(f"-A {GENERATIONS[generation]} "):
            continue
        wanted = {"-d": remote, "--sport": str(sport), "--dport": str(dport)}
        words = line.split()
        if all(words[words.index(key) + 1] == value for key, value in wanted.items() if key in words):
            target = words[words.index("-g") + 1]
            match = re.search(rf"^-A {target} -j DSCP --set-dscp (\d+)$", text, re.MULTILINE)
            return int(match[1]) if match else None
    return None


def sent_dscp(
    text: str,
    dscp: int,
    remote: str = "10.0.0.9",
    sport: int = 1,
    dport: int = 1,
    *,
    length: int = 1500,
    flags: frozenset[str] = frozenset({"ACK"}),
    group: str = "/",
    protocol: str = "tcp",
) -> int:
    """The DSCP with which a packet leaves that a program sent with ``dscp``: OUTPUT's rules, followed as a kernel does.

    A chain that was gone to (-g) returns to where its caller was called from (-j).
    """

    def walk(chain: str) -> None:
        nonlocal dscp
        for line in text.splitlines():
            words = line.split()
            if words[:2] != ["-A", chain] or not fits(words[2:]):
                continue
            if "--set-dscp" in words:
                dscp = int(words[words.index("--set-dscp") + 1])
            elif "-j" in words:
                walk(words[words.index("-j") + 1])
            elif "-g" in words:
                walk(words[words.index("-g") + 1])
                return

    def fits(words: list[str]) -> bool:
        if "-p" in words and words[words.index("-p") + 1] != protocol:
            return False
        if "--path" in words and words[words.index("--path") + 1] != f'"{group}"':
            return False
        if "--length" in words:
            least, most = map(int, words[words.index("--length") + 1].split(":"))
            mask, wanted = words[words.index("--tcp-flags") + 1 :][:2]
            assert wanted == "NONE"
            if not least <= length <= most or flags & set(mask.split(",")):
                return False
        has = {"-d": remote, "--sport": str(sport), "--dport": str(dport), "--dscp": str(dscp)}
        return all(
            (words[words.index(key) + 1] == value) != (words[words.index(key) - 1] == "!")
            for key, value in has.items()
            if key in words
        )

    walk("OUTPUT")
    return dscp


@pytest.mark.parametrize("marks", [[], [mark("a", 59, remote="10.0.0.2", remote_port=80)]])
def test_no_program_takes_a_class_for_itself(marks: list[Mark]) -> None:
    text = switch_over(marks, 0, jump=True)
    for dscp in range(64):
        assert sent_dscp(text, dscp) == (0 if dscp in POOL_2.owned else dscp), "another's DSCP is none of our business"


SHARED = code_points((56, 48), None)
GROUPS = [GroupMark("a", 48, CgroupId("/jobs/a", 7)), GroupMark("b", 56, CgroupId("/jobs/b", 8))]


@pytest.mark.parametrize("dscp", range(64))
def test_a_dscp_that_others_use_is_cleared_only_in_what_a_jobs_cgroup_sends(dscp: int) -> None:
    text = switch_over([*GROUPS, mark("c", 48, local_port=90)], 0, jump=True, points=SHARED)
    assert sent_dscp(text, dscp) == dscp
    assert sent_dscp(text, dscp, protocol="udp") == dscp
    for group in ("/jobs/a", "/jobs/b"):
        assert sent_dscp(text, dscp, group=group, protocol="udp") == (0 if dscp in (56, 48) else dscp)
    assert sent_dscp(text, dscp, group="/jobs/a") == 48
    assert sent_dscp(text, dscp, sport=90) == 48


def test_of_mixed_dscps_those_for_local_use_are_cleared_whoever_sends_them() -> None:
    text = switch_over(GROUPS, 0, jump=True, points=code_points((56, 59), 63, other=8))
    for protocol in ("tcp", "udp"):
        assert [sent_dscp(text, dscp, protocol=protocol) for dscp in (56, 59, 63, 0, 46)] == [56, 8, 8, 0, 46]
    sent = [sent_dscp(text, dscp, protocol="udp", group="/jobs/a") for dscp in (56, 59, 63, 0, 46)]
    assert sent == [8, 8, 8, 0, 46]


def test_without_a_dscp_of_their_own_packets_without_data_get_that_of_class_0() -> None:
    text = switch_over(GROUPS, 0, jump=True, points=SHARED)
    assert sent_dscp(text, 0, group="/jobs/a", length=52) == 56
    assert sent_dscp(text, 0, group="/jobs/a", length=1500) == 48


def test_no_chain_for_jobs_cgroups_where_all_dscps_are_for_local_use() -> None:
    text = switch_over(GROUPS, 0, jump=True, points=DCB)
    assert CLEAR_JOBS not in text
    assert "cgroup" not in "".join(line for line in text.splitlines() if line.startswith(f"-A {CLEAR} "))
    assert CLEAR_JOBS in removal(f":{CLEAR_JOBS} - [0:0]\n")


OWN = replace(POOL_2, jobs=(3, 46), exclusive=frozenset({7, 59, 63}))
"""DSCPs of a host whose jobs have 3 and 46 for their life."""


@pytest.mark.parametrize("acknowledgements", [63, 40, None])
def test_a_program_may_set_the_dscps_of_jobs_here_and_no_other_one_that_is_ours(acknowledgements: int | None) -> None:
    groups = [GroupMark("a", 3, CgroupId("/jobs/a", 7)), GroupMark("b", 46, CgroupId("/jobs/b", 8))]
    points = replace(OWN, acknowledgements=acknowledgements)
    text = switch_over(groups, 0, jump=True, points=points)
    for group in ("/", "/jobs/a", "/jobs/b"):
        sent = [sent_dscp(text, dscp, protocol="udp", group=group) for dscp in (3, 46, 7, 59, 63, 26, 0)]
        assert sent == [3, 46, 0, 0, 0, 26, 0], "such as for a tunnel"
    assert sent_dscp(text, 40, protocol="udp", group="/jobs/a") == (0 if acknowledgements == 40 else 40)
    assert [sent_dscp(text, dscp, group="/jobs/a") for dscp in (0, 46, 7)] == [3, 3, 3], "its connections are the job's"
    expected = 3 if acknowledgements is None else acknowledgements
    assert sent_dscp(text, 0, group="/jobs/a", length=52) == expected


def test_a_plan_changes_nothing_where_jobs_have_their_own_dscps() -> None:
    base = {"host": "h1", "epoch": 1, "policy": "fifo", "mode": "dscp", "class_dscp": [59, 51, 43]}
    base |= {"class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e9}
    plans = [
        HostPlan.model_validate(
            base
            | {
                "jobs": [{"job": "a", "dscp": 3, "service_class": k}],
                "marks": [{"job": "a", "service_class": k, "dscp": 3, "local_port": 5000}],
            }
        )
        for k in (0, 2)
    ]
    before, after = plans
    assert new_classes(before.marks, after.marks, 0) == ""
    assert before.code_points == after.code_points


@pytest.mark.parametrize("own", [0, 46, *POOL_2.owned])
def test_a_mark_decides_whatever_the_program_set(own: int) -> None:
    text = switch_over([mark("a", 51, remote="10.0.0.2", remote_port=80), mark("b", 11, local_port=90)], 1, jump=True)
    assert sent_dscp(text, own, "10.0.0.2", dport=80) == 51
    assert sent_dscp(text, own, sport=90) == 11


@pytest.mark.parametrize(
    ("flags", "length", "goes_first"),
    [
        ("SYN", 60, True),
        ("SYN ACK", 60, True),
        ("ACK", 40, True),
        ("ACK", 52, True),
        ("ACK", 80, True),
        ("ACK", 81, False),
        ("ACK", 65_000, False),
        ("ACK PSH", 60, False),
        ("ACK FIN", 52, False),
        ("RST", 40, False),
    ],
)
def test_what_carries_no_data_goes_first_but_no_end_before_its_data(flags: str, length: int, goes_first: bool) -> None:
    marks = [mark("a", 11, remote="10.0.0.2", remote_port=80)]

    def sent(**packet: object) -> int:
        return sent_dscp(text, 0, length=length, flags=frozenset(flags.split()), **packet)

    text = switch_over(marks, 0, jump=True)
    assert sent(remote="10.0.0.2", dport=80) == (POOL_2.acknowledgements if goes_first else 11)
    assert sent() == 0, "what is no job's stays as it is"
    text = switch_over(marks, 0, jump=True, acknowledgements=False)
    assert sent(remote="10.0.0.2", dport=80) == 11


def test_only_the_marks_have_rules_that_are_counted() -> None:
    text = switch_over([mark("a", remote_port=80), mark("b", remote_port=81)], 0, jump=True)
    assert sum(line.startswith(f"-A {GENERATIONS[0]} ") for line in text.splitlines()) == 2
    assert removal(f":{CHAIN} - [0:0]\n:{CHAIN}-CLEAR - [0:0]\n").count("-X ") == 2


def test_the_first_mark_that_matches_decides() -> None:
    marks = [
        mark("a", 11, remote="10.0.0.2", remote_port=80),
        mark("b", 22, remote="10.0.0.2"),
        mark("c", 33, local_port=5),
    ]
    text = switch_over(marks, 1, jump=True)
    assert dscp_of(text, 1, "10.0.0.2", 5, 80) == 11
    assert dscp_of(text, 1, "10.0.0.2", 5, 81) == 22
    assert dscp_of(text, 1, "10.0.0.3", 5, 80) == 33


def test_one_commit_fills_the_idle_chain_and_leads_there() -> None:
    text = switch_over([mark("a", local_port=5000)], 0, jump=False)
    assert text.count("*mangle") == text.count("COMMIT") == 1
    assert ":TRAINYARD-A - [0:0]" in text
    assert "-A TRAINYARD -g TRAINYARD-A" in text
    assert "TRAINYARD-B" not in text, "what is in force keeps its counters until it is read"
    assert "OUTPUT" not in text
    assert switch_over([], 0, jump=True).count("-A OUTPUT -j TRAINYARD\n") == 1


def test_a_new_class_replaces_one_rule_and_a_new_match_is_another_matter() -> None:
    before = [mark("a", 11, local_port=5000), mark("b", 22, local_port=6000), mark("a", 11, remote_port=5000)]
    after = [mark("a", 11, local_port=5000), mark("b", 33, local_port=6000), mark("a", 11, remote_port=5000)]
    assert new_classes(before, after, 1) == "*mangle\n-R TRAINYARD-B1 1 -j DSCP --set-dscp 33\nCOMMIT\n"
    assert new_classes(before, before, 0) == ""
    assert new_classes(before, after[:2], 0) is None
    assert new_classes(before, [mark("a", 11, local_port=5001), *after[1:]], 0) is None
    swapped = [mark("a", 22, local_port=5000), mark("b", 11, local_port=6000), mark("a", 22, remote_port=5000)]
    assert str(new_classes(before, swapped, 0)).count("-R ") == 2


@pytest.mark.parametrize("remote", ["10.0.0.1\n-A OUTPUT -j DROP", "10.0.0.1 -j DROP", "::1", "h1", "", "10.0.0.1/0"])
def test_only_an_address_gets_into_the_text(remote: str) -> None:
    with pytest.raises(MarkError, match="job a"):
        switch_over([mark("a", remote=remote)], 0, jump=False)


def test_what_was_saved_is_read() -> None:
    assert jumps(SAVED) == 1
    assert counts(SAVED) == {"TRAINYARD-A": (120,), "TRAINYARD-B": (380, 0)}
    assert jumps("") == 0
    assert counts("") == {}


def test_only_what_is_ours_is_taken_away() -> None:
    lines = removal(SAVED).splitlines()
    assert lines[0] == "*mangle"
    assert lines[-1] == "COMMIT"
    assert lines.count("-D OUTPUT -j TRAINYARD") == 1
    chains = ["TRAINYARD", "TRAINYARD-A", "TRAINYARD-B", "TRAINYARD-D59"]
    assert [line.removeprefix("-X ") for line in lines if line.startswith("-X ")] == chains
    assert lines.index("-F TRAINYARD-D59") < lines.index("-X TRAINYARD"), "no chain goes while another leads to it"


def counted(sent: SentBytes) -> dict[str, float]:
    return {job: count.bytes for job, count in sent.totals().items()}


def test_counts_go_on_over_a_change_of_rules() -> None:
    sent = SentBytes()
    a, b = mark("a"), mark("b")
    sent.change([a, b, a])
    sent.count([a, b, a], [10, 5, 1])
    assert counted(sent) == {"a": 11, "b": 5}
    sent.count([a, b, a], [20, 5, 1])
    sent.change([b, a])
    assert counted(sent) == {"a": 21, "b": 5}
    sent.count([b, a], [1, 2])
    assert counted(sent) == {"a": 23, "b": 6}
    sent.count([b, a], [1])
    assert counted(sent) == {"a": 23, "b": 6}, "someone else's rules are not believed"
    sent.change([a])
    assert sent.totals() == {"a": Sent(23, 0)}
    sent.change([a, b])
    sent.count([a, b], [1, 7])
    assert sent.totals() == {"a": Sent(24, 0), "b": Sent(7, 3)}, "who comes back is counted from zero, and it is seen"


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=3, max_size=3), max_size=10))
def test_totals_are_the_sum_over_all_generations(generations: list[list[int]]) -> None:
    sent, marks = SentBytes(), [mark("a"), mark("b"), mark("a")]
    for values in generations:
        sent.change(marks)
        sent.count(marks, values)
    totals = sent.totals()
    assert totals.get("a", Sent(0)).bytes == sum(values[0] + values[2] for values in generations)
    assert totals.get("b", Sent(0)).bytes == sum(values[1] for values in generations)


def test_an_old_order_is_opened_and_only_the_agents_end_takes_the_clearing_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Noted(Marker):
        did: tuple[str, ...] = ()

        def open(self) -> None:
            self.did += ("open",)

        def remove(self) -> None:
            self.did += ("remove",)
            raise IptablesError("locked")

    marker = Noted()
    enforcement = Enforcement(marker, None, Notices(logging.getLogger("test")))
    enforcement.open()
    assert marker.did == ("open",), "what a program sets itself is still cleared"
    enforcement.remove()
    assert marker.did == ("open", "remove")
    assert "the marks cannot be taken away: locked" in caplog.text


def test_where_the_kernel_cannot_tell_acknowledgements_they_stay_with_their_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tool(IptablesTool):
        committed = ""

        def save(self) -> str:
            return ""

        def commit(self, text: str) -> None:
            assert "-m length" not in text
            self.committed = text

    def run(_command: object, text: str = "") -> str:
        if "-m length" in text:
            raise IptablesError("Extension length revision 0 not supported, missing kernel module?")
        return ""

    tools: list[Tool] = []
    monkeypatch.setattr(iptables_tool, "run", run)
    monkeypatch.setattr(iptables_tool, "IptablesTool", lambda variant: tools.append(Tool(variant)) or tools[-1])
    marker = Marker()
    enforcement = Enforcement(marker, None, Notices(logging.getLogger("test")))
    plan = {"host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": [59], "class_floor": 0.01}
    marks = [mark("a", 59, remote="10.0.0.2", remote_port=80)]
    assert enforcement.apply(HostPlan.model_validate(plan | {"other_floor": 0.1, "egress_bps": 1e9, "marks": marks}))
    assert sent_dscp(tools[0].committed, 0, "10.0.0.2", dport=80, length=52) == 59
    assert enforcement.marking == Marking(jobs=True, acknowledgements=False)


class Kernel(IptablesTool):
    """A tool whose table is the last text that was committed. ``refuses`` makes it refuse the next ones."""

    def __init__(self, variant: str) -> None:
        super().__init__(variant)
        self.texts: list[str] = []
        self.refuses = False

    def save(self) -> str:
        return self.texts[-1] if self.texts else ""

    def version(self) -> None:
        return None

    def commit(self, text: str) -> None:
        if self.refuses:
            raise IptablesError("refused")
        # The jump of the first text stays.
        self.texts.append(text if JUMP in text else f"{text}{JUMP}\n")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The tools that a marker opens; the first one is all that it opens."""
    tools: list[Kernel] = []
    monkeypatch.setattr(iptables_tool, "run", lambda _command, _text="": "")
    monkeypatch.setattr(iptables_tool, "IptablesTool", lambda variant: tools.append(Kernel(variant)) or tools[-1])
    return tools


def test_other_dscps_replace_all_rules_though_the_marks_are_the_same(kernel: list[Kernel]) -> None:
    marker, marks = Marker(), [mark("a", 56, local_port=90)]
    marker.apply(marks, SHARED)
    assert not marker.marks_acknowledgements, "no switch can tell them"
    marker.apply(marks, SHARED)
    assert len(kernel[0].texts) == 1, "nothing has changed"
    # What the kernel has refused is not taken for installed.
    kernel[0].refuses = True
    with pytest.raises(IptablesError):
        marker.apply(marks, POOL_2)
    assert not marker.marks_acknowledgements
    kernel[0].refuses = False
    marker.apply(marks, POOL_2)
    assert marker.marks_acknowledgements
    assert [sent_dscp(kernel[0].texts[-1], dscp) for dscp in (56, 59, 63)] == [56, 0, 0]
    # What is put back, and what is left where nobody says what goes first, has the same DSCPs.
    marker.put_back()
    marker.open()
    assert [sent_dscp(text, 59) for text in kernel[0].texts[-2:]] == [0, 0]


def test_a_table_that_iptables_cannot_show_is_not_taken_for_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        iptables_tool, "run", lambda _command, _text="": "# Table `mangle' is incompatible, use 'nft' tool.\n"
    )

    def refuse(_restorer: Restorer, _table: str) -> str:
        raise ToolError("table `mangle' is incompatible, use 'nft' tool.")

    monkeypatch.setattr(Restorer, "listing", refuse)
    with pytest.raises(IptablesError, match="rules into the table mangle that iptables cannot show"):
        IptablesTool("iptables").save()
