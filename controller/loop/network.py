"""The network as the control loop sees it: what it asks of the dataplane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from controller.dataplane.values import Applied, SwitchStatus
from controller.loop.gates import GatedNetwork
from controller.model import Switch
from controller.rules.rule import Rule


class Network(GatedNetwork, Protocol):
    """The part of the dataplane that the loop uses; see ``controller.dataplane.plane.Dataplane``."""

    def switches(self) -> tuple[Switch, ...]:
        """Returns the switches that are ready for rules."""

    def apply(self, rules: frozenset[Rule]) -> Applied:
        """Make the switches hold exactly these rules."""

    def set_paused(self, is_paused: bool) -> None:
        """Keep the switches' gates closed from the next renewal on, or open again."""

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call ``listener`` when a switch comes or goes."""

    def status(self) -> tuple[SwitchStatus, ...]:
        """Returns the status of every switch."""

    def class_bytes(self) -> dict[tuple[int, int | None], int]:
        """Returns bytes by switch and class."""

    def port_bytes(self, *, anew: bool = True) -> dict[tuple[int, int], dict[int | None, int]]:
        """Returns bytes by switch and port, and by class; without ``anew`` those that are known already."""

    def received_bytes(self) -> dict[tuple[int, int], int]:
        """Returns what each port has received, in bytes by switch and port."""
