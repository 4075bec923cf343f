"""The outer headers of tunnels of the kernel on a real cable, by real iptables: what leaves, and for whom."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from controller.wire import HostPlan
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.marking import iptables
from host_reporter.marking.enforcement import Enforcement
from host_reporter.marking.families import IPV6
from host_reporter.marking.iptables import Marker
from host_reporter.notices import Notices
from tests.support.agent.cabled_host import PEER
from tests.support.host.repaired import sh, variants
from tests.support.host.tunnelled_pods import DATAGRAM_BYTES, UDP_PORTS, Pod, kinds, lay, left_while, tunnelled_pods

ECT = 0b10
WHOLE = {"job": "a", "service_class": 0, "dscp": 59}


def plan(*marks: dict[str, Any]) -> HostPlan:
    return HostPlan.model_validate(
        {
            "host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": (59, 51, 43),
            "class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e8, "marks": marks,
        }
    )  # fmt: skip


class Host:
    """A host with a job's pod, another pod, and a tunnel."""

    def __init__(self, variant: str, kind: str, below: int, pods: tuple[Pod, Pod]) -> None:
        self.variant, self.kind, self.below = variant, kind, below
        self.pod, self.stranger = pods
        self.enforcement = Enforcement(Marker(), None, Notices(logging.getLogger("agent")), marker_ipv6=Marker(IPV6))
        own = {socket.inet_aton(self.pod.address), socket.inet_pton(socket.AF_INET6, self.pod.ipv6)}
        self.sources = PacketSources(frozenset("a"), pods={"a": frozenset(own)})
        # IPv4 alone goes into a tunnel of IP in IP.
        self.within = (False,) if kind == "ipip" else (False, True)

    def left(self, pod: Pod, traffic_class: int) -> set[int]:
        """Returns the TOS bytes of outer headers around what a pod sends, over all families."""
        return left_while(lambda: [pod.send(traffic_class, over_ipv6=each) for each in self.within], self.kind)

    def saved(self) -> str:
        return "".join(sh(f"{tool}-save -t mangle") for tool in (self.variant, IPV6.variant(self.variant)))


HERE = [(variant, kind, below) for variant in variants() for kind, below in kinds()]
"""The variants of iptables and the kinds of tunnels of this kernel, and the IP version that carries them."""


@pytest.fixture(params=HERE, ids=str)
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    variant, kind, below = request.param
    monkeypatch.setattr(iptables, "VARIANTS", (variant,))
    with tunnelled_pods() as pods:
        lay(kind, below)
        made = Host(variant, kind, below, pods)
        yield made
        made.enforcement.remove()
        assert "TRAINYARD" not in made.saved()


def test_a_jobs_pods_are_marked_outside_with_their_ecn_and_nobody_elses(host: Host) -> None:
    host.enforcement.set_sources(host.sources)
    assert host.enforcement.apply(plan())
    assert host.left(host.pod, 59 << 2 | ECT) == {ECT}, "without a plan for the job nothing is marked"
    assert host.enforcement.apply(plan(WHOLE))
    assert host.left(host.pod, ECT) == {59 << 2 | ECT}
    assert host.left(host.stranger, 59 << 2 | ECT) == {ECT}
    # A new class, and a controller that is gone.
    assert host.enforcement.apply(plan(WHOLE | {"dscp": 43}), look=False)
    assert host.left(host.pod, 59 << 2) == {43 << 2}
    assert host.enforcement.marking.tunnel_ports == tuple(port for port in (UDP_PORTS[host.kind],) if port)
    host.enforcement.open()
    assert "u32" not in host.saved()
    assert host.left(host.pod, 59 << 2 | ECT) == {ECT}


def test_it_does_not_matter_whether_the_tunnel_copies_the_dscp_itself(host: Host) -> None:
    host.enforcement.set_sources(host.sources)
    assert host.enforcement.apply(plan(WHOLE))
    lay(host.kind, host.below, "tos inherit")
    host.enforcement.reconcile()
    assert host.left(host.pod, 46 << 2 | ECT) == {59 << 2 | ECT}
    assert host.left(host.stranger, 51 << 2) == {0}, "a class's DSCP"
    assert host.left(host.stranger, 46 << 2) == {46 << 2}, "another program's"


def test_a_tunnel_that_comes_later_is_found_and_what_others_change_is_put_back(host: Host) -> None:
    sh("ip link del overlay")
    host.enforcement.set_sources(host.sources)
    assert host.enforcement.apply(plan(WHOLE))
    lay(host.kind, host.below)
    host.enforcement.reconcile()
    assert host.left(host.pod, 0) == {59 << 2}
    tool = host.variant if host.below == 4 else IPV6.variant(host.variant)
    sh(f"{tool} -t mangle -F TRAINYARD-{host.kind.upper()}")
    assert host.left(host.pod, 0) == {0}
    host.enforcement.reconcile()
    assert host.left(host.pod, 0) == {59 << 2}


@pytest.mark.parametrize("host", [here for here in HERE if here[1] != "ipip" and here[2] == 4], indirect=True, ids=str)
def test_a_program_of_the_host_cannot_pretend_to_be_a_tunnel(host: Host) -> None:
    host.enforcement.set_sources(host.sources)
    assert host.enforcement.apply(plan(WHOLE))
    inside = Ether() / IP(src=host.pod.address, dst="10.245.0.9") / UDP() / Raw(bytes(DATAGRAM_BYTES))
    packet = (VXLAN(vni=7) if host.kind == "vxlan" else GENEVE(vni=7)) / inside

    def forge() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
            program.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 59 << 2)
            program.sendto(bytes(packet), (PEER, UDP_PORTS[host.kind]))

    assert left_while(forge, host.kind) == {0}
