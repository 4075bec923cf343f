"""Others' changes to the packet filter: what one look later is whole again, and said once, with what was missing."""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.wire import HostPlan, Mark
from evaluation.bench.support.hosts.job_process import second_hierarchy
from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.discovery import cgroups
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.marking import iptables
from host_reporter.marking.iptables_tool import IptablesTool
from tests.support.host.repaired import Host, marked, plan, sh, variants, walked

VARIANTS = variants()

SELECTORS: dict[str, Any] = {"class_dscp": (56, 48, 40), "acknowledgement_dscp": None, "exclusive_dscp": ()}
ECT = 0b10
"""Says that a sender knows of congestion notification (ECT(0), RFC 3168)."""
_DATAGRAM = """
import os, socket, sys
for place in sys.argv[3:]:
    with open(place, "w") as file:
        file.write(str(os.getpid()))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[2]))
    sender.sendto(b"x", ("127.0.0.1", int(sys.argv[1])))
"""

OTHER = {"c": 5003, "d": 5004, "e": 5005}


@pytest.fixture(params=VARIANTS)
def host(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Host]:
    with marked(request.param, caplog, monkeypatch) as made:
        yield made


def changed_and_put_back(host: Host, do: Callable[[], None]) -> str:
    """Do something to the table; it must be as it was after one look. Returns what was said, which is one line."""
    before = walked(host.saved())
    do()
    assert walked(host.saved()) != before, "nothing was changed"
    host.forget()
    host.enforcement.reconcile()
    assert walked(host.saved()) == before
    for _ in range(3):
        host.enforcement.reconcile()
    (said,) = host.said()
    assert said.startswith("somebody else has changed this host's packet filter (iptables, table mangle): ")
    return said


def dscp_of(host: Host, port: int) -> int:
    """The class of what leaves from a port, by the rules in force."""
    found = re.search(rf"--sport {port} -g', \(\('-j DSCP --set-dscp (0x\w+)'", str(walked(host.saved())))
    assert found is not None
    return int(found[1], 16)


def test_jobs_that_come_go_and_change_class_start_no_process(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_command: object, **_options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", start)
    host.apply(plan(2, dscps=(59, 51, 43, 35), ports={"a": 5001, "b": 5002, "c": 5003, "d": 5004}))
    host.apply(plan(3, dscps=(51, 59, 43, 35), ports={"a": 5001, "b": 5002, "c": 5003, "d": 5004}))
    host.apply(plan(4, dscps=(51, 43), ports={"a": 5001, "c": 5003}))
    host.enforcement.reconcile()
    assert set(host.enforcement.sent_bytes()) == {"a", "c"}
    monkeypatch.undo()
    assert (dscp_of(host, 5001), dscp_of(host, 5003)) == (51, 43)
    assert "5002" not in str(walked(host.saved()))
    assert not host.said()


def test_whatever_somebody_does_to_the_chains_is_put_back_and_said_once(host: Host) -> None:
    live = host.live()
    did = [
        ((f"-F {live}",), f"all rules of chain {live} (3) were gone"),
        (("-F TRAINYARD-CLEAR",), "all rules of chain TRAINYARD-CLEAR (8) were gone"),
        (("-D OUTPUT -j TRAINYARD",), "the jump from OUTPUT to TRAINYARD was gone"),
        (("-A OUTPUT -j TRAINYARD",), "the jump from OUTPUT to TRAINYARD was there 2 times"),
    ]
    for commands, words in did:
        said = changed_and_put_back(host, lambda commands=commands: host.iptables(*commands))
        # The chain in force is another one after each repair.
        assert words.replace(live, "TRAINYARD-") in said.replace("TRAINYARD-A", "TRAINYARD-").replace(
            "TRAINYARD-B", "TRAINYARD-"
        )


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (("-D LIVE 2",), "1 of 3 rules of chain LIVE was gone"),
        (("-D LIVE 1", "-D LIVE 1"), "2 of 3 rules of chain LIVE were gone"),
        (("-I LIVE -j ACCEPT",), "chain LIVE had 1 rule that the agent did not make"),
        (("-R LIVE0 1 -j DSCP --set-dscp 1",), "1 of 2 rules of chain LIVE0 were replaced by others"),
        (("-R TRAINYARD 2 -j RETURN",), "1 of 2 rules of chain TRAINYARD were replaced by others"),
        (("-D OUTPUT -j TRAINYARD", "-F TRAINYARD", "-X TRAINYARD"), "chain TRAINYARD was gone"),
        (("-F", "-X"), "all 6 chains of the agent were gone"),
    ],
)
def test_a_rule_a_chain_or_all_of_them(host: Host, commands: tuple[str, ...], words: str) -> None:
    live = host.live()
    if commands[0] == "-F":
        host.enforcement.open()
        host.apply(plan())
        live = host.live()
    said = changed_and_put_back(host, lambda: host.iptables(*(one.replace("LIVE", live) for one in commands)))
    assert words.replace("LIVE", live) in said
    if commands[0] == "-F":
        # It was the other's as well, and is not ours to put back.
        host.iptables("-A FORWARD -m comment --comment others")


