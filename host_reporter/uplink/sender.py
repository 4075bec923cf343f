"""Registers jobs at the controller, sends batches, and keeps the lease; it goes on while the controller is away.

Ends, new jobs, and a metric that crosses the controller's threshold are reported at once. All other progress is
reported once in the controller's period, because it plans no more often.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping

from pydantic import ValidationError

from controller.documents.faults import described, in_lines
from controller.model import Progress
from controller.wire import HostReport, InterfaceTraffic, JobTraffic, ReportAnswer, Threshold
from controller.wire.parts import PartSpec
from host_reporter.jobs.job import Spec
from host_reporter.jobs.studies.stages import StagedSpec
from host_reporter.marking.enforcement import Marking
from host_reporter.marking.rules_text import Sent
from host_reporter.notices import Notices
from host_reporter.uplink.backlog import Backlog, Batch, Registration
from host_reporter.uplink.backoff import Backoff
from host_reporter.uplink.connection import Address, Answer, Connection, UnreachableError
from host_reporter.uplink.interfaces import InterfaceNews
from host_reporter.worker import Worker

GAP_SECONDS = 0.05
"""Wait at least this long between two calls, so that one call reports all news of that time."""

FLUSH_SECONDS = 5.0
"""When the agent stops, send the rest for at most this long, because the controller may be busy."""

LAST_RETRY_SECONDS = 0.5
"""When the agent stops and the controller is too busy for a report, try again after this time."""

_OK, _CREATED, _FORBIDDEN, _NOT_FOUND, _NO_METHOD, _CONFLICT, _UNAVAILABLE = 200, 201, 403, 404, 405, 409, 503
_WRONG = {400, 413, 415, 422}
_CONTROLLER, _PARTS, _NEWER = "controller", "parts", "newer"
_NO_CALL = "there is nothing at"
"""A controller's answer to a call that it does not have begins so. An unknown host has another one."""


