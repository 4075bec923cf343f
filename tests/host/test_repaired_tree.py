"""Others' changes to an interface's tree: what one look later is whole again, and said once, with what was missing."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.nic.errors import NicError
from host_reporter.nic.tensorlights.bands import Server, Sharing
from host_reporter.nic.tensorlights.nic import TensorLightsNic
from host_reporter.nic.tree import htb_tree
from host_reporter.notices import Notices
from host_reporter.repairs import Repairs
from tests.support.host.repaired import NIC, Host, make_interface, ordered, plan, sh

ROOT = f"dev {NIC} parent 7472:"
SERVERS = tuple(Server(job, (7101 + n,), 1e6, float(n)) for n, job in enumerate("ab"))


@pytest.fixture
def host(caplog: pytest.LogCaptureFixture) -> Iterator[Host]:
    with ordered(caplog) as made:
        yield made


def shown() -> tuple[list[str], ...]:
    """All that the interface has; not the numbers that the kernel gives hash tables, nor what was sent."""
    found = []
    for what in ("qdisc", "class", "filter"):
        text = sh(f"tc {what} show dev {NIC}")
        text = re.sub(r"direct_packets_stat \d+ ", "", text)
        text = re.sub(r"fh [0-9a-f]+:(:[0-9a-f]+)? ?", "", re.sub(r"key ht [0-9a-f]+ ", "", text))
        found.append(sorted(line.rstrip() for line in re.sub(r"\n +", " ", text).splitlines()))
    return tuple(found)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            f"tc filter del {ROOT}",
            "the filter for DSCP 43, the filter for DSCP 51, the filter for DSCP 59, the filter ",
        ),
        (f"tc filter del {ROOT} prio 3", "the filter for DSCP 63 were gone"),
        (f"tc filter del {ROOT} protocol ip prio 3 handle 800::3b u32", "the filter for DSCP 59 was gone"),
        (f"tc filter del {ROOT} protocol arp prio 4", "the filter for ARP was gone"),
        (
            f"tc filter replace {ROOT} protocol ip prio 3 handle 800::3b u32 match ip tos 0xec 0xfc flowid 7472:1f",
            "the filter for DSCP 59 was changed",
        ),
        (
            f"tc filter del {ROOT} protocol ip prio 3 handle 800::3b u32; "
            f"tc filter add {ROOT} protocol ip prio 3 handle 800::3b u32 match ip tos 0x04 0xfc flowid 7472:10",
            "the filter for DSCP 59 was gone; the filter for DSCP 1 was not the agent's",
        ),
        (f"tc qdisc del dev {NIC} root", "all 33 parts of the tree were gone"),
        (f"ip link del {NIC}; ip link add ty3 type veth peer name ty4; PUT", "all 33 parts of the tree were gone"),
        (f"tc filter del {ROOT}; tc class del dev {NIC} classid 7472:11", "class 7472:11, the queue of class 7472:11,"),
        (f"tc class del dev {NIC} classid 7472:fffe", "class 7472:fffe was gone"),
        (
            f"tc class change dev {NIC} parent 7472:1 classid 7472:11 htb rate 1mbit ceil 2mbit prio 0",
            "class 7472:11 was changed",
        ),
        (f"tc class change {ROOT} classid 7472:1 htb rate 1mbit", "class 7472:1 was changed"),
        (
            f"tc qdisc replace dev {NIC} parent 7472:10 handle 99: pfifo limit 3",
            "the queue of class 7472:10 was changed",
        ),
        (f"tc qdisc del dev {NIC} parent 7472:1f", "the queue of class 7472:1f was"),
    ],
)
def test_whatever_somebody_does_to_the_tree_is_put_back_and_said_once(host: Host, command: str, words: str) -> None:
    before = shown()
    sh(command.replace("PUT", f"ip link add {NIC} type veth peer name ty1; ip link set {NIC} up"))
    assert shown() != before
    host.forget()
    host.enforcement.reconcile()
    assert shown() == before
    for _ in range(3):
        host.enforcement.reconcile()
    (said,) = host.said()
    assert said.startswith(f"somebody else has changed the traffic control of {NIC}: ")
    assert words in said
    # What was put back is the tree that later plans change.
    host.apply(plan(2, class_dscp=(59, 51)))
    assert len(shown()[1]) == 5
    host.enforcement.reconcile()
    assert len(host.said()) == 1


@pytest.mark.parametrize(
    "command",
    [
        f"ip link set {NIC} down && ip link set {NIC} up",
        f"ip link set {NIC} mtu 1400 txqueuelen 50",
        f"ip address add 10.9.9.1/24 dev {NIC}",
        f"tc filter add {ROOT} protocol ip prio 9 u32 match ip tos 0xb8 0xfc flowid 7472:1f",
        f"tc class add {ROOT} classid 7472:77 htb rate 1mbit",
    ],
)
def test_what_is_none_of_the_trees_is_left_and_costs_no_line(host: Host, command: str) -> None:
    sh(command)
    before = shown()
    host.forget()
    for _ in range(3):
        host.enforcement.reconcile()
    host.apply(plan(2, dscps=(43, 51, 59)))
    assert shown() == before
    assert not host.said("")


def test_a_filter_before_ours_is_said_once_and_left(host: Host) -> None:
    sh(f"tc filter add {ROOT} protocol ip prio 1 u32 match u32 0 0 flowid 7472:1f")
    before = shown()
    for _ in range(3):
        host.enforcement.reconcile()
    assert shown() == before
    (said,) = host.said("a filter of somebody else (pref 1) sees packets before the agent's")
    assert f"tc filter del dev {NIC} parent 7472: pref 1" in said
    sh(f"tc filter del {ROOT} prio 1")
    host.enforcement.reconcile()
    assert host.said("no filter of somebody else is before the agent's any more")


def test_somebody_elses_root_is_said_once_and_left_and_ours_comes_when_it_goes(host: Host) -> None:
    ours = shown()
    sh(f"tc qdisc replace dev {NIC} root handle 9: pfifo")
    theirs = shown()
    for _ in range(3):
        host.enforcement.reconcile()
    assert not host.enforcement.apply(plan(2), look=False)
    assert shown() == theirs
    assert len(host.said("already has a pfifo qdisc (9:) that is not ours: left alone")) == 1
    sh(f"tc qdisc del dev {NIC} root")
    host.enforcement.reconcile()
    assert shown() == ours
    assert host.said(f"{NIC} serves the classes")


def test_somebody_elses_root_is_left_in_the_end_too(host: Host) -> None:
    sh(f"tc qdisc replace dev {NIC} root handle 9: pfifo")
    theirs = shown()
    host.enforcement.remove()
    assert shown() == theirs


def test_an_interface_that_goes_is_said_once_and_has_its_tree_again_when_it_is_back(host: Host) -> None:
    ours = shown()
    sh(f"ip link del {NIC}")
    for _ in range(3):
        host.enforcement.reconcile()
    assert len(host.said(f"there is no interface {NIC}")) == 1
    sh("ip link add ty3 type veth peer name ty4")
    make_interface()
    host.enforcement.reconcile()
    assert shown() == ours


def test_what_the_kernel_refuses_is_not_tried_all_the_time(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    nic = host.nic
    assert nic is not None

    def refused(*_arguments: str, text: str = "") -> str:
        tried.append(text)
        raise NicError("the kernel refuses it")

    sh(f"tc qdisc del dev {NIC} root")
    with monkeypatch.context() as patch:
        patch.setattr(nic, "_tc", refused)
        for _ in range(30):
            host.enforcement.reconcile()
    assert 5 <= len(tried) <= 7
    assert len(host.said("the kernel refuses it")) == 1


# TensorLights -------------------------------------------------------------------------------------------------------


def filters_of(root: str) -> list[str]:
    return [line for line in shown()[2] if f"parent {root}:" in line and re.search("pref [12] ", line)]


def inside() -> list[tuple[str, str]]:
    """The leaf and the port of each filter inside the first two bands."""
    text = "".join(sh(f"tc filter show dev {NIC} parent {tree}: || true") for tree in ("6700", "6701"))
    return sorted(re.findall(r"flowid (\S+)(?:(?!flowid).)*?match (\S+) at 20", text, re.S))


def put_back_and_said_once(
    root: str, command: str, words: str, caplog: pytest.LogCaptureFixture, sharing: Sharing = "shared"
) -> None:
    nic = TensorLightsNic(NIC, 1e7, sharing)
    repairs = Repairs(f"the traffic control of {NIC}", Notices(logging.getLogger("agent")))
    assert nic.serve(SERVERS, None)
    before, filters, inner = shown(), filters_of(root), inside()
    assert len(inner) == (len(SERVERS) if sharing == "each" else 0)
    found = re.search(
        r"fh ([0-9a-f]+::[0-9a-f]+) (?:(?!fh ).)*?match 1bbd0000/ffff0000 at 20", sh(f"tc filter show dev {NIC}"), re.S
    )
    assert found is not None
    sh(command.replace("NIC", NIC).replace("ROOT", root).replace("HANDLE", found[1]))
    assert (shown(), inside()) != (before, inner)
    for _ in range(3):
        repairs.look(nic)
    assert inside() == inner
    assert shown()[:2] == before[:2]
    assert filters_of(root) == filters
    (said,) = [record.getMessage() for record in caplog.records if "somebody else has changed" in record.getMessage()]
    assert words.replace("ROOT", root) in said
    assert nic.remove()


BANDS = [
    ("tc filter del dev NIC parent ROOT:", "the filter for port 7101, the filter for port 7102"),
    ("tc filter del dev NIC parent ROOT: prio 2", "the filter for all other traffic was gone"),
    ("tc filter del dev NIC parent ROOT: protocol ip prio 1 handle HANDLE u32", "the filter for port 7101 was gone"),
    ("tc class change dev NIC parent ROOT:1 classid ROOT:1100 htb rate 1mbit prio 0", "class ROOT:1100 was changed"),
    ("tc qdisc replace dev NIC parent ROOT:1000 handle 99: pfifo limit 3", "the queue of class ROOT:1000 was changed"),
]
OWN = [
    ("tc qdisc del dev NIC root", "parts of the tree were gone"),
    ("tc filter del dev NIC parent ROOT: prio 4", "the filter for ARP was gone"),
    ("tc class change dev NIC parent ROOT: classid ROOT:1 htb rate 1mbit", "class ROOT:1 was changed"),
]


@pytest.mark.parametrize(("command", "words"), BANDS + OWN)
def test_tensorlights_bands_are_put_back_and_said_once(
    caplog: pytest.LogCaptureFixture, command: str, words: str
) -> None:
    with own_namespace():
        make_interface()
        put_back_and_said_once("7473", command, words, caplog)


@pytest.mark.parametrize(("command", "words"), BANDS)
def test_so_are_those_in_the_testbeds_tree(caplog: pytest.LogCaptureFixture, command: str, words: str) -> None:
    with own_namespace():
        make_interface()
        sh("tc -batch -", "\n".join(htb_tree(NIC, 1e7, POOL_2.first(2), 0.01, 0.1)) + "\n")
        put_back_and_said_once("7472", command, words, caplog)


PLACES = [
    ("tc filter del dev NIC parent ROOT:", "the filter for port 7101, the filter for port 7102"),
    ("tc filter del dev NIC parent 6700:", "the filter for port 7101 in 6700: was gone"),
    (
        "tc filter add dev NIC parent 6701: protocol ip prio 1 u32 match ip sport 9 0xffff flowid 6701:1000",
        "the filter for port 9 in 6701: was not the agent's",
    ),
    ("tc class change dev NIC parent 6701: classid 6701:1 htb rate 1mbit", "class 6701:1 was changed"),
    ("tc class change dev NIC parent 6700:1 classid 6700:1000 htb rate 1mbit", "class 6700:1000 was changed"),
    ("tc qdisc replace dev NIC parent 6700:1000 handle 99: pfifo limit 3", "the queue of class 6700:1000 was changed"),
    ("tc qdisc replace dev NIC parent ROOT:1700 handle 99: pfifo limit 3", "the queue of class ROOT:1700 was changed"),
    ("tc qdisc del dev NIC parent ROOT:1701", "class 6701:1000, the queue of class 6701:1000 and 1 more were gone"),
    ("tc class change dev NIC parent ROOT:1 classid ROOT:1700 htb rate 1mbit", "class ROOT:1700 was changed"),
]


@pytest.mark.parametrize(("command", "words"), [*PLACES, OWN[0]])
def test_so_are_bands_with_trees_inside(caplog: pytest.LogCaptureFixture, command: str, words: str) -> None:
    with own_namespace():
        make_interface()
        put_back_and_said_once("7473", command, words, caplog, "each")


@pytest.mark.parametrize(("command", "words"), PLACES)
def test_so_are_those_in_the_testbeds_tree_too(caplog: pytest.LogCaptureFixture, command: str, words: str) -> None:
    with own_namespace():
        make_interface()
        sh("tc -batch -", "\n".join(htb_tree(NIC, 1e7, POOL_2.first(2), 0.01, 0.1)) + "\n")
        put_back_and_said_once("7472", command, words, caplog, "each")


def test_a_tree_inside_that_cannot_be_mended_is_said_and_made_anew() -> None:
    with own_namespace():
        make_interface()
        before = shown()
        nic = TensorLightsNic(NIC, 1e7, "each")
        assert nic.serve(SERVERS, None)
        ours = shown(), inside()
        sh(f"tc qdisc del dev {NIC} parent 7473:1700")
        sh(f"tc qdisc add dev {NIC} parent 7473:1700 handle 6700: htb default 77")
        with pytest.raises(NicError, match="refused"):
            nic.put_back()
        assert nic.remove()
        assert shown() == before
        assert nic.serve(SERVERS, None)
        assert (shown(), inside()) == ours
