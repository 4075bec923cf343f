"""Finds out what this kernel can do for the outer headers of tunnels, and says what is missing."""

from __future__ import annotations

from collections.abc import Callable

from host_reporter.marking.outer_headers import NO_TUNNELS, Outer

_TELL_APART = "-p udp --dport 4789 -m owner ! --socket-exists -j DSCP --set-dscp 0"
_LOOK_INSIDE = '-p udp --dport 4789 -m u32 --u32 "0>>22&0x3C@28&0xFFFFF0FC=0" -j DSCP --set-dscp 0'

Try = Callable[[str], str | None]
"""Tries a rule; see ``iptables_tool.IptablesTool.can``."""


class OuterSupport:
    """What the kernel can do, which is tried once. ``trouble`` says what is missing; None: nothing, or not tried."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self._can_tell_apart: bool | None = None
        self._can_look_inside = True

    def possible(self, outer: Outer, can: Try) -> Outer:
        """Returns of ``outer`` what the kernel can do. ``can`` tries a rule, where that was not done before."""
        if not outer.tunnels:
            return NO_TUNNELS
        if self._can_tell_apart is None:
            self._try(can)
        return outer._replace(can_look=self._can_look_inside) if self._can_tell_apart else NO_TUNNELS

    def _try(self, can: Try) -> None:
        no_owner, no_u32 = can(_TELL_APART), can(_LOOK_INSIDE)
        self._can_tell_apart, self._can_look_inside = no_owner is None, no_u32 is None
        if no_owner is not None:
            self.trouble = (
                "the outer headers of tunnels get no marks, and those that tunnels set are cleared, because the kernel "
                f"does not tell tunnels from programs: {no_owner}; it needs the module xt_owner"
            )
        elif no_u32 is not None:
            self.trouble = (
                "the outer headers of tunnels are left as the tunnels make them, because the kernel does not look "
                f"inside: {no_u32}; it needs the module xt_u32, or tunnels that inherit the DSCP (tos inherit)"
            )
