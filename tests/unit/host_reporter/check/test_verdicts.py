"""What the checks of a host conclude from what they have seen, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from host_reporter.check import interface, kernel, modules, overlays, rights
from host_reporter.check.interface import Facts
from host_reporter.check.modules import Modules
from host_reporter.check.verdict import Verdict, exit_status, lines, missing, note, ok
from host_reporter.discovery.cgroups import Hierarchy
from host_reporter.nic.netdev import Netdev, Tunnel
from host_reporter.options import NamedInterface, Options


def options(**given: Any) -> Options:
    return Options.model_validate(given)


def states(verdicts: Any) -> list[str]:
    return [verdict.state for verdict in verdicts]


def of(verdicts: Any, word: str) -> Verdict:
    (found,) = [verdict for verdict in verdicts if word in verdict.text]
    return found


def test_a_line_for_each_check_and_one_for_what_would_help() -> None:
    found = [
        ok("kernel", "it is there"),
        missing("nic", "there is no eth9", "name another"),
        note("clock", "it is late"),
    ]
    assert lines(found) == [
        "ok       kernel: it is there",
        "missing  nic: there is no eth9",
        "         would help: name another",
        "note     clock: it is late",
    ]
    assert exit_status(found) == 1
    assert exit_status(found[::2]) == 0


@pytest.mark.parametrize(
    ("given", "held", "needed"),
    [
        ({}, set(), {"CAP_NET_ADMIN", "CAP_NET_RAW"}),
        ({}, {"CAP_NET_ADMIN", "CAP_NET_RAW"}, set()),
        ({"marking": False}, set(), set()),
        ({"marking": False, "interface": "eth0"}, set(), {"CAP_NET_ADMIN"}),
        ({"marking": False, "enrol_token_file": "/x"}, set(), set()),
    ],
)
def test_only_rights_that_the_options_ask_for_are_missing(given: Any, held: set[str], needed: set[str]) -> None:
    found = list(rights.verdicts(frozenset(held), options(**given)))
    assert {each.text.split()[0] for each in found if each.state == "missing"} == needed
    assert {"CAP_SYS_PTRACE", "CAP_SYS_ADMIN"} <= {each.text.split()[0] for each in found}


def test_rights_are_those_that_the_kernel_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000003000\n")
    monkeypatch.setattr(rights, "STATUS", status)
    found = list(rights.check(options()))
    assert [each.text.split()[0] for each in found if each.state == "ok"] == ["CAP_NET_ADMIN", "CAP_NET_RAW"]


def test_modules_are_read_from_the_kernels_lists(tmp_path: Path) -> None:
    folder, loaded = tmp_path / "modules", tmp_path / "loaded"
    folder.mkdir()
    (loaded / "xt_cgroup").mkdir(parents=True)
    (folder / "modules.builtin").write_text("kernel/net/sched/sch_htb.ko\n")
    (folder / "modules.dep").write_text(
        "kernel/net/netfilter/xt_DSCP.ko.xz: kernel/net/netfilter/x_tables.ko.xz\nkernel/net/sched/cls-u32.ko:\n"
    )
    found = modules.read(loaded, folder)
    wanted = {
        "sch_htb": "is built in",
        "xt_cgroup": "is loaded",
        "xt_dscp": "can be loaded",
        "cls_u32": "can be loaded",
        "sch_fq": "not there",
    }
    assert {name: found.presence(name) for name in wanted} == wanted
    nothing = modules.read(tmp_path / "none", tmp_path / "none")
    assert nothing.presence("sch_htb") == "not known"


EVERYTHING = Modules(frozenset({"xt_dscp", "xt_cgroup", "sch_htb", "cls_u32"}), frozenset(), frozenset(), True)
NOTHING = Modules(frozenset(), frozenset(), frozenset(), True)
UNKNOWN = NOTHING._replace(is_listed=False)


@pytest.mark.parametrize(
    ("present", "which", "said"),
    [
        (EVERYTHING, True, ["ok", "ok", "ok"]),
        (NOTHING, False, ["missing", "missing", "note"]),
        (UNKNOWN, True, ["ok", "note", "note"]),
    ],
)
def test_what_marks_need(present: Modules, which: bool, said: list[str]) -> None:
    assert states(kernel.marking(present, lambda name: name if which else None)) == said


@pytest.mark.parametrize(
    ("present", "which", "said"),
    [(EVERYTHING, True, ["ok"] * 3), (NOTHING, False, ["missing"] * 3), (UNKNOWN, True, ["ok", "note", "note"])],
)
def test_what_an_ordered_interface_needs(present: Modules, which: bool, said: list[str]) -> None:
    assert states(kernel.ordering(present, lambda name: name if which else None)) == said


def test_cgroups_and_sockets() -> None:
    first, second = (Hierarchy(Path("/sys/fs/cgroup"), "/", is_second=is_second) for is_second in (False, True))
    assert states([kernel.groups((second, first)), kernel.groups((first,)), kernel.groups(())]) == [
        "ok",
        "note",
        "note",
    ]
    assert states([kernel.sockets(None), kernel.sockets("it may not")]) == ["ok", "missing"]


UP = Facts(is_up=True, rate_bps=25e9, offloads={"TSO": False, "GSO": True, "GRO": True})


@pytest.mark.parametrize(
    ("facts", "wanted", "said"),
    [
        (None, None, ["missing"]),
        (UP, None, ["ok", "ok"]),
        (UP._replace(is_up=False), None, ["missing", "ok", "ok"]),
        (UP, 20e9, ["ok", "ok"]),
        (UP, 40e9, ["missing", "ok"]),
        (UP._replace(rate_bps=None), None, ["note", "ok"]),
        (UP._replace(rate_bps=None), 1e9, ["ok", "ok"]),
        (UP._replace(offloads={"TSO": True}), None, ["ok", "note"]),
        (UP._replace(offloads={}), None, ["ok"]),
    ],
)
def test_what_is_said_of_an_interface(facts: Facts | None, wanted: float | None, said: list[str]) -> None:
    assert states(interface.verdicts("eth0", facts, wanted)) == said


def test_the_loopback_is_looked_at_as_it_is() -> None:
    facts = interface.look("lo")
    assert facts is not None
    assert (facts.is_up, facts.rate_bps) == (True, None)
    assert set(facts.offloads) <= set(interface.OFFLOADS)
    assert interface.look("no-such-if") is None


def test_a_vlan_and_a_bond_are_looked_at_where_they_are_ordered() -> None:
    netdevs = {
        2: Netdev(2, "eth0", 1, master=5),
        3: Netdev(3, "eth1", 1, master=5),
        5: Netdev(5, "bond0", 1, kind="bond", bond_mode=4),
        6: Netdev(6, "bond0.7", 1, kind="vlan", lower=5),
        7: Netdev(7, "team0", 1, kind="team"),
    }

    def look_at(name: str) -> Facts | None:
        return Facts(True, 10e9, {}) if name != "eth9" else None

    found = list(interface.placed(NamedInterface(name="bond0.7", rate_bps=30e9), netdevs, look_at))
    assert of(found, "bond0.7").text == "bond0.7 is ordered at what carries its packets: eth0, eth1"
    assert of(found, "--rate-bps is 1.5e+10 bit/s, and eth0 has 1e+10").state == "missing"
    (team,) = interface.placed(NamedInterface(name="team0"), netdevs, look_at)
    assert team.state == "missing" and "name its ports" in team.text
    (gone,) = interface.placed(NamedInterface(name="eth9"), netdevs, look_at)
    assert gone.text == "there is no interface eth9"
    assert [each.text for each in interface.placed(NamedInterface(name="eth0"), netdevs, look_at)] == [
        "eth0 has 1e+10 bit/s"
    ]


def test_ip6tables_is_looked_for_where_ipv6_leads_somewhere() -> None:
    (none,) = kernel.marking_ipv6("link", lambda _name: None)
    assert none.state == "ok"
    (lacks,) = kernel.marking_ipv6("network", lambda _name: None)
    assert lacks.state == "note" and "marked at the sockets" in lacks.text
    (has,) = kernel.marking_ipv6("network", lambda name: name if "legacy" in name else None)
    assert has == ok("kernel", "ip6tables-legacy-restore is installed")


CAN_LOOK = EVERYTHING._replace(loadable=frozenset({"xt_owner", "xt_u32"}))
CAN_TELL = EVERYTHING._replace(loadable=frozenset({"xt_owner"}))
UNKNOWN = Modules(frozenset(), frozenset(), frozenset(), False)


@pytest.mark.parametrize(
    ("present", "is_marking", "tunnel", "state", "words"),
    [
        (CAN_LOOK, True, Tunnel("vxlan", 8472), "ok", "flannel.1 (VXLAN, UDP 8472): its outer headers get the DSCP"),
        (UNKNOWN, True, Tunnel("ipip"), "ok", "flannel.1 (IP in IP): its outer headers get the DSCP"),
        (CAN_TELL, True, Tunnel("geneve", 6081, inherits=True), "ok", "xt_u32 is not there, and it inherits"),
        (CAN_TELL, True, Tunnel("geneve", 6081), "note", "as the tunnel makes them"),
        (EVERYTHING, True, Tunnel("vxlan", 4789, inherits=True), "note", "xt_owner is not there"),
        (CAN_LOOK, False, Tunnel("vxlan", 4789, inherits=True), "ok", "marks no packets, and it inherits"),
        (CAN_LOOK, False, Tunnel("vxlan", 4789), "note", "marks no packets, so its outer headers are as"),
    ],
)
def test_each_tunnel_has_a_line_on_its_outer_headers(
    present: Modules, is_marking: bool, tunnel: Tunnel, state: str, words: str
) -> None:
    others = [Netdev(2, "eth0", 1), Netdev(3, "br0", 1, "bridge")]
    device = Netdev(4, "flannel.1", 1, tunnel.kind, tunnel=tunnel)
    (found,) = overlays.verdicts([*others, device], present, is_marking=is_marking)
    assert found.state == state
    assert words in found.text


@pytest.mark.parametrize(
    ("tunnel", "words"),
    [
        (Tunnel("vxlan", 4789), "install the kernel's module xt_u32, or: ip link set t0 type vxlan tos inherit"),
        (Tunnel("vxlan", 4789, is_by_packet=True), "Open vSwitch: options:tos=inherit"),
        (Tunnel("ipip"), "ip tunnel change t0 tos inherit"),
    ],
)
def test_how_a_tunnel_is_told_to_copy_the_dscp_itself(tunnel: Tunnel, words: str) -> None:
    (found,) = overlays.verdicts([Netdev(4, "t0", 1, tunnel.kind, tunnel=tunnel)], CAN_TELL, is_marking=True)
    assert found.help is not None
    assert words in found.help


def test_what_encrypts_and_other_tunnels_are_named() -> None:
    devices = [Netdev(4, "wg0", 65534, "wireguard"), Netdev(5, "gre1", 778, "gre")]
    encrypts, other = overlays.verdicts(devices, CAN_LOOK, is_marking=True)
    assert (encrypts.state, other.state) == ("note", "note")
    assert "wg0 encrypts" in encrypts.text
    assert "gre1 (gre)" in other.text
