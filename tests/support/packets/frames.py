"""The frames of the table of packets, made with scapy. ``FRAMES`` has each kind by its name in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address

from scapy.contrib.bfd import BFD
from scapy.contrib.geneve import GENEVE
from scapy.contrib.lacp import LACP, SlowProtocol
from scapy.contrib.lldp import LLDPDU, LLDPDUChassisID, LLDPDUEndOfLLDPDU, LLDPDUPortID, LLDPDUTimeToLive
from scapy.contrib.mpls import MPLS
from scapy.contrib.ospf import OSPF_Hdr, OSPF_Hello, OSPFv3_Hdr, OSPFv3_Hello
from scapy.contrib.roce import BTH, cnp
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.dhcp6 import DHCP6_Solicit
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.eap import EAPOL
from scapy.layers.igmp import IGMP
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoRequest,
    ICMPv6MLReport2,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6ND_RA,
    ICMPv6ND_RS,
    ICMPv6NDOptSrcLLAddr,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    RouterAlert,
)
from scapy.layers.ipsec import ESP
from scapy.layers.l2 import ARP, GRE, LLC, STP, Dot1AD, Dot1Q, Dot3, Ether
from scapy.layers.sctp import SCTP, SCTPChunkData
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from tests.support.packets.world import DECLARED, DECLARED_UDP, FOUND, LISTENING, Pair

BRIDGES, LLDP_GROUP, SLOW_GROUP = "01:80:c2:00:00:00", "01:80:c2:00:00:0e", "01:80:c2:00:00:02"
PORT_ACCESS_GROUP = "01:80:c2:00:00:03"
PTP_GROUP = "01:1b:19:00:00:00"
EVERYBODY = "ff:ff:ff:ff:ff:ff"
PROTO_UDP, PROTO_TCP = 17, 6
_ROCEV1, _PTP, _EAPOL = 0x8915, 0x88F7, 0x888E
_ROCE_PORT, _VXLAN_PORT = 4791, 4789
_UNKNOWN = 0x88B5
"""IEEE 802 leaves this EtherType to local experiments."""
_EPHEMERAL = 41000
ETHER_BYTES = 14
"""The length of an Ethernet header without tags."""
DATA = Raw(bytes(range(256)) * 2)
MUCH_DATA = Raw(bytes(8800))
"""Data for a frame of 9 kB."""
_WRITE = BTH(opcode="RC_RDMA_WRITE_MIDDLE", dqpn=7, psn=1)


@dataclass(frozen=True)
class Scene:
    """Between whom a packet is, its IP version (None: it is not IP), and what its sender sets."""

    pair: Pair
    family: int | None
    dscp: int = 0
    ecn: int = 0
    tags: tuple[int, ...] = ()

    def ip(self, payload: Packet, *, group: str | None = None, proto: int | None = None, hops: int = 64) -> Packet:
        """Returns a packet to the pair's other end, or to a group or broadcast address."""
        src, dst = self.pair.src, self.pair.dst
        tos = self.dscp << 2 | self.ecn
        if self.family == 4:
            named = {} if proto is None else {"proto": proto}
            return IP(src=src.ipv4, dst=group or dst.ipv4, tos=tos, ttl=hops, id=7, **named) / payload
        named = {} if proto is None else {"nh": proto}
        return IPv6(src=src.ipv6, dst=group or dst.ipv6, tc=tos, hlim=hops, **named) / payload

    def frame(self, payload: Packet, to: str | None = None, kind: int | None = None) -> Packet:
        """Returns the frame with the scene's VLAN tags; the outer one of two is of IEEE 802.1ad."""
        frame: Packet = Ether(src=self.pair.src.mac, dst=to or self.pair.dst.mac)
        for i, vlan in enumerate(self.tags):
            frame /= (Dot1AD if i < len(self.tags) - 1 else Dot1Q)(vlan=vlan)
        if kind is not None:
            frame.lastlayer().type = kind
        return frame / payload


def _direct(scene: Scene, payload: Packet, **of_ip: int) -> Packet:
    return scene.frame(scene.ip(payload, **of_ip))


