"""Reads and changes the kernel's traffic control of one interface for TensorLights, through pyroute2.

Only this module imports pyroute2, so an agent without TensorLights does not need it.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from pyroute2 import IPRoute
from pyroute2.netlink import nla
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import tcmsg
from pyroute2.netlink.rtnl.tcmsg import cls_u32, sched_pfifo

from controller.model import BITS_PER_BYTE
from host_reporter.nic import tree
from host_reporter.nic.errors import NicError
from host_reporter.nic.tensorlights_tree import (
    OTHERS_PREF,
    PORTS_PREF,
    ROOT,
    Change,
    DropFilter,
    DropFilters,
    DropLeaf,
    Filter,
    Lead,
    LeadOthers,
    PutLeaf,
    Seen,
    is_leaf,
    queue_handle,
)

TINY_BPS = 1000
"""Each leaf has this guaranteed rate, because HTB needs one. A leaf borrows the rest of its rate by priority."""

OTHER_FLOOR = 0.10
"""All other traffic keeps this share of the link in a new tree; the controller's default is the same."""

_ARP_LEAF = 0x10
_NO_PARENT: Final = 0xFFFFFFFF
_LINK = 1
_ETH_IP, _ETH_ARP = 0x0800, 0x0806
_IN_HEADER = 20
_SOURCE_PORT = 0xFFFF0000
# The keys match IPv4 without options (so that TCP begins at byte 20), the protocol TCP, and its source port.
_KEYS = ("0x45/0xff+0", "0x06/0xff+9", "{port:#06x}/0xffff+20")
_ALL = ("0x0/0x0+0",)
_SELECTOR_BYTES, _KEY_BYTES = 20, 16


class _U32Options(cls_u32.options):
    """A u32 filter's options. pyroute2 (0.9.7) reads the keys 4 bytes too early; this class does not."""

    class u32_sel(cls_u32.options.u32_sel):  # noqa: N801 - pyroute2 looks for this name
        def decode(self) -> None:
            nla.decode(self)
            self["keys"] = []
            for number in range(self["nkeys"]):
                key = self.u32_key(data=self.data, offset=self.offset + _SELECTOR_BYTES + number * _KEY_BYTES)
                key.decode()
                self["keys"].append(key)