def test_an_older_table_that_is_restored_gives_way_to_the_plan_in_force(host: Host) -> None:
    old = host.saved()
    host.apply(plan(2, ports=OTHER))
    host.apply(plan(3, dscps=(43, 51, 59), ports=OTHER))
    said = changed_and_put_back(host, lambda: sh(f"{host.variant}-restore", old) and None)
    assert "5001" not in str(walked(host.saved())), "a mark of the old plan"
    assert "the rule" in said or "rules" in said


def test_a_class_that_changes_is_no_change_of_somebody_elses(host: Host) -> None:
    for dscps in ((51, 59, 43), (51, 43, 59), (51, 43, 59)):
        host.apply(plan(2, dscps=dscps))
        host.enforcement.reconcile()
    assert not host.said()
    said = changed_and_put_back(host, lambda: host.iptables(f"-F {host.live()}0"))
    assert "(2) were gone" in said
    assert [dscp_of(host, port) for port in (5001, 5002, 5003)] == [51, 43, 59]


def test_others_rules_are_theirs_and_cost_no_line(host: Host) -> None:
    host.iptables("-A FORWARD -j ACCEPT", "-N OTHERS", "-A OTHERS -p udp -j ACCEPT", "-I OUTPUT -o lo -j OTHERS")
    before = host.saved()
    host.forget()
    for _ in range(3):
        host.enforcement.reconcile()
    assert host.saved() == before
    assert not host.said("")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("-I OUTPUT -j ACCEPT", "(-j ACCEPT) stands before the agent's and takes all packets that this host sends"),
        ("-I OUTPUT -p tcp -j RETURN", "takes all packets that this host sends"),
        ("-I OUTPUT -j OTHERS", "takes all packets that this host sends"),
        ("-I OUTPUT -d 10.0.0.0/8 -j ACCEPT", "takes the packets that it matches"),
        ("-A OUTPUT -j TOS --set-tos 0x10", "a rule of OUTPUT"),
        ("-A POSTROUTING -j DSCP --set-dscp 0", "a rule of POSTROUTING (-j DSCP --set-dscp 0x00) sets another DSCP"),
    ],
)
def test_a_rule_in_the_marks_way_is_said_once_and_left(host: Host, rule: str, words: str) -> None:
    host.iptables("-N OTHERS", "-A OTHERS -j ACCEPT", rule)
    before = host.saved()
    host.forget()
    for _ in range(3):
        host.enforcement.reconcile()
    (said,) = host.said("")
    assert words in said
    assert "remove it" in said
    assert host.saved() == before, "it is the operator's"
    host.iptables(rule.replace("-I ", "-D ").replace("-A ", "-D "))
    host.enforcement.reconcile()
    assert host.said("in the marks' way any more")


