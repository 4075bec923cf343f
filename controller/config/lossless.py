"""The section of the settings on lossless priorities: those that switches and hosts protect by PFC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator

from controller.code_points import CNP_DSCP, precedence
from controller.config.values import Section
from controller.model import MAX_CLASSES

Priority = Annotated[int, Field(ge=0, le=7)]


class LosslessSettings(Section):
    """The priorities of lossless Ethernet, where RoCE loses no packet. Which ones these are is fixed in switches and
    hosts, so jobs stay in them: there is one class for each."""

    priorities: Annotated[tuple[Priority, ...], Field(strict=False, min_length=1, max_length=MAX_CLASSES)]
    """The priorities that carry PFC (IEEE 802.1Qbb), in the order in which switches serve them. Class k has the one at
    position k, and the queue with its number at the ports of switches."""

    @field_validator("priorities")
    @classmethod
    def _priorities_are_for_jobs(cls, priorities: tuple[int, ...]) -> tuple[int, ...]:
        notifications = precedence(CNP_DSCP)
        for number, priority in enumerate(priorities):
            if priority in priorities[:number]:
                raise ValueError(f"priority {priority} is there twice; name each once")
            if priority == 0:
                raise ValueError("priority 0 is that of all other traffic, which waits for jobs; leave it out")
            if priority == notifications:
                raise ValueError(
                    f"priority {priority} is that of RoCE's congestion notification (CNP, DSCP {CNP_DSCP}), which must "
                    "not wait for jobs; leave it out"
                )
        return priorities


def with_classes(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with as many classes as lossless priorities where these are given, and ``classes`` is not."""
    lossless = given.get("lossless")
    priorities = lossless.get("priorities") if isinstance(lossless, Mapping) else None
    if "classes" in given or not isinstance(priorities, list | tuple) or not priorities:
        return given
    return {**given, "classes": min(len(priorities), MAX_CLASSES)}


def check_fits(lossless: LosslessSettings, classes: int, dscps: Collection[int]) -> None:
    """Raise ValueError where there are other than as many classes as lossless priorities, or where a job could have
    the DSCP of congestion notifications, which then would get no queue. ``dscps`` are those that jobs can have."""
    if (count := len(lossless.priorities)) != classes:
        raise ValueError(f"there are {count} lossless priorities and {classes} classes; leave classes out")
    if CNP_DSCP in dscps:
        raise ValueError(
            f"RoCE's congestion notification (CNP) has DSCP {CNP_DSCP}, and keeps the queue that the switch gives it, "
            "so no job can have it; leave it out of dscp.jobs"
        )
