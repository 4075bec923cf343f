"""Takes a sample of all jobs and ports each 5 s, for the history."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import eventlet

from controller.api.services import Services
from controller.events.history import JobSample
from controller.events.rings import SAMPLE_SECONDS
from controller.pieces import Steps
from controller.steps import in_steps

LOG = logging.getLogger("trainyard.events")


def port_name(dpid: int, port: int) -> str:
    """Returns the name of a port in the history."""
    return f"{dpid:016x}:{port}"


class Sampler:
    """Adds samples to ``services.history``. ``clock``: seconds since the Unix epoch."""

    def __init__(self, services: Services, clock: Callable[[], float] = time.time) -> None:
        self._services = services
        self._clock = clock
        self._thread: eventlet.greenthread.GreenThread | None = None

    def start(self) -> None:
        """Start to sample."""
        self._thread = eventlet.spawn(self._run)

    def stop(self) -> None:
        """Take no more samples."""
        if self._thread is not None:
            self._thread.kill()
            self._thread = None

    def sample(self) -> None:
        """Take a sample now. Raises what the switches' side raises."""
        ports = {port_name(*key): counts for key, counts in self._services.dataplane.port_bytes().items()}
        received = {port_name(*key): count for key, count in self._services.dataplane.received_bytes().items()}
        jobs = in_steps(self._jobs())
        self._services.history.sample(self._clock(), jobs, ports, received)

    def _run(self) -> None:
        while True:
            now = self._clock()
            # In the middle of a slot, so that a late sample is still in its own.
            eventlet.sleep(SAMPLE_SECONDS - (now - SAMPLE_SECONDS / 2) % SAMPLE_SECONDS)
            try:
                self.sample()
            except Exception as error:  # one that is missed is a gap in the history, and no more
                LOG.warning("a sample of the history is missing: %s: %s", type(error).__name__, error)

    def _jobs(self) -> Steps[dict[str, JobSample]]:
        loop = self._services.loop
        predictions = loop.plan.ordering.predictions if loop.plan is not None else {}
        classes = loop.classes
        samples = {}
        for job, sent in self._services.registry.progress_and_bytes():
            samples[job.id] = JobSample(
                user=job.user,
                sent=sent,
                service_class=classes.get(job.id),
                iterations_done=job.iterations_done,
                metric=job.last_metric,
                predictions=predictions.get(job.id, ()),
            )
            yield
        return samples