def test_a_rule_that_was_in_the_way_before_the_agent_came_is_said_too(host: Host) -> None:
    host.enforcement.remove()
    host.iptables("-A OUTPUT -j ACCEPT")
    host.apply(plan())
    assert host.said("stands before the agent's and takes all packets")


_SEND = """
import socket
server, peer = socket.create_server(("127.0.0.1", 9)), socket.socket()
peer.bind(("127.0.0.1", 5001))
peer.connect(("127.0.0.1", 9))
peer.sendall(bytes(50_000))
server.accept()[0].recv(10)
"""


def test_counts_do_not_go_back_where_somebody_sets_them_to_zero(host: Host) -> None:
    sh("ip link set lo up")
    subprocess.run([sys.executable, "-S", "-c", _SEND], check=True)
    first = host.enforcement.sent_bytes()["a"]
    assert first.bytes > 50_000
    host.iptables("-Z")
    assert host.enforcement.sent_bytes()["a"] == first


@pytest.fixture
def group(host: Host) -> Iterator[Path]:
    second = second_hierarchy()
    assert second is not None, "no cgroup2 hierarchy is mounted; run these tests as: scripts/test lab"
    made = second / f"ty-repaired-{secrets.token_hex(4)}"
    made.mkdir()
    yield made
    if made.exists():
        made.rmdir()


def in_group(path: Path) -> PacketSources:
    found = cgroups.find(str(path), cgroups.hierarchies())
    assert found is not None
    return PacketSources(frozenset("g"), {"g": CgroupId(found.path, found.id)})


def whole_job(epoch: int, dscp: int = 59, **ports: int) -> HostPlan:
    made = plan(epoch, ports=ports, dscps=(51,))
    return made.model_copy(update={"marks": (Mark(job="g", service_class=0, dscp=dscp), *made.marks)})


