"""Who enforces the order, and how switches know a job: what follows for switches and hosts. Pure.

Everybody who acts differently by these settings asks an ``Enforcement``, and nobody looks at the settings themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Place = Literal["switches", "hosts"]
Identity = Literal["flows", "classes", "dscp"]
Mode = Literal["classified", "marked", "dscp"]
"""The names of the identities in the API and in the rules."""
PLACES: tuple[Place, ...] = ("switches", "hosts")
MODE_OF: dict[Identity, Mode] = {"flows": "classified", "classes": "marked", "dscp": "dscp"}
IDENTITY_OF: dict[Mode, Identity] = {mode: identity for identity, mode in MODE_OF.items()}


@dataclass(frozen=True, slots=True)
class Enforcement:
    """Who enforces the order.

    ``switches``: they get rules and queues. ``hosts``: their agents mark packets and order their interfaces.
    ``identity`` says how a switch knows a job: by its flows; by the DSCP of its class, which hosts set anew with each
    plan; or by a DSCP of its own, which the job has from its registration to its end.
    """

    switches: bool = True
    hosts: bool = True
    identity: Identity = "flows"

    @classmethod
    def of(cls, places: Collection[Place], identity: Identity) -> Enforcement:
        """Returns what settings say."""
        return cls("switches" in places, "hosts" in places, identity)

    @property
    def observes(self) -> bool:
        """Whether plans are made, and nothing is installed anywhere."""
        return not (self.switches or self.hosts)

    @property
    def is_by_flows(self) -> bool:
        """Whether switches have rules for the jobs' flows, as far as these fit."""
        return self.switches and self.identity == "flows"

    @property
    def is_by_dscp(self) -> bool:
        """Whether switches go by DSCPs alone, those of classes or those of jobs."""
        return self.switches and self.identity != "flows"

    @property
    def has_own_dscps(self) -> bool:
        """Whether each job has a DSCP of its own for its life."""
        return self.identity == "dscp"

    @property
    def needs_marks(self) -> bool:
        """Whether a job that its hosts do not mark is served like other traffic."""
        return not self.observes and not self.is_by_flows

    @property
    def mode(self) -> Mode:
        """The name of the identity in the API and in the rules."""
        return MODE_OF[self.identity]
