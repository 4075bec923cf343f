"""The interfaces whose traffic is ordered: whether they are there and up, their rates, what they do by themselves."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from host_reporter.check.verdict import Verdict, missing, note, ok
from host_reporter.nic import netdev_list
from host_reporter.nic.errors import NicError
from host_reporter.nic.lower import Place, places
from host_reporter.nic.netdev import Netdev
from host_reporter.options import NamedInterface, Options

CHECK = "interface"
SYSFS = Path("/sys/class/net")
SIOCETHTOOL = 0x8946
OFFLOADS = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}
"""Commands that read whether the kernel cuts or joins packets in the interface (linux/ethtool.h)."""
_MEGABIT = 1e6
_NEAR = 0.99


class Facts(NamedTuple):
    """An interface as the kernel has it. ``rate_bps`` of None: it tells none. ``offloads``: whether each is on."""

    is_up: bool
    rate_bps: float | None
    offloads: Mapping[str, bool]


def check(options: Options) -> Iterator[Verdict]:
    """Yields how the interfaces of the options are, and what carries their packets."""
    if not options.ordered:
        would_help = "--interface names the one of the training's traffic"
        yield note(CHECK, "none is named, so no interface is ordered", would_help)
        return
    netdevs = netdev_list.read().netdevs
    for each in options.ordered:
        yield from placed(each, netdevs, look)


def placed(
    named: NamedInterface, netdevs: Mapping[int, Netdev], look_at: Callable[[str], Facts | None]
) -> Iterator[Verdict]:
    """Yields how the interfaces are that get the tree of ``named``. ``look_at`` returns an interface's facts."""
    facts = look_at(named.name)
    if facts is None:
        yield from verdicts(named.name, None, named.rate_bps)
        return
    try:
        found = places(netdevs, named.name)
    except NicError as error:
        yield missing(CHECK, f"{named.name} cannot be ordered: {error}", "--interface names what carries its packets")
        return
    if found != (Place(named.name),):
        carriers = ", ".join(place.interface for place in found)
        yield ok(CHECK, f"{named.name} is ordered at what carries its packets: {carriers}")
    for place, share in found:
        yield from verdicts(place, look_at(place), None if named.rate_bps is None else named.rate_bps * share)


def verdicts(name: str, facts: Facts | None, wanted_bps: float | None) -> Iterator[Verdict]:
    """Yields how an interface is; ``facts`` of None: it is not there. ``wanted_bps`` is the rate of the options."""
    if facts is None:
        yield missing(CHECK, f"there is no interface {name}", "--interface names one of those in: ip link")
        return
    if not facts.is_up:
        yield missing(CHECK, f"{name} is not up", f"ip link set {name} up, and a cable")
    yield _rate(name, facts.rate_bps, wanted_bps)
    on = [offload for offload, is_on in facts.offloads.items() if is_on]
    if "TSO" in on:
        text = f"{name} cuts packets by itself (TSO): up to 64 KiB of one class go out before another class is served"
        yield note(CHECK, text, f"ethtool -K {name} tso off, where that matters on a slow link")
    elif facts.offloads:
        yield ok(CHECK, f"{name} has these offloads: {', '.join(on) or 'none'}")


def _rate(name: str, told_bps: float | None, wanted_bps: float | None) -> Verdict:
    if told_bps is None:
        told = f"{name} tells no rate"
        if wanted_bps is not None:
            return ok(CHECK, f"{told}, and --rate-bps says {wanted_bps:g} bit/s")
        return note(CHECK, told, "--rate-bps, or the rate of the host in the controller's settings, says what it is")
    if wanted_bps is not None and wanted_bps > told_bps:
        return missing(
            CHECK,
            f"--rate-bps is {wanted_bps:g} bit/s, and {name} has {told_bps:g}: its own queue would fill, which serves "
            "no class first",
            f"--rate-bps {told_bps * _NEAR:g} or less",
        )
    return ok(CHECK, f"{name} has {told_bps:g} bit/s")


def look(name: str) -> Facts | None:
    """Returns an interface as the kernel has it; None: it is not there."""
    state = _read(name, "operstate")
    if state is None:
        return None
    speed = _read(name, "speed")
    rate = int(speed) * _MEGABIT if speed is not None and speed.isdecimal() and int(speed) > 0 else None
    return Facts(state in ("up", "unknown"), rate, _offloads(name))


def _read(name: str, file: str) -> str | None:
    try:
        return (SYSFS / name / file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _offloads(name: str) -> dict[str, bool]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        for offload, command in OFFLOADS.items():
            value = array.array("B", struct.pack("=II", command, 0))
            request = struct.pack("16sP", name.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(asking, SIOCETHTOOL, request)
            except OSError:  # the interface knows no such offload
                continue
            found[offload] = bool(struct.unpack("=II", value.tobytes())[1])
    return found