class Sender:
    """A thread between the agent and the controller. Any thread may call its methods, which return at once.

    ``failed`` is called if a fault ends the thread, and ``held`` with the jobs that the controller has from an earlier
    agent.
    """

    def __init__(
        self,
        address: Address,
        host: str,
        period_seconds: float,
        notices: Notices,
        failed: Callable[[Exception], None],
        *,
        held: Callable[[tuple[str, ...]], None] = lambda _jobs: None,
        backoff: Backoff | None = None,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._flush_seconds = flush_seconds
        self._host = host
        self._held = held
        self._url = address.url
        self._connection = Connection(address)
        self._period = self._lease_seconds = period_seconds
        self.plan_period = period_seconds
        """Seconds between two of the controller's plans, as its last answer says."""
        self._lease_at = self._progress_at = 0.0
        self._not_before = 0.0
        self._session = uuid.uuid4().hex
        self._notices = notices
        self._backoff = backoff or Backoff()
        self._backlog = Backlog()
        self._call: Registration | Batch | None = None
        self._marking = Marking()
        self._interfaces = InterfaceNews()
        self._stop_at: float | None = None
        self._worker = Worker("sender", self._work, self._connection.close, failed=failed)
        self._news = self._worker.news

    def start(self) -> None:
        """Start the thread. The first batch reports that the host is there."""
        self._worker.start()

    def stop(self) -> None:
        """Send what is pending, if possible within ``flush_seconds``, and stop the thread."""
        with self._news:
            self._stop_at = time.monotonic() + self._flush_seconds
            self._not_before = 0.0
        self._worker.stop(self._flush_seconds + 1.0)

    def declare(self, job: str, spec: Spec | None) -> None:
        """Note a job whose file has come or changed."""
        self._update(lambda: self._backlog.declare(job, spec))

    def add(self, job: str, points: Iterable[Progress]) -> None:
        """Note the progress of a declared job."""
        self._update(lambda: self._backlog.add(job, points))

    def diverge(self, job: str) -> None:
        """The run of a declared job has diverged."""
        self._update(lambda: self._backlog.diverge(job))

    def note_unread(self, job: str, reason: str) -> None:
        """Why the progress of a declared job cannot be read; empty: it can."""
        self._update(lambda: self._backlog.note_unread(job, reason))

    def end(self, job: str) -> None:
        """Note that a declared job has ended."""
        self._update(lambda: self._backlog.end(job, time.time()))

    def end_earlier(self, job: str, at: float) -> None:
        """Note that an earlier agent's job ended while no agent ran, ``at`` seconds since the epoch."""
        self._update(lambda: self._backlog.end_earlier(job, at))

    def count_sent(self, totals: Mapping[str, Sent]) -> None:
        """Note the bytes that each job has sent from this host; they are reported with the next lease at the latest."""
        with self._news:
            self._backlog.count_sent(totals)

    def marks(self, marking: Marking) -> None:
        """Note what this host marks; a change is reported soon."""
        with self._news:
            if marking != self._marking:
                self._marking, self._lease_at = marking, 0.0
                self._news.notify()

    def note_interfaces(self, interfaces: tuple[InterfaceTraffic, ...]) -> None:
        """Note what all interfaces have carried: reported with the next batch, or soon where other sentences follow."""
        with self._news:
            if self._interfaces.note(interfaces):
                self._lease_at = 0.0
                self._news.notify()

    def add_traffic(self, parts: Iterable[JobTraffic]) -> None:
        """Note the traffic of jobs. Changed links are reported at once, bytes with the next progress."""
        with self._news:
            self._backlog.add_traffic(parts)
            self._news.notify()

    def _update(self, change: Callable[[], None]) -> None:
        with self._news:
            before = self._backlog.thinned
            change()
            if self._backlog.thinned > before:
                self._notices.say("thinned", "the controller is behind: old points of progress are being thinned")
            self._news.notify()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                if isinstance(call, Registration):
                    self._register(call)
                else:
                    self._post(call)
            except UnreachableError as error:
                self._trouble(str(error))

    def _next(self) -> Registration | Batch | None:
        """Wait for and return the next call, None at the end. A call without an answer comes again."""
        with self._news:
            while True:
                now = time.monotonic()
                stopping = self._stop_at is not None
                if self._stop_at is not None and (now >= self._stop_at or not self._is_left(now)):
                    return None
                if now >= self._not_before:
                    if self._call is None:
                        is_lease = now >= self._lease_at and not stopping
                        progress = stopping or now >= self._progress_at
                        self._call = self._backlog.next_call(now, lease=is_lease, progress=progress)
                        self._lease_at = now + self._lease_seconds if is_lease else self._lease_at
                    if self._call is not None:
                        return self._call
                    if stopping:
                        return None
                self._news.wait(self._wait_seconds(now))

    def _is_left(self, now: float) -> bool:
        """Returns whether anything is left to report: jobs, progress, ends, connections, or bytes."""
        return self._call is not None or self._backlog.has_news or self._backlog.has_progress(now)

    def _wait_seconds(self, now: float) -> float:
        if now < self._not_before:
            due = [self._not_before]
        else:
            retry = self._backlog.next_retry(now)
            due = [self._lease_at, *([retry] if retry is not None else [])]
            if self._backlog.has_progress(now):
                due.append(self._progress_at)
        if self._stop_at is not None:
            due.append(self._stop_at)
        return max(min(due) - now, 0.001)

    # Calls ---------------------------------------------------------------------------------------------------------

    def _register(self, call: Registration) -> None:
        body = call.spec.model_dump_json(exclude_none=True)
        is_part = isinstance(call.spec, PartSpec)
        path = f"/v1/jobs/{call.run.job}/parts/{self._host}" if is_part else f"/v1/jobs/{call.run.job}"
        answer = self._connection.request("PUT", path, body)
        job, key = call.run.job, f"job {call.run.job}"
        if answer.status in (_OK, _CREATED):
            self._notices.clear(key, f"job {job} is registered now")
            if is_part:
                self._notices.clear(_PARTS, "the controller takes found jobs now")
            with self._news:
                self._backlog.registered(call, created=answer.status == _CREATED)
            self._done()
        elif answer.status in _WRONG:
            self._notices.say(key, f"job {job} is refused until it changes: {answer.detail}", logging.ERROR)
            with self._news:
                self._backlog.not_registered(call, time.monotonic(), retry=False)
            self._done()
        elif answer.status == _FORBIDDEN and isinstance(call.spec, StagedSpec):
            self._notices.say(f"stage {job}", f"job {job} goes on without stage {call.spec.stage}: {answer.detail}")
            with self._news:
                self._backlog.registers_as(call, call.spec.without_stage())
            self._done()
        elif is_part and _is_older(answer):
            self._notices.say(_PARTS, "found jobs are not reported: the controller is older, and takes job files alone")
            with self._news:
                self._backlog.not_registered(call, time.monotonic(), retry=True)
            self._done()
        elif answer.status in (_CONFLICT, _FORBIDDEN) or (is_part and answer.status == _NOT_FOUND):
            # Another job may end and free what both claim.
            self._notices.say(key, f"job {job} is refused for now: {answer.detail}", logging.ERROR)
            with self._news:
                self._backlog.not_registered(call, time.monotonic(), retry=True)
            self._done()
        else:
            # Reports of other jobs go on, because the controller may fail only at this job.
            with self._news:
                self._backlog.not_registered(call, time.monotonic(), retry=True)
            self._call = None
            self._trouble(answer.detail, is_all=False)

    def _post(self, batch: Batch) -> None:
        with self._news:
            now, marking = time.monotonic(), self._marking
            interfaces = self._interfaces.due(now)
            are_taken = self._interfaces.are_taken(now)
            marks, tunnel_ports = (marking.jobs, marking.tunnel_ports) if are_taken else (None, ())
        has_newer = interfaces is not None or marks is not None or bool(tunnel_ports)
        report = HostReport(
            session=self._session,
            seq=batch.seq,
            sent_at=time.time(),
            marks_acknowledgements=marking.acknowledgements,
            marks=marks,
            tunnel_ports=tunnel_ports,
            jobs=batch.parts,
            traffic=batch.traffic,
            interfaces=interfaces,
        )
        body = report.model_dump_json(exclude_defaults=True)
        answer = self._connection.request("POST", f"/v1/hosts/{self._host}/reports", body)
        if answer.status == _OK:
            with self._news:
                self._interfaces.taken(interfaces)
            if has_newer:
                self._notices.clear(_NEWER, "the controller takes all of a report now")
            self._accepted(batch, answer)
        elif answer.status in _WRONG and has_newer:
            # An older controller does not know these fields. The same batch is sent once more without them.
            with self._news:
                self._interfaces.refused(time.monotonic())
            self._notices.say(
                _NEWER,
                "the controller does not take what interfaces carry and whether packets are marked; is it older than "
                f"this agent? {answer.detail}",
            )
        elif answer.status in _WRONG:
            self._notices.say("batch", f"the controller refused a batch, which is dropped: {answer.detail}")
            with self._news:
                self._backlog.answered(batch, (), time.monotonic())
            self._done()
        elif answer.status == _UNAVAILABLE and self._stop_at is not None:
            # The controller is busy. There may be time for another try before the stop.
            self._not_before = time.monotonic() + LAST_RETRY_SECONDS
        else:
            self._trouble(answer.detail)

    def _accepted(self, batch: Batch, answer: Answer) -> None:
        now = time.monotonic()
        refused: set[str] = set()
        lease, gap = self._period, GAP_SECONDS
        urgent: Mapping[str, Threshold] = {}
        try:
            reply = ReportAnswer.model_validate_json(answer.body)
            lease = min(lease, reply.lease_seconds / 3)
            gap, urgent = reply.period_seconds, reply.urgent
            self.plan_period = reply.period_seconds
            if reply.held:
                self._held(reply.held)
            for part in reply.refused:
                refused.add(part.job)
                self._notices.say(f"part {part.job}", f"the report of job {part.job} is refused: {part.reason}")
            for part in reply.left_out:
                self._notices.say(f"belief {part.job}", f"job {part.job}: of its report {part.reason}")
        except ValidationError as error:
            reason = in_lines(described(error, None, ReportAnswer))[0]
            self._notices.say("answer", f"the controller's answer to a report is not understood: {reason}")
        for job in {part.job for part in batch.parts} - refused:
            self._notices.clear(f"part {job}")
        with self._news:
            self._backlog.answered(batch, refused, now, urgent)
            if not self._backlog.has_news:
                self._notices.clear("thinned")
        self._lease_seconds = lease
        # The lease begins at the answer. With a slow controller all batches would else be leases without progress.
        self._lease_at = now + lease
        self._not_before = now + GAP_SECONDS
        self._progress_at = now + (GAP_SECONDS if batch.is_full else gap)
        self._done()

    def _done(self) -> None:
        self._call = None
        self._backoff.reset()
        self._notices.clear(_CONTROLLER, f"the controller at {self._url} answers")

    def _trouble(self, reason: str, *, is_all: bool = True) -> None:
        """Delay the calls after a useless answer, and log the reason.

        With ``is_all`` other calls would fail too, so a stopping agent gives up.
        """
        if self._stop_at is None:
            self._not_before = time.monotonic() + self._backoff.next_seconds()
        elif is_all:
            self._stop_at = 0.0
        self._notices.say(_CONTROLLER, f"the controller at {self._url}: {reason}; reports are kept, and sent later")


def _is_older(answer: Answer) -> bool:
    """Returns whether a controller has answered that it has no such call."""
    return answer.status == _NO_METHOD or (answer.status == _NOT_FOUND and answer.detail.startswith(_NO_CALL))
