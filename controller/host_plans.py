"""Each host's marking plan, its epoch, and who waits for the next one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping
from typing import Any

import eventlet
import eventlet.event

from controller.config import Config
from controller.marking import FlowMark
from controller.model import CLASS_DSCP
from controller.refusals import NotFound, Unavailable
from controller.rules import Mode
from controller.wire import HostPlan, Mark

FIRST_PLAN_SECONDS = 5.0


class HostPlans:
    """The plans by host. A host's epoch changes only when its own marks do, over restarts too."""

    def __init__(self, config: Config, remembered: Mapping[str, Any]) -> None:
        self._config = config
        self._hosts = config.host_map()
        self._plans: dict[str, HostPlan] = {}
        self._epochs: dict[str, tuple[int, str]] = {
            host: (int(epoch), str(digest)) for host, (epoch, digest) in remembered.items() if host in self._hosts
        }
        self._sources: dict[str, tuple[str, Mode, tuple[FlowMark, ...]]] = {}
        self._ready = False
        self._is_closed = False
        self._changed = eventlet.event.Event()

    def close(self) -> None:
        """Have nobody wait any more: who does gets what there is."""
        self._is_closed = True
        self._tell()

    def update(
        self,
        policy: str,
        marks: Mapping[str, tuple[FlowMark, ...]],
        hosts: Collection[str] | None = None,
        *,
        degraded: bool = False,
    ) -> bool:
        """Take the marks of a new plan for ``hosts`` (None: all); whether any host's plan is another now.

        ``degraded``: switches look at marks, whatever the settings say.
        """
        mode: Mode = "marked" if degraded else self._config.mode
        any_changed = False
        for host in self._hosts if hosts is None else hosts:
            source = (policy, mode, marks.get(host, ()))
            if self._sources.get(host) == source:
                continue
            self._sources[host] = source
            plan = self._plan(host, *source)
            digest = _digest(plan)
            epoch, known = self._epochs.get(host, (0, ""))
            if digest != known:
                epoch += 1
            self._epochs[host] = (epoch, digest)
            self._plans[host] = plan.model_copy(update={"epoch": epoch})
            any_changed = True
        if any_changed or not self._ready:
            self._ready = True
            self._tell()
        return any_changed

    def get(self, host: str, *, known: str | None = None, wait: float = 0.0) -> tuple[HostPlan, str]:
        """A host's plan and its entity tag; waits up to ``wait`` seconds for one whose tag is not ``known``.

        Raises NotFound for an unknown host, and Unavailable while there has not been a plan at all: an empty one
        would strip the marks that a restart must not disturb.
        """
        if host not in self._hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(self._hosts)[:20]) or 'none'}")
        deadline = time.monotonic() + max(wait, 0.0 if self._ready else FIRST_PLAN_SECONDS)
        while True:
            plan = self._plans.get(host)
            if plan is not None and (wait <= 0 or self._tag(host) != known):
                return plan, self._tag(host)
            left = deadline - time.monotonic()
            if left <= 0 or self._is_closed:
                break
            with eventlet.Timeout(left, False):
                self._changed.wait()
        if plan is None:
            raise Unavailable("there is no plan yet; ask again in a second")
        return plan, self._tag(host)

    def record(self) -> dict[str, list[Any]]:
        """The epochs, for the journal."""
        return {host: [epoch, digest] for host, (epoch, digest) in self._epochs.items()}

    def _tell(self) -> None:
        changed, self._changed = self._changed, eventlet.event.Event()
        changed.send()

    def _tag(self, host: str) -> str:
        # With the digest: a controller that has lost its journal counts the epochs from 1 again.
        epoch, digest = self._epochs[host]
        return f'"{epoch}-{digest[:16]}"'

    def _plan(self, host: str, policy: str, mode: Mode, marks: tuple[FlowMark, ...]) -> HostPlan:
        config = self._config
        return HostPlan(
            host=host,
            epoch=0,
            policy=policy,
            mode=mode,
            class_dscp=CLASS_DSCP[: config.classes],
            class_floor=config.floors.job_class,
            other_floor=config.floors.other,
            egress_bps=self._hosts[host].egress_bps,
            marks=tuple(
                Mark(
                    job=mark.job,
                    service_class=mark.service_class,
                    dscp=mark.dscp,
                    local_port=mark.local_port,
                    remote=mark.remote,
                    remote_port=mark.remote_port,
                )
                for mark in marks
            ),
        )


def _digest(plan: HostPlan) -> str:
    return hashlib.sha256(plan.model_dump_json().encode()).hexdigest()[:32]
