"""The plan in force, and a newer one that a switch refused, as records of the journal, and back."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller.declared.json_texts import texts_of, with_members
from controller.journal.store import Store
from controller.model import MAX_CLASSES, Ordering
from controller.pieces import Steps
from controller.planner import Plan

LOG = logging.getLogger("trainyard.loop")
KIND, ID = "plan", "last"
REFUSED_ID = "refused"
"""Record a plan that a switch refused under this id: other switches hold it, and the policy goes on from it."""


def to_text(plan: Plan, host_epochs: Mapping[str, Any], epoch: int) -> Steps[str]:
    """Returns a plan's record as JSON, in steps. Rules are in no record: they are compiled anew."""
    ordering = plan.ordering
    large = yield from texts_of(
        host_epochs=host_epochs,
        bands=ordering.bands,
        reasons=ordering.reasons,
        memory=ordering.memory,
        watch=ordering.watch,
        classes=plan.classes,
    )
    rest = {
        "made_at": plan.made_at,
        "epoch": epoch,
        "policy": ordering.policy,
        "objective_seconds": plan.objective_seconds,
        "lower_bound_seconds": plan.lower_bound_seconds,
    }
    return with_members(json.dumps(rest, separators=(",", ":")), **large)


class LastPlan(BaseModel):
    """The record, checked when it is read, because a wrong plan would stop every plan after it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    made_at: float
    epoch: int
    host_epochs: dict[str, tuple[int, str]]
    policy: str
    bands: tuple[tuple[str, ...], ...]
    reasons: dict[str, str]
    memory: dict[str, float]
    watch: dict[str, float]
    classes: dict[str, Annotated[int, Field(ge=0, lt=MAX_CLASSES)]]
    objective_seconds: float
    lower_bound_seconds: float

    def plan(self) -> Plan:
        """Returns the plan, without rules."""
        return Plan(
            made_at=self.made_at,
            ordering=Ordering(self.policy, self.bands, self.reasons, self.memory, self.watch),
            classes=self.classes,
            rules=frozenset(),
            objective_seconds=self.objective_seconds,
            lower_bound_seconds=self.lower_bound_seconds,
            moves=0,
            inversions=0,
        )


def read_last(store: Store, record_id: str = ID) -> LastPlan | None:
    """Returns the plan that the journal holds; None without one. A damaged plan is left out; the next replaces it."""
    text = store.contents().records.get(KIND, {}).get(record_id)
    if text is None:
        return None
    if (KIND, record_id) in store.contents().damaged:
        LOG.warning("the journal's last plan is damaged and left out: its checksum is wrong")
        return None
    try:
        return LastPlan.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        LOG.warning(
            "the journal's last plan is damaged and left out: %s: %s", ".".join(map(str, fault["loc"])), fault["msg"]
        )
        return None
