"""The features of the kernel and the tools that the agent needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

from host_reporter.check.modules import Modules, read
from host_reporter.check.verdict import Verdict, missing, note, ok
from host_reporter.discovery import cgroups
from host_reporter.discovery.sockets.netlink import Diag
from host_reporter.discovery.sockets.sock_diag import DiagError
from host_reporter.marking.families import Reach, ipv6_reach
from host_reporter.options import Options

CHECK = "kernel"


def check(options: Options) -> Iterator[Verdict]:
    """Yields whether the kernel has what the options ask for."""
    yield groups(cgroups.hierarchies())
    yield sockets(_socket_problem())
    present = read()
    if options.marking:
        yield from marking(present, shutil.which)
        yield from marking_ipv6(ipv6_reach(), shutil.which)
    if options.ordered:
        yield from ordering(present, shutil.which)


def groups(mounted: tuple[cgroups.Hierarchy, ...]) -> Verdict:
    """Returns whether sockets can be found by cgroup, and packets be marked by it."""
    if any(hierarchy.is_second for hierarchy in mounted):
        return ok(CHECK, "cgroup v2 is mounted: the sockets of a job are found by its cgroup")
    have = "only cgroup v1 is mounted" if mounted else "no cgroups are mounted"
    would_help = "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2"
    return note(CHECK, f"{have}: sockets are found by processes, which costs more", would_help)


def sockets(problem: str | None) -> Verdict:
    """Returns whether the kernel lists TCP sockets."""
    if problem is None:
        return ok(CHECK, "sock_diag lists the TCP sockets")
    return missing(CHECK, f"sock_diag does not list the TCP sockets: {problem}", "load the module tcp_diag")


def marking(present: Modules, which: Callable[[str], str | None]) -> Iterator[Verdict]:
    """Yields whether packets can be marked."""
    tools = [name for name in ("iptables-nft-restore", "iptables-legacy-restore", "iptables-restore") if which(name)]
    if tools:
        yield ok(CHECK, f"{tools[0]} is installed")
    else:
        yield missing(CHECK, "iptables is not installed: packets cannot be marked", "install the package iptables")
    # The match and the target have one name in different case, and are xt_dscp both.
    yield _module(present, "xt_dscp", "to read and write DSCPs by iptables", is_needed=True)
    yield _module(present, "xt_cgroup", "to mark packets by cgroup", is_needed=False)


def marking_ipv6(reach: Reach, which: Callable[[str], str | None]) -> Iterator[Verdict]:
    """Yields whether packets over IPv6 can be marked, on a host that has addresses for them."""
    if reach != "network":
        yield ok(CHECK, "no IPv6 address reaches other networks, so nothing over IPv6 is to be marked")
        return
    names = ("ip6tables-nft-restore", "ip6tables-legacy-restore", "ip6tables-restore")
    if tools := [name for name in names if which(name)]:
        yield ok(CHECK, f"{tools[0]} is installed")
    else:
        text = "ip6tables is not installed: packets over IPv6 are marked at the sockets that are found"
        yield note(CHECK, text, "install the package iptables")


def ordering(present: Modules, which: Callable[[str], str | None]) -> Iterator[Verdict]:
    """Yields whether an interface can be ordered."""
    if which("tc"):
        yield ok(CHECK, "tc is installed")
    else:
        yield missing(CHECK, "tc is not installed: the interface cannot be ordered", "install the package iproute2")
    yield _module(present, "sch_htb", "to share the interface between classes (HTB)", is_needed=True)
    yield _module(present, "cls_u32", "to put packets into classes by DSCP", is_needed=True)


def _module(present: Modules, name: str, use: str, *, is_needed: bool) -> Verdict:
    found = present.presence(name)
    if found == "not known":
        return note(CHECK, f"whether {name} is there is not known ({use}): the list of modules cannot be read")
    if found != "not there":
        return ok(CHECK, f"{name} {found}: {use}")
    verdict = missing if is_needed else note
    return verdict(CHECK, f"{name} is not there: {use}", f"install the kernel's module {name}")


def _socket_problem() -> str | None:
    try:
        diag = Diag()
    except OSError as error:
        return error.strerror
    try:
        diag.sockets()
    except DiagError as error:
        return str(error)
    finally:
        diag.close()
    return None