def _to_group(scene: Scene, payload: Packet, ipv4: str, ipv6: str, hops: int = 1) -> Packet:
    """Returns a packet to a group, whose Ethernet address follows from its IP address (RFC 1112 and 2464)."""
    if scene.family == 4:
        low = [int(part) for part in ipv4.split(".")[1:]]
        mac = EVERYBODY if ipv4 == "255.255.255.255" else _mac(b"\1\0\x5e" + bytes([low[0] & 0x7F, *low[1:]]))
    else:
        mac = _mac(b"\x33\x33" + ip_address(ipv6).packed[-4:])
    return scene.frame(scene.ip(payload, group=ipv4 if scene.family == 4 else ipv6, hops=hops), to=mac)


def _mac(address: bytes) -> str:
    return address.hex(":")


def _tcp(scene: Scene, port: int, source: int = _EPHEMERAL, payload: Packet = DATA) -> Packet:
    return _direct(scene, TCP(sport=source, dport=port, flags="PA", seq=1, ack=1) / payload)


def _udp(scene: Scene, port: int, payload: Packet = DATA) -> Packet:
    return _direct(scene, UDP(sport=_EPHEMERAL, dport=port) / payload)


def _acknowledgement(scene: Scene) -> Packet:
    return _direct(scene, TCP(sport=_EPHEMERAL, dport=DECLARED, flags="A", seq=1, ack=1))


