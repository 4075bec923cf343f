"""One interface's traffic control: what TensorLights has there now, and the way to change it."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from host_reporter.nic.errors import NicError
from host_reporter.nic.tensorlights.changes import Change
from host_reporter.nic.tensorlights.tree import (
    FIRST_PLACE,
    OTHERS_PREF,
    PORTS_PREF,
    ROOT,
    Filter,
    Seen,
    is_leaf,
    queue_handle,
)
from host_reporter.nic.traffic_control import requests
from host_reporter.nic.traffic_control.u32 import port_of


class Root(NamedTuple):
    """The root qdisc: its kind, and its handle's major number (0 for the kernel's own)."""

    kind: str
    major: int


class TrafficControl:
    """The traffic control of one interface. Every method raises NicError. It is not thread-safe."""

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def root(self) -> Root:
        """Returns the present root qdisc."""
        with self._open() as (netlink, index):
            roots = [qdisc for qdisc in _qdiscs(netlink, index) if qdisc["parent"] == requests.NO_PARENT]
        return Root(roots[0].get_attr("TCA_KIND"), roots[0]["handle"] >> 16) if roots else Root("", 0)

    def make_root(self, rate_bps: float) -> None:
        """Build a new tree with the link's rate, ARP first and all other traffic last. A failure leaves no tree."""
        with self._open() as (netlink, index):
            place = requests.at_interface(netlink, index, ROOT, rate_bps)
            requests.make_root(place)
            try:
                requests.put_frame(place)
            except BaseException:
                with contextlib.suppress(NetlinkError):
                    requests.drop_root(place)
                raise

    def mend_root(self, rate_bps: float) -> None:
        """Repair the parts of a tree that TensorLights has built, in place."""
        with self._open() as (netlink, index):
            place = requests.at_interface(netlink, index, ROOT, rate_bps)
            with contextlib.suppress(NetlinkError):
                requests.drop_arp_filter(place)
            requests.put_frame(place)

    def drop_root(self) -> None:
        """Remove a tree that TensorLights has built. The kernel's default comes back."""
        with self._open() as (netlink, index):
            requests.drop_root(requests.at_interface(netlink, index, ROOT, 0.0))

    def seen(self, major: int) -> Seen:
        """Returns our installed part under the root ``major``, with the trees inside its leaves."""
        with self._open() as (netlink, index):
            classes = netlink.get_classes(index=index)
            inside = {
                minor: _seen(netlink, index, inner, classes)
                for minor, inner in _trees_inside(_qdiscs(netlink, index), major)
            }
            return replace(_seen(netlink, index, major, classes), inside=inside)

    def carry_out(self, changes: Collection[Change], major: int, rate_bps: float) -> None:
        """Carry out the changes under the root ``major``, in their order."""
        if not changes:
            return
        with self._open() as (netlink, index):
            place = requests.at_interface(netlink, index, major, rate_bps)
            for change in changes:
                requests.carry_out(place, change)

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[Any, int]]:
        """Yields a socket in this network namespace, and the interface's present number, which may have changed."""
        try:
            with IPRoute() as netlink:
                numbers = netlink.link_lookup(ifname=self.interface)
                if not numbers:
                    raise NicError(f"there is no interface {self.interface}")
                yield netlink, numbers[0]
        except NetlinkError as error:
            raise NicError(f"{self.interface}: {_reason(error)}") from error
        except OSError as error:
            raise NicError(f"{self.interface}: no netlink socket: {error.strerror or error}") from error


def _qdiscs(netlink: Any, index: int) -> list[Any]:
    return [qdisc for qdisc in netlink.tc("dump", index=index) if qdisc["index"] == index]


def _trees_inside(qdiscs: Collection[Any], major: int) -> Iterator[tuple[int, int]]:
    """Yields the leaves under the root ``major`` that have a tree of ours inside, and the major numbers of these."""
    for qdisc in qdiscs:
        (root, minor), inner = divmod(qdisc["parent"], 1 << 16), qdisc["handle"] >> 16
        if root != major or inner != queue_handle(major, minor) or qdisc.get_attr("TCA_KIND") != "htb":
            continue
        if qdisc.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_INIT")["defcls"] == FIRST_PLACE:
            yield minor, inner


def _seen(netlink: Any, index: int, major: int, classes: Collection[Any]) -> Seen:
    """Returns what is installed in one tree, without the trees inside."""
    backlog = {
        entry["handle"] & 0xFFFF: _backlog(entry)
        for entry in classes
        if entry["handle"] >> 16 == major and is_leaf(entry["handle"] & 0xFFFF)
    }
    filters, prefs = [], set()
    for entry in netlink.get_filters(index=index, parent=major << 16):
        pref = entry["info"] >> 16
        if pref not in {PORTS_PREF, OTHERS_PREF}:
            continue
        prefs.add(pref)
        options = entry.get_attr("TCA_OPTIONS")
        classid = None if options is None else options.get_attr("TCA_U32_CLASSID")
        # The kernel lists a preference and its hash table as filters too, but without a class.
        if pref == PORTS_PREF and classid is not None:
            filters.append(Filter(entry["handle"], port_of(options.get_attr("TCA_U32_SEL")), classid & 0xFFFF))
    return Seen(backlog, tuple(filters), frozenset(prefs))


def _backlog(entry: Any) -> int:
    """Returns the bytes that wait in a class."""
    stats = entry.get_attr("TCA_STATS2")
    queue = None if stats is None else stats.get_attr("TCA_STATS_QUEUE")
    return 0 if queue is None else int(queue["backlog"])


def _reason(error: NetlinkError) -> str:
    code = int(error.code)
    if code == errno.EPERM:
        return "tc may not be used; the agent needs CAP_NET_ADMIN"
    if code == errno.ENOENT:
        return "tc refused: no such thing; the kernel may lack sch_htb or cls_u32"
    return f"tc refused: {error.args[1] if len(error.args) > 1 and error.args[1] else errno.errorcode.get(code, code)}"
