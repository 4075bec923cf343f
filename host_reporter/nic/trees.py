"""The trees of all interfaces that the agent orders: one for each interface that carries packets to a cable."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from controller.wire import HostPlan
from host_reporter.nic import netdev_list
from host_reporter.nic.errors import NicError
from host_reporter.nic.interface import Nic
from host_reporter.nic.lower import places
from host_reporter.nic.netdev import Netdev
from host_reporter.notices import Notices
from host_reporter.repairs import Repairs


class Ordered(NamedTuple):
    """An interface that is to be ordered. Where ``rate_bps`` is None, the plan gives its rate."""

    name: str
    rate_bps: float | None = None


class _Tree:
    """The tree of one interface, and what is said of it."""

    def __init__(self, nic: Nic, notices: Notices) -> None:
        self.nic = nic
        self._notices = notices
        self._repairs = Repairs(f"the traffic control of {nic.interface}", notices)

    def apply(self, plan: HostPlan, rate_bps: float) -> bool:
        """Returns whether the interface serves the classes."""
        try:
            was = self.nic.apply(rate_bps, plan.served_points, plan.class_floor, plan.other_floor)
            if was:
                self._repairs.say(was)
            self._clear("nic", f"{self.nic.interface} serves the classes")
        except NicError as error:
            self._say("nic", f"this host's interface does not order its traffic: {error}")
            return False
        finally:
            self._guard()
        return True

    def reconcile(self) -> None:
        """Repair what other programs have changed."""
        try:
            if self._repairs.look(self.nic):
                self._clear("nic", f"{self.nic.interface} serves the classes")
                self._guard()
        except NicError as error:
            self._say("nic", f"this host's interface does not order its traffic: {error}")
            return
        if text := "; ".join(self.nic.obstacles):
            self._say("in front", text)
        else:
            self._clear("in front", "no filter of somebody else is before the agent's any more")

    def remove(self) -> bool:
        """Returns whether the tree is gone, also that of an agent that was killed."""
        try:
            self.nic.remove()
            self.nic.remove_left()
        except NicError as error:
            self._say("nic", f"the tree cannot be taken away: {error}")
            return False
        return True

    def forget(self) -> None:
        """The interface is gone, and its tree with it."""
        with contextlib.suppress(NicError):
            self.nic.remove()

    def _guard(self) -> None:
        try:
            self.nic.watch()
            self._clear("guard")
        except NicError as error:
            self._say("guard", f"{self.nic.interface}: {error}")

    def _say(self, key: str, message: str) -> None:
        self._notices.say(f"{key} {self.nic.interface}", message)

    def _clear(self, key: str, message: str | None = None) -> None:
        self._notices.clear(f"{key} {self.nic.interface}", message)


class Trees:
    """The trees of ``ordered``. No method raises. It is not thread-safe.

    ``read`` returns the host's interfaces by index, and raises OSError. ``make`` returns the managed interface of a
    name.
    """

    def __init__(
        self,
        ordered: Sequence[Ordered],
        notices: Notices,
        *,
        read: Callable[[], Mapping[int, Netdev]] = lambda: netdev_list.read().netdevs,
        make: Callable[[str], Nic] = lambda name: Nic(name, None),
    ) -> None:
        self._ordered = ordered
        self._notices = notices
        self._read = read
        self._make = make
        self._trees: dict[str, _Tree] = {}
        self._rates: dict[str, float] = {}
        self._plan: HostPlan | None = None

    def apply(self, plan: HostPlan) -> bool:
        """Serve the plan's classes at each interface. Returns whether all of them do."""
        self._plan = plan
        try:
            netdevs = self._read()
        except OSError as error:
            self._notices.say("netdevs", f"this host's interfaces cannot be listed: {error.strerror or error}")
            return False
        self._notices.clear("netdevs", "this host's interfaces are listed")
        rates, done = self._placed(plan, netdevs)
        present = {netdev.name for netdev in netdevs.values()}
        for name in self._trees.keys() - rates.keys():
            tree = self._trees.pop(name)
            if name in present:
                # A port that has left its bond is not ordered any more.
                tree.remove()
            else:
                tree.forget()
        self._rates = rates
        for name, rate_bps in rates.items():
            if name not in self._trees:
                self._trees[name] = _Tree(self._make(name), self._notices)
            done &= self._trees[name].apply(plan, rate_bps)
        return done

    def reconcile(self) -> None:
        """Repair what other programs have changed, and follow what bonds and VLANs lie on."""
        with contextlib.suppress(OSError):
            if self._plan is not None and self._placed(self._plan, self._read())[0] != self._rates:
                self.apply(self._plan)
        for tree in self._trees.values():
            tree.reconcile()

    def remove(self) -> bool:
        """Remove all trees, also those of an agent that was killed. Returns whether that succeeded."""
        self._plan = None
        for name in self._names():
            if name not in self._trees:
                self._trees[name] = _Tree(self._make(name), self._notices)
        done = [tree.remove() for tree in self._trees.values()]
        return all(done)

    def _names(self) -> Iterable[str]:
        """Returns the interfaces that may have a tree of ours."""
        names: dict[str, None] = {}
        for each in self._ordered:
            try:
                names |= dict.fromkeys(place.interface for place in places(self._read(), each.name))
            except (NicError, OSError):
                names[each.name] = None
        return names

    def _placed(self, plan: HostPlan, netdevs: Mapping[int, Netdev]) -> tuple[dict[str, float], bool]:
        """Returns the rate of each interface that gets a tree, and whether all ordered ones have theirs."""
        rates: dict[str, float] = {}
        done = True
        for each in self._ordered:
            key = f"place {each.name}"
            try:
                rate_bps = _rate(each, plan)
                for place, share in places(netdevs, each.name):
                    rates[place] = max(rates.get(place, 0.0), rate_bps * share)
                self._notices.clear(key, f"{each.name} can be ordered")
            except NicError as error:
                done = False
                self._notices.say(key, f"this host's interface does not order its traffic: {error}")
        return rates, done


def _rate(ordered: Ordered, plan: HostPlan) -> float:
    """Returns the rate of an interface. Raises NicError."""
    if ordered.rate_bps is not None:
        return ordered.rate_bps
    if not plan.interfaces:
        return plan.egress_bps
    rates = {each.name: each.egress_bps for each in plan.interfaces}
    if ordered.name not in rates:
        raise NicError(
            f"{ordered.name} is none of this host's interfaces in the controller's settings, which are "
            f"{', '.join(rates)}: name one of them, or give its rate"
        )
    return rates[ordered.name]