def _fragment(scene: Scene, proto: int, port: int = DECLARED, *, is_first: bool) -> Packet:
    """Returns one of the two fragments of a packet, each of 512 bytes."""
    ports = {"sport": _EPHEMERAL, "dport": port}
    whole = bytes(scene.ip((TCP(**ports, flags="PA") if proto == PROTO_TCP else UDP(**ports)) / DATA / DATA))
    begin = 20 if scene.family == 4 else 40
    part = Raw(whole[begin:][:512] if is_first else whole[begin:][512:])
    if scene.family == 4:
        fragment = scene.ip(part, proto=proto)
        fragment.flags, fragment.frag = ("MF", 0) if is_first else (0, 512 // 8)
        return scene.frame(fragment)
    header = IPv6ExtHdrFragment(nh=proto, m=int(is_first), offset=0 if is_first else 512 // 8, id=7)
    return scene.frame(scene.ip(header / part))


def _inner(payload: Packet = DATA) -> Packet:
    """Returns a frame of a job as a tunnel carries it, between addresses that the switch does not know."""
    return Ether(src="02:00:00:00:01:01", dst="02:00:00:00:01:02") / _inner_ip(payload)


def _inner_ip(payload: Packet = DATA) -> Packet:
    return IP(src="192.168.7.1", dst="192.168.7.2") / TCP(sport=_EPHEMERAL, dport=DECLARED) / payload


def _icmp(scene: Scene, ipv4: Packet, ipv6: Packet) -> Packet:
    """Returns an ICMP message, with the head of the packet that it is about."""
    about = bytes(scene.ip(UDP(sport=9, dport=9) / DATA))[:60]
    return _direct(scene, (ipv4 if scene.family == 4 else ipv6) / Raw(about))


def _neighbour(scene: Scene, message: Packet, group: str | None = None) -> Packet:
    if group is None:
        return _direct(scene, message, hops=255)
    return _to_group(scene, message, "", group, hops=255)


def _solicitation(scene: Scene) -> Packet:
    src, dst = scene.pair.src, scene.pair.dst
    message = ICMPv6ND_NS(tgt=dst.ipv6) / ICMPv6NDOptSrcLLAddr(lladdr=src.mac)
    return _neighbour(scene, message, f"ff02::1:ff00:{dst.port:x}")


def _mld(scene: Scene) -> Packet:
    return _to_group(scene, IPv6ExtHdrHopByHop(options=[RouterAlert()]) / ICMPv6MLReport2(), "", "ff02::16")


def _arp(scene: Scene, *, is_request: bool) -> Packet:
    src, dst = scene.pair.src, scene.pair.dst
    known = "00:00:00:00:00:00" if is_request else dst.mac
    message = ARP(op=1 if is_request else 2, hwsrc=src.mac, psrc=src.ipv4, hwdst=known, pdst=dst.ipv4)
    return scene.frame(message, to=EVERYBODY if is_request else None)


def _lldp(scene: Scene) -> Packet:
    told = LLDPDUChassisID(subtype=4, id=scene.pair.src.mac) / LLDPDUPortID(subtype=7, id="eth0")
    return scene.frame(LLDPDU() / told / LLDPDUTimeToLive(ttl=120) / LLDPDUEndOfLLDPDU(), to=LLDP_GROUP)


def _stp(scene: Scene) -> Packet:
    return Dot3(src=scene.pair.src.mac, dst=BRIDGES) / LLC() / STP()


def _ospf(scene: Scene) -> Packet:
    if scene.family == 4:
        return _to_group(scene, OSPF_Hdr(src="10.7.0.7") / OSPF_Hello(), "224.0.0.5", "")
    return _to_group(scene, OSPFv3_Hdr() / OSPFv3_Hello(), "", "ff02::5")


def _ptp(scene: Scene) -> Packet:
    return _to_group(scene, UDP(sport=319, dport=319) / _sync(), "224.0.1.129", "ff0e::181")


def _sync() -> Packet:
    """Returns a Sync message of PTP version 2 (IEEE 1588-2008, section 13.6)."""
    return Raw(bytes([0x00, 0x02, 0x00, 44]) + bytes(40))


def _client_request() -> Packet:
    """Returns a client's request of NTP version 4 (RFC 5905, section 7.3). What scapy makes has the time in it."""
    return Raw(bytes([0x23]) + bytes(47))


def _dhcp(scene: Scene) -> Packet:
    if scene.family == 6:
        return _to_group(scene, UDP(sport=546, dport=547) / DHCP6_Solicit(), "", "ff02::1:2")
    options = [("message-type", "discover"), "end"]
    payload = UDP(sport=68, dport=67) / BOOTP(op=1) / DHCP(options=options)
    return _to_group(scene, payload, "255.255.255.255", "", hops=64)


def _igmp(scene: Scene) -> Packet:
    """Returns a membership report (RFC 2236), which goes to the group that it is about."""
    return _to_group(scene, IGMP(type=0x16, gaddr="239.7.7.7"), "239.7.7.7", "")


def _bgp(scene: Scene) -> Packet:
    """Returns a KEEPALIVE message (RFC 4271, section 4.4)."""
    return _tcp(scene, 179, payload=Raw(b"\xff" * 16 + bytes([0, 19, 4])))


def _esp(scene: Scene) -> Packet:
    return _direct(scene, ESP(spi=7, seq=1, data=bytes(64)), proto=50)


def _nested(scene: Scene) -> Packet:
    return _direct(scene, _inner_ip(), proto=4)


def _nested_ipv6(scene: Scene) -> Packet:
    return _direct(scene, IPv6(src="fd00:7::1", dst="fd00:7::2") / TCP(sport=_EPHEMERAL, dport=DECLARED), proto=41)


def _bare(scene: Scene, kind: int, to: str | None = None, payload: Packet = DATA) -> Packet:
    return scene.frame(payload, to=to, kind=kind)


FRAMES: Mapping[str, Callable[[Scene], Packet]] = {
    "tcp-declared": partial(_tcp, port=DECLARED),
    "tcp-listening": partial(_tcp, port=LISTENING),
    "tcp-found": partial(_tcp, port=FOUND[1], source=FOUND[0]),
    "tcp-declared-back": partial(_tcp, port=_EPHEMERAL, source=DECLARED),
    "tcp-listening-back": partial(_tcp, port=_EPHEMERAL, source=LISTENING),
    "tcp-other": partial(_tcp, port=8080),
    "tcp-jumbo": partial(_tcp, port=DECLARED, payload=MUCH_DATA),
    "tcp-ack": _acknowledgement,
    "tcp-first-fragment": partial(_fragment, proto=PROTO_TCP, is_first=True),
    "tcp-later-fragment": partial(_fragment, proto=PROTO_TCP, is_first=False),
    "udp-first-fragment": partial(_fragment, proto=PROTO_UDP, is_first=True),
    "udp-later-fragment": partial(_fragment, proto=PROTO_UDP, is_first=False),
    "ssh": partial(_tcp, port=22),
    "nfs": partial(_tcp, port=2049),
    "udp": partial(_udp, port=9999),
    "udp-declared": partial(_udp, port=DECLARED_UDP),
    "udp-jumbo": partial(_udp, port=9999, payload=MUCH_DATA),
    "ntp": lambda scene: _udp(scene, 123, _client_request()),
    "igmp": _igmp,
    "sctp": lambda scene: _direct(scene, SCTP(sport=_EPHEMERAL, dport=DECLARED) / SCTPChunkData(data=b"data")),
    "rocev2": partial(_udp, port=_ROCE_PORT, payload=_WRITE / DATA),
    "rocev2-jumbo": partial(_udp, port=_ROCE_PORT, payload=_WRITE / MUCH_DATA),
    "rocev2-first-fragment": partial(_fragment, proto=PROTO_UDP, port=_ROCE_PORT, is_first=True),
    "rocev2-later-fragment": partial(_fragment, proto=PROTO_UDP, port=_ROCE_PORT, is_first=False),
    "cnp": lambda scene: _udp(scene, _ROCE_PORT, cnp(dqpn=7)),
    "rocev1": partial(_bare, kind=_ROCEV1),
    "vxlan": lambda scene: _udp(scene, _VXLAN_PORT, VXLAN(vni=7) / _inner()),
    "vxlan-jumbo": lambda scene: _udp(scene, _VXLAN_PORT, VXLAN(vni=7) / _inner(MUCH_DATA)),
    "vxlan-linux": lambda scene: _udp(scene, 8472, VXLAN(vni=7) / _inner()),
    "geneve": lambda scene: _udp(scene, 6081, GENEVE(vni=7) / _inner()),
    "wireguard": lambda scene: _udp(scene, 51820, Raw(bytes([4, 0, 0, 0]) + bytes(60))),
    "gre": lambda scene: _direct(scene, GRE() / _inner_ip()),
    "ipip": _nested,
    "ipv6-in-ip": _nested_ipv6,
    "esp": _esp,
    "echo": lambda scene: _icmp(scene, ICMP(type=8), ICMPv6EchoRequest()),
    "unreachable": lambda scene: _icmp(scene, ICMP(type=3, code=1), ICMPv6DestUnreach()),
    "too-big": lambda scene: _icmp(scene, ICMP(type=3, code=4, nexthopmtu=1400), ICMPv6PacketTooBig(mtu=1400)),
    "time-exceeded": lambda scene: _icmp(scene, ICMP(type=11), ICMPv6TimeExceeded()),
    "parameter-problem": lambda scene: _icmp(scene, ICMP(type=12), ICMPv6ParamProblem()),
    "neighbour-solicitation": _solicitation,
    "neighbour-advertisement": lambda scene: _neighbour(scene, ICMPv6ND_NA(tgt=scene.pair.src.ipv6)),
    "router-solicitation": lambda scene: _neighbour(scene, ICMPv6ND_RS(), "ff02::2"),
    "router-advertisement": lambda scene: _neighbour(scene, ICMPv6ND_RA(), "ff02::1"),
    "mld": _mld,
    "arp-request": partial(_arp, is_request=True),
    "arp-reply": partial(_arp, is_request=False),
    "lldp": _lldp,
    "stp": _stp,
    "lacp": lambda scene: scene.frame(SlowProtocol() / LACP(), to=SLOW_GROUP),
    "eapol": lambda scene: _bare(scene, _EAPOL, PORT_ACCESS_GROUP, EAPOL(type="EAPOL-Start")),
    "bgp": _bgp,
    "ospf": _ospf,
    "bfd": lambda scene: _direct(scene, UDP(sport=49152, dport=3784) / BFD(), hops=255),
    "ptp": _ptp,
    "ptp-ethernet": lambda scene: _bare(scene, _PTP, PTP_GROUP, _sync()),
    "dhcp": _dhcp,
    "dns": lambda scene: _udp(scene, 53, DNS(rd=1, qd=DNSQR(qname="example.com"))),
    "multicast": lambda scene: _to_group(scene, UDP(sport=_EPHEMERAL, dport=9999) / DATA, "239.7.7.7", "ff0e::7"),
    "broadcast": lambda scene: _to_group(scene, UDP(sport=_EPHEMERAL, dport=9999) / DATA, "255.255.255.255", ""),
    "mpls": lambda scene: scene.frame(MPLS(label=7, s=1, ttl=64) / _inner_ip()),
    "unknown": partial(_bare, kind=_UNKNOWN),
}