tcmsg.plugins["u32"] = SimpleNamespace(
    options=_U32Options, get_parameters=cls_u32.get_parameters, fix_request=cls_u32.fix_request
)
# bfifo has the same option as pfifo, and pyroute2 knows only pfifo.
tcmsg.plugins.setdefault("bfifo", sched_pfifo)


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
            roots = [q for q in netlink.tc("dump", index=index) if q["index"] == index and q["parent"] == _NO_PARENT]
        return Root(roots[0].get_attr("TCA_KIND"), roots[0]["handle"] >> 16) if roots else Root("", 0)

    def make_root(self, rate_bps: float) -> None:
        """Build a new tree with the link's rate, ARP first and all other traffic last. A failure leaves no tree."""
        root = ROOT << 16
        with self._open() as (netlink, index):
            netlink.tc("add", "htb", index, root, parent=_NO_PARENT, default=tree.OTHER_LEAF)
            try:
                self._put_frame(netlink, index, rate_bps)
            except BaseException:
                with contextlib.suppress(NetlinkError):
                    netlink.tc("del", "htb", index, root, parent=_NO_PARENT)
                raise

    def mend_root(self, rate_bps: float) -> None:
        """Repair the parts of a tree that TensorLights has built, in place."""
        with self._open() as (netlink, index):
            with contextlib.suppress(NetlinkError):
                netlink.tc("del-filter", index=index, parent=ROOT << 16, info=tree.ARP_PREF << 16)
            self._put_frame(netlink, index, rate_bps)

    def drop_root(self) -> None:
        """Remove a tree that TensorLights has built. The kernel's default comes back."""
        with self._open() as (netlink, index):
            netlink.tc("del", "htb", index, ROOT << 16, parent=_NO_PARENT)

    def seen(self, major: int) -> Seen:
        """Returns our installed part under the root ``major``."""
        with self._open() as (netlink, index):
            backlog = {
                entry["handle"] & 0xFFFF: _backlog(entry)
                for entry in netlink.get_classes(index=index)
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
                    filters.append(Filter(entry["handle"], _port(options.get_attr("TCA_U32_SEL")), classid & 0xFFFF))
        return Seen(backlog, tuple(filters), frozenset(prefs))

    def carry_out(self, changes: list[Change], major: int, rate_bps: float) -> None:
        """Carry out the changes under the root ``major``, in their order."""
        if not changes:
            return
        with self._open() as (netlink, index):
            for change in changes:
                self._carry_out_one(netlink, index, change, major << 16, rate_bps)

    def _carry_out_one(self, netlink: Any, index: int, change: Change, root: int, rate_bps: float) -> None:
        rate = int(rate_bps / BITS_PER_BYTE)
        ports: Mapping[str, Any] = {"parent": root, "prio": PORTS_PREF, "protocol": _ETH_IP}
        others: Mapping[str, Any] = {"parent": root, "prio": OTHERS_PREF, "protocol": _ETH_IP}
        match change:
            case PutLeaf(minor, band):
                self._put_class(
                    netlink,
                    index,
                    root | minor,
                    parent=root | _LINK,
                    rate=TINY_BPS // BITS_PER_BYTE,
                    ceil=rate,
                    prio=band,
                )
                limit = tree.queue_bytes(rate_bps)
                netlink.tc("replace", "bfifo", index, queue_handle(minor) << 16, parent=root | minor, limit=limit)
            case Lead(port, minor, handle):
                keys = [key.format(port=port) for key in _KEYS]
                if handle is None:
                    netlink.tc("add-filter", "u32", index, target=root | minor, keys=keys, **ports)
                else:
                    netlink.tc("replace-filter", "u32", index, handle, target=root | minor, keys=keys, **ports)
            case LeadOthers():
                netlink.tc("add-filter", "u32", index, target=root | tree.OTHER_LEAF, keys=list(_ALL), **others)
            case DropFilter(handle):
                netlink.tc("del-filter", "u32", index, handle, target=0, **ports)
            case DropFilters(pref):
                netlink.tc("del-filter", index=index, parent=root, info=pref << 16)
            case DropLeaf(minor):
                netlink.tc("del-class", index=index, handle=root | minor)

    def _put_frame(self, netlink: Any, index: int, rate_bps: float) -> None:
        """Install a new tree without the servers' leaves: the link, and the leaves of ARP and of other traffic."""
        rate, root = int(rate_bps / BITS_PER_BYTE), ROOT << 16
        self._put_class(netlink, index, root | _LINK, parent=root, rate=rate, ceil=rate)
        others_bps = rate_bps * OTHER_FLOOR
        for minor, priority, floor, limit in (
            (_ARP_LEAF, 0, int(rate * 0.01), tree.queue_bytes(rate_bps)),
            (
                tree.OTHER_LEAF,
                tree.OTHER_PRIORITY,
                int(rate * OTHER_FLOOR),
                tree.other_queue_bytes(others_bps),
            ),
        ):
            self._put_class(netlink, index, root | minor, parent=root | _LINK, rate=floor, ceil=rate, prio=priority)
            netlink.tc("replace", "bfifo", index, queue_handle(minor) << 16, parent=root | minor, limit=limit)
        netlink.tc(
            "add-filter", "u32", index, parent=root, prio=tree.ARP_PREF, protocol=_ETH_ARP,
            target=root | _ARP_LEAF, keys=list(_ALL),
        )  # fmt: skip

    @staticmethod
    def _put_class(netlink: Any, index: int, handle: int, *, parent: int, rate: int, ceil: int, prio: int = 0) -> None:
        burst = tree.burst_bytes(ceil * BITS_PER_BYTE)
        netlink.tc(
            "replace-class", "htb", index, handle,
            parent=parent,
            rate=rate,
            ceil=ceil,
            # A leaf below its guaranteed rate goes first whatever its priority, so a tiny rate's burst is one packet.
            burst=min(burst, max(tree.MTU, rate)),
            cburst=burst,
            prio=prio,
            quantum=tree.QUANTUM,
        )  # fmt: skip

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


def _reason(error: NetlinkError) -> str:
    code = int(error.code)
    if code == errno.EPERM:
        return "tc may not be used; the agent needs CAP_NET_ADMIN"
    if code == errno.ENOENT:
        return "tc refused: no such thing; the kernel may lack sch_htb or cls_u32"
    return f"tc refused: {error.args[1] if len(error.args) > 1 and error.args[1] else errno.errorcode.get(code, code)}"


def _backlog(entry: Any) -> int:
    """Returns the bytes that wait in a class."""
    stats = entry.get_attr("TCA_STATS2")
    queue = None if stats is None else stats.get_attr("TCA_STATS_QUEUE")
    return 0 if queue is None else int(queue["backlog"])


def _port(selector: Any) -> int | None:
    """Returns the source port that a filter matches; None where the filter is not ours."""
    if selector is None:
        return None
    keys = {key["key_off"]: (key["key_mask"], key["key_val"]) for key in selector["keys"]}
    mask, value = keys.get(_IN_HEADER, (0, 0))
    return int(value) >> 16 if mask == _SOURCE_PORT else None