@pytest.mark.parametrize("change", ["class", "match"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_flush_in_the_middle_of_a_change_is_not_taken_for_a_kernel_without_cgroups(
    host: Host, group: Path, monkeypatch: pytest.MonkeyPatch, change: str, times: int
) -> None:
    host.enforcement.set_sources(in_group(group))
    host.apply(whole_job(1, p=5009))
    assert f"{group.name} " in host.saved() or f'{group.name}" ' in host.saved()
    left = times
    commit = IptablesTool.commit

    def flushed_before(tool: IptablesTool, text: str) -> None:
        nonlocal left
        if left > 0:
            left -= 1
            host.iptables("-F", "-X")
        commit(tool, text)

    monkeypatch.setattr(IptablesTool, "commit", flushed_before)
    host.forget()
    host.apply(whole_job(2, 51, p=5009) if change == "class" else whole_job(2, 51, p=5010))
    host.enforcement.reconcile()
    assert "--path" in host.saved(), "the job is marked by its cgroup"
    assert not host.said("connections that are found")
    saved = str(walked(host.saved()))
    assert "0x33" in saved
    assert ("5009" if change == "class" else "5010") in saved
    monkeypatch.undo()
    host.forget()
    host.enforcement.reconcile()
    assert not host.said()
    host.iptables("-A FORWARD -m comment --comment others")


def arrives_with(dscp: int, group: Path | None = None) -> int:
    """The TOS byte of a datagram that a program, in a cgroup or in none of a job's, sends with a DSCP and ECT(0)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        place = [] if group is None else [str(group / "cgroup.procs")]
        port = receiver.getsockname()[1]
        subprocess.run([sys.executable, "-S", "-c", _DATAGRAM, str(port), str(dscp << 2 | ECT), *place], check=True)
        _, ((_, _, tos),), _, _ = receiver.recvmsg(16, socket.CMSG_SPACE(1))
    return tos[0]


def test_other_programs_dscps_are_cleared_only_in_what_a_jobs_cgroup_sends(host: Host, group: Path) -> None:
    sh("ip link set lo up")
    host.enforcement.set_sources(in_group(group))
    host.apply(whole_job(1, 48, p=5009).model_copy(update=SELECTORS))
    for dscp, cleared in ((48, 0), (56, 0), (59, 59), (46, 46)):
        assert arrives_with(dscp) == dscp << 2 | ECT
        assert arrives_with(dscp, group) == cleared << 2 | ECT
    said = changed_and_put_back(host, lambda: host.iptables("-F TRAINYARD-JOBS"))
    assert "all rules of chain TRAINYARD-JOBS (3) were gone" in said
    # The next plan has DSCPs that are nobody else's.
    host.apply(whole_job(2, p=5009))
    for dscp, cleared in ((59, 0), (48, 48)):
        assert arrives_with(dscp) == arrives_with(dscp, group) == cleared << 2 | ECT
    host.forget()
    host.enforcement.reconcile()
    assert not host.said()


@pytest.mark.parametrize("dscps", [{}, SELECTORS], ids=["pool-2", "class-selectors"])
def test_a_cgroup_that_is_removed_and_made_again_is_matched_again(
    host: Host, group: Path, dscps: dict[str, Any]
) -> None:
    host.enforcement.set_sources(in_group(group))
    host.apply(whole_job(1, p=5009).model_copy(update=dscps))
    group.rmdir()
    # Nobody has told the enforcement yet. The older iptables can change nothing while a rule has a cgroup that is gone.
    host.apply(whole_job(2, 51, p=5009).model_copy(update=dscps))
    host.apply(whole_job(3, 51, p=5010).model_copy(update=dscps))
    assert "5010" in str(walked(host.saved()))
    assert not host.said("connections that are found")
    assert host.marker is not None
    group.mkdir()
    host.enforcement.set_sources(in_group(group))
    assert "--path" in str(walked(host.saved()))
    host.enforcement.reconcile()
    assert not host.said()
    said = changed_and_put_back(host, lambda: host.iptables(f"-F {host.live()}"))
    assert "were gone" in said


def test_marks_stay_in_the_tables_that_they_were_put_in_and_old_ones_in_the_others_go(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's alternative ``iptables`` is led elsewhere while an agent runs; then that one is killed."""
    kinds = ["iptables-legacy", "iptables-nft"]
    first, second = sorted(kinds, key=lambda kind: kind != VARIANTS[-1])

    def lead_to(kind: str) -> None:
        for name in ("iptables", "iptables-save", "iptables-restore"):
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).symlink_to(f"/usr/sbin/{name.replace('iptables', kind)}")

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(iptables, "VARIANTS", ("iptables",))
    with own_namespace():
        lead_to(first)
        host = Host(first, caplog)
        host.apply(plan())
        lead_to(second)
        host.apply(plan(2, dscps=(43, 51, 59)))
        host.apply(plan(3, ports=OTHER))
        host.enforcement.reconcile()
        assert not host.said()
        assert "5005" in str(walked(host.saved()))
        if len(VARIANTS) == 2:
            assert "TRAINYARD" not in sh(f"{second}-save -t mangle")
            successor = Host(second, caplog)
            successor.apply(plan())
            assert "TRAINYARD" not in host.saved()
            assert "5001" in str(walked(successor.saved()))
            successor.enforcement.remove()
        host.enforcement.remove()


def test_a_second_agent_is_a_fight_that_slows_down_and_is_said(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    other = Host(host.variant, caplog)
    other.apply(plan(1, ports=OTHER))
    host.forget()
    for _ in range(20):
        host.enforcement.reconcile()
        other.enforcement.reconcile()
    said = host.said()
    assert 10 <= len(said) <= 14, "each makes five repairs or six at once, and then waits"
    assert sum("the next one comes in 2 s at the earliest" in line for line in said) == 2
    assert "such as a second agent" in said[-1]
    other.enforcement.remove()
