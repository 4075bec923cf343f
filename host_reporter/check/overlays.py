"""The tunnels of this host: whether their outer headers get the DSCP of the job inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from host_reporter.check.modules import Modules, read
from host_reporter.check.verdict import Verdict, note, ok
from host_reporter.nic import netdev_list
from host_reporter.nic.netdev import Netdev, Tunnel
from host_reporter.options import Options

CHECK = "overlay"
OWNER_MODULE, U32_MODULE = "xt_owner", "xt_u32"
"""The kernel's modules that tell tunnels from programs, and that look inside a tunnel's packets."""
_NAMES = {"vxlan": "VXLAN", "geneve": "Geneve", "ipip": "IP in IP"}
_OTHERS = frozenset({"gre", "gretap", "ip6gre", "ip6gretap", "ip6tnl", "sit", "erspan"})
_ENCRYPTING = frozenset({"wireguard", "xfrm"})


def check(options: Options) -> Iterator[Verdict]:
    """Yields what becomes of the outer headers of each tunnel that has a device here."""
    yield from verdicts(netdev_list.read().netdevs.values(), read(), is_marking=options.marking)


def verdicts(netdevs: Iterable[Netdev], present: Modules, *, is_marking: bool) -> Iterator[Verdict]:
    """Yields a verdict for each tunnel among these interfaces."""
    lacks = [name for name in (OWNER_MODULE, U32_MODULE) if present.presence(name) == "not there"]
    for netdev in netdevs:
        if netdev.tunnel is not None:
            yield _of_tunnel(netdev.name, netdev.tunnel, lacks[0] if lacks else None, is_marking=is_marking)
        elif netdev.kind in _ENCRYPTING:
            text = f"{netdev.name} encrypts: its outer headers cannot have the DSCP of the job inside"
            yield note(CHECK, text, "let the jobs' pods use a network that does not encrypt")
        elif netdev.kind in _OTHERS:
            text = f"{netdev.name} ({netdev.kind}): its outer headers get no DSCP of a job"
            yield note(CHECK, text, "use VXLAN, Geneve or IP in IP where jobs' packets go through this tunnel")


def _of_tunnel(name: str, tunnel: Tunnel, lacks: str | None, *, is_marking: bool) -> Verdict:
    port = f", UDP {tunnel.udp_port}" if tunnel.udp_port else ""
    who = f"{name} ({_NAMES[tunnel.kind]}{port})"
    if is_marking and lacks is None:
        return ok(CHECK, f"{who}: its outer headers get the DSCP of the job inside")
    if is_marking and lacks == OWNER_MODULE:
        text = f"{who}: its outer headers get no DSCP of a job, because {OWNER_MODULE} is not there"
        return note(CHECK, text, f"install the kernel's module {OWNER_MODULE}")
    why = f"{lacks} is not there" if is_marking else "this agent marks no packets"
    if tunnel.inherits:
        return ok(CHECK, f"{who}: {why}, and it inherits the DSCP of the packet inside")
    help_by = f"install the kernel's module {U32_MODULE}, or: " if is_marking else ""
    text = f"{who}: {why}, so its outer headers are as the tunnel makes them"
    return note(CHECK, text, help_by + _inherit(name, tunnel))


def _inherit(name: str, tunnel: Tunnel) -> str:
    """Returns how a tunnel is told to copy the DSCP itself."""
    if tunnel.is_by_packet:
        return "let the program that makes its headers copy the DSCP (Open vSwitch: options:tos=inherit)"
    if tunnel.kind == "ipip":
        return f"ip tunnel change {name} tos inherit"
    return f"ip link set {name} type {tunnel.kind} tos inherit"
