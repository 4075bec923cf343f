"""The network of the table of packets: hosts on one switch, their jobs, and who is between whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, cast

from controller.code_points import POOL_2, code_points, local_dscps
from controller.enforcement import MODE_OF, Identity, Mode
from controller.model import Demand, Flow, Host, Job, Listeners, Role, Snapshot, Switch, Task

POINTS = POOL_2
OWN_POINTS = code_points(POOL_2.classes, POOL_2.acknowledgements, jobs=[each for each in local_dscps() if each != 63])
OWN_DSCPS = {"alone": 3, "left": 7, "right": 11, "guest": 15}
"""The DSCP that each job has for its life, where jobs have their own."""
CLASSES = {"alone": 1, "left": 3, "right": 4, "guest": 2}
"""The class of each job. Nobody has class 0, and nobody has the last one."""
LAST = len(POINTS.classes) - 1
DECLARED, LISTENING, FOUND = 5000, 29500, (40001, 40002)
"""Ports of job ``alone``; each other job declares DECLARED as well, between other hosts."""
DECLARED_UDP = 7000
"""A UDP port that job ``left`` declares."""
UNTRUSTED_PORT = 4
DPIDS = {
    "switches-flows": 0x71, "both-flows": 0x72, "switches-classes": 0x73, "both-classes": 0x74, "switches-dscp": 0x75,
    "both-dscp": 0x76,
}  # fmt: skip
"""The switch of each combination of who enforces and how a switch knows a job."""


def mode_of(combination: str) -> Mode:
    """Returns how switches know jobs in a combination."""
    return MODE_OF[cast(Identity, combination.rpartition("-")[2])]


def has_own_dscps(combination: str) -> bool:
    """Returns whether jobs have DSCPs of their own in a combination."""
    return mode_of(combination) == "dscp"


class End(NamedTuple):
    """Something with a cable to the switch: where, and its addresses."""

    port: int
    mac: str
    ipv4: str
    ipv6: str


def _end(port: int) -> End:
    return End(port, f"02:00:00:00:00:{port:02x}", f"10.7.0.{port}", f"fd07::{port:x}")


def unlisted(end: End) -> End:
    """Returns the same with further IP addresses, which the settings do not give."""
    return end._replace(ipv4=f"10.8.0.{end.port}", ipv6=f"fd08::{end.port:x}")


ENDS: Mapping[str, End] = {
    name: _end(port) for port, name in enumerate(("gpu1", "gpu2", "gpu3", "gpu4", "cpu1", "cpu2", "router"), 1)
}
HOSTS = tuple(name for name in ENDS if name != "router")
CONTROL_PORT = ENDS["router"].port
"""The port that the settings name for control traffic."""
_JOBS = {"alone": ("gpu1", "gpu2"), "left": ("gpu1", "gpu3"), "right": ("gpu1", "gpu3"), "guest": ("gpu4", "gpu1")}


_BEYOND_TCP = {
    "left": (
        Flow("left", "gpu3", "gpu1", protocol="rocev2"),
        Flow("left", "gpu3", "gpu1", dst_port=DECLARED_UDP, protocol="udp"),
    ),
    "guest": (Flow("guest", "gpu1", "gpu4", protocol="any"),),
}


class Pair(NamedTuple):
    """Who sends to whom, and the job whose packets these may be."""

    src: End
    dst: End
    job: str | None = None

    @property
    def service_class(self) -> int:
        assert self.job is not None, "these hosts have no job"
        return CLASSES[self.job]

    @property
    def own_dscp(self) -> int:
        assert self.job is not None, "these hosts have no job"
        return OWN_DSCPS[self.job]


BETWEEN: Mapping[str, Pair] = {
    "one job": Pair(ENDS["gpu1"], ENDS["gpu2"], "alone"),
    "one job back": Pair(ENDS["gpu2"], ENDS["gpu1"], "alone"),
    "two jobs": Pair(ENDS["gpu1"], ENDS["gpu3"], "left"),
    "two jobs back": Pair(ENDS["gpu3"], ENDS["gpu1"], "left"),
    "all declared": Pair(ENDS["gpu1"], ENDS["gpu4"], "guest"),
    "different jobs": Pair(ENDS["gpu2"], ENDS["gpu3"]),
    "untrusted": Pair(ENDS["gpu4"], ENDS["gpu1"], "guest"),
    "unlisted": Pair(unlisted(ENDS["gpu1"]), unlisted(ENDS["gpu2"]), "alone"),
    "no job": Pair(ENDS["cpu1"], ENDS["cpu2"]),
    "job and no job": Pair(ENDS["gpu1"], ENDS["cpu1"]),
    "router": Pair(ENDS["router"], ENDS["cpu1"]),
    "router and job": Pair(ENDS["router"], ENDS["gpu1"]),
}


def snapshot(switches: tuple[Switch, ...], *, hosts_mark: bool, own: bool = False) -> Snapshot:
    """Returns what is known of this network; ``switches`` all have the same cables. ``own``: jobs have their DSCPs."""
    return Snapshot(
        now=0.0,
        hosts={name: _host(name, switches) for name in HOSTS},
        jobs=tuple(
            replace(_job(name, *between), dscp=OWN_DSCPS[name] if own else None) for name, between in _JOBS.items()
        ),
        switches=switches,
        acknowledging=frozenset(HOSTS) if hosts_mark else frozenset(),
        code_points=OWN_POINTS if own else POINTS,
    )


def _host(name: str, switches: tuple[Switch, ...]) -> Host:
    end = ENDS[name]
    (switch,) = switches or (None,)
    return Host(
        name,
        address=end.ipv4,
        more_addresses=(end.ipv6,),
        mac=end.mac,
        switch=switch and switch.dpid,
        switch_port=switch and end.port,
    )


def _job(name: str, src: str, dst: str) -> Job:
    is_alone = name == "alone"
    port = DECLARED + (name == "right")
    return Job(
        name,
        demand=(Demand(src, dst, 1e6), Demand(dst, src, 1e6)),
        tasks=(Task(Role.WORKER, src), Task(Role.PS, dst, port)),
        flows=(Flow(name, src, dst, dst_port=port), Flow(name, dst, src, src_port=port), *_BEYOND_TCP.get(name, ())),
        listeners=Listeners(((dst, LISTENING),), (src, dst)) if is_alone else Listeners(),
        found=(Flow(name, src, dst, *FOUND),) if is_alone else (),
    )
