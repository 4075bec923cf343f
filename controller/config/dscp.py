"""The section of the settings on DSCPs: which one stands for which class, and which ones jobs get for their life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from controller.code_points import MOST, POOL_2, PRESETS, CodePoints, Preset, code_points
from controller.config.dscp_pool import as_pool, default_pool
from controller.config.values import Section
from controller.model import MAX_CLASSES

Dscp = Annotated[int, Field(ge=0, le=MOST)]


class DscpSettings(Section):
    """The DSCPs by which hosts and switches recognise classes and jobs. The name of a preset can stand in the place of
    the section. What the section leaves out is that of its preset."""

    preset: Preset = "pool-2"
    """The set that gives what is left out. pool-2: DSCPs for local use, which no standard gives a meaning.
    class-selectors: CS7 to CS1, which nearly every switch serves by default, and which other programs use, too. dcb:
    DSCPs for local use beside lossless Ethernet, where RoCE has DSCP 26 and its congestion notification has 48."""
    classes: Annotated[tuple[Dscp, ...], Field(strict=False, min_length=1, max_length=MAX_CLASSES)] = POOL_2.classes
    """The DSCP of each class, class 0 first. There is one for each of the classes that the order is cut into, and there
    may be more."""
    acknowledgements: Dscp | None = POOL_2.acknowledgements
    """The DSCP of jobs' packets without data, which are served with class 0. null: they get the DSCP of class 0."""
    other: Dscp = POOL_2.other
    """The DSCP that a packet gets whose DSCP is cleared."""
    jobs: Annotated[tuple[Dscp, ...] | None, BeforeValidator(as_pool)] = None
    """The DSCPs that jobs get for their life with identity dscp: numbers, and ranges such as 1-47. When all are given,
    further jobs share the last one. Without it: those for local use (xxxx11) but acknowledgements and other. A change
    is for jobs that are registered later."""

    @property
    def pool(self) -> tuple[int, ...]:
        """The DSCPs that jobs get for their life."""
        return default_pool((self.acknowledgements, self.other)) if self.jobs is None else self.jobs

    def code_points(self, count: int, *, own: bool = False) -> CodePoints:
        """Returns the DSCPs of ``count`` classes. Those of further classes stay exclusive: no program may set them.

        ``own``: jobs have DSCPs of their own, so that those of classes mean nothing.
        """
        jobs = self.pool if own else None
        return code_points(self.classes, self.acknowledgements, self.other, jobs).first(count)

    def check_fits(self, count: int, unplaced: Sequence[str], *, own: bool = False) -> None:
        """Raise ValueError where ``count`` classes have too few DSCPs, or where no switch would believe hosts' marks.

        ``unplaced`` are hosts whose marks switches go by, and whose ports are not known. ``own``: jobs have DSCPs of
        their own.
        """
        if count > (has := len(self.classes)):
            raise ValueError(f"there are {count} classes and {has} DSCPs; name one for each, or set classes to {has}")
        if unplaced and self.code_points(count, own=own).shared:
            raise ValueError(
                "other programs use these DSCPs, too, so switches believe them at the ports of hosts alone, and where "
                f"{unplaced[0]} is plugged in is not known; set its switch and port, or "
                f"{'leave out those that do not end in binary 11' if own else 'take another preset'}"
            )

    @field_validator("jobs")
    @classmethod
    def _jobs_have_their_own(cls, jobs: tuple[int, ...] | None, info: ValidationInfo) -> tuple[int, ...] | None:
        for name in ("acknowledgements", "other"):
            if jobs is not None and (taken := info.data.get(name)) in jobs:
                raise ValueError(f"DSCP {taken} is that of {name}; leave it out")
        return jobs

    @model_validator(mode="before")
    @classmethod
    def _preset_gives_what_is_left_out(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        preset = given.get("preset", "pool-2")
        points = PRESETS.get(preset) if isinstance(preset, str) else None
        if points is None:
            return given
        left_out = {"classes": points.classes, "acknowledgements": points.acknowledgements, "other": points.other}
        return left_out | dict(given)

    @model_validator(mode="after")
    def _each_dscp_says_one_thing(self) -> Self:
        meanings: dict[int, str] = {}
        for k, dscp in enumerate(self.classes):
            _take(meanings, dscp, f"class {k}")
        if self.acknowledgements is not None:
            _take(meanings, self.acknowledgements, "acknowledgements")
        if self.other in meanings:
            raise ValueError(f"other is {self.other}, which is that of {meanings[self.other]}; it needs its own")
        return self


def as_dscp(value: object) -> object:
    """Give an empty section its defaults, and make a section of a preset's name; raises ValueError for other values."""
    if value is None:
        return {}
    if isinstance(value, str):
        if value not in PRESETS:
            raise ValueError(f"there is no preset {value[:40]!r}; there are: {', '.join(PRESETS)}")
        return {"preset": value}
    if not isinstance(value, Mapping | BaseModel):
        raise ValueError(f"it must be a mapping of settings, or one of: {', '.join(PRESETS)}")
    return value


def _take(meanings: dict[int, str], dscp: int, what: str) -> None:
    if dscp == 0:
        raise ValueError(f"{what} has DSCP 0, which all traffic has that nobody marks; give it one from 1 to {MOST}")
    if other := meanings.get(dscp):
        raise ValueError(
            f"DSCP {dscp} is that of {other} and of {what}; each needs its own, also where it is the preset's"
        )
    meanings[dscp] = what
