"""Certificates are renewed while messages flow: nothing may be lost, and nobody may wait for it.

A real controller with TLS for OpenFlow, and a real Open vSwitch whose datapath is in memory. An app beside the
controller sends the switch one echo request after the other. Meanwhile one client sends reports, and another registers
and deletes jobs, so that rules flow. In each round the controller's certificate is replaced; one second without a
renewal is looked at, and then one that begins with SIGHUP. In both seconds new connections are made as well: one in the
first, and in the second one after the other until one gets the new certificate.

The aims, which were set before the first measurement:

- no message is lost: each echo and each request is answered, and at the end the switch has the rules of all jobs;
- no connection breaks;
- the longest gap between two answers during a renewal is in the mean less than twice that without one;
- a new connection has the new certificate within 100 ms after the signal, in each round.
"""

from __future__ import annotations

import math
import re
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from controller.access.certificates.authority import utc_now
from controller.access.certificates.folder import Folder, Wanted
from evaluation.bench.figures import Bench, Figure
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.loads.rest_load import FIRST_PORT, RestLoad, rest_load
from evaluation.bench.support.openflow import echo_stream
from evaluation.bench.support.openflow.openvswitch_process import OpenVSwitch
from evaluation.bench.support.waiting import wait_until
from simulator.reports.statistics import mean_interval

ROUNDS = 20
WINDOW_SECONDS = 1.0
SETTLE_SECONDS = 0.2
"""After a certificate has been made, which takes processor time; and between two windows, so that no gap is in both."""
WARM_UP_SECONDS = 3.0
RULES_SECONDS = 20.0
RENEWED_SECONDS = 10.0
LIMIT_RATIO = 2.0
LIMIT_MS = 100.0
_CONTROLLER = Wanted("controller", "controller", ("127.0.0.1",))
_SWITCHES = (Wanted("switch", "s1"), Wanted("switch", "s2"))
_DAYS = 30

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Yard:
    """A controller, the switch that is connected to it, and the controller's port for switches."""

    controller: Controller
    switch: OpenVSwitch
    port: int


@dataclass(frozen=True, slots=True)
class Round:
    """When the second without a renewal began, when SIGHUP was sent (``time.monotonic``), and what connections took.

    ``handshake_seconds``: a new connection without a renewal. ``renewed_seconds``: from the signal to the end of the
    first handshake that shows the new certificate.
    """

    quiet: float
    signalled: float
    handshake_seconds: float
    renewed_seconds: float


@dataclass(frozen=True, slots=True)
class Gaps:
    """The longest gap between two answers in milliseconds, of each round without and with a renewal."""

    quiet_ms: tuple[float, ...]
    renewal_ms: tuple[float, ...]

    def figure(self, claim: str, metric: str) -> Figure:
        """Returns the mean with a renewal beside the mean without one, and the limit, a multiple of the latter."""
        pairs = zip(self.renewal_ms, self.quiet_ms, strict=True)
        return Figure(
            claim,
            metric=metric,
            unit="ms",
            value=fmean(self.renewal_ms),
            baseline=fmean(self.quiet_ms),
            baseline_name="without a renewal",
            ci95=mean_interval([1 - renewal / quiet for renewal, quiet in pairs]),
            limit=LIMIT_RATIO * fmean(self.quiet_ms),
        )


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the controller or the switch does not do what it is asked."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            return _measure(Path(scratch))
        except AssertionError as error:  # what the processes and the waiting raise
            raise RuntimeError(str(error)) from error


def longest_gap(answers: Array, began: float, ended: float) -> float:
    """Returns the longest time between two successive answers that is at least in part between two moments.

    ``answers``: shape (n,), when they came, in order. NaN where no answers are on both sides of a moment.
    """
    gaps = np.diff(answers)
    is_in = (answers[1:] > began) & (answers[:-1] < ended)
    if not len(answers) or answers[0] > began or answers[-1] < ended:
        return math.nan
    return float(gaps[is_in].max())


def _measure(scratch: Path) -> Bench:
    certificates = Folder(scratch / "certificates")
    certificates.make([_CONTROLLER, *_SWITCHES], days=_DAYS, replace=False, now=utc_now())
    with _running(scratch, certificates) as yard:
        with rest_load(yard.controller.port) as load:
            time.sleep(WARM_UP_SECONDS)
            rounds = [_round(yard, certificates, number) for number in range(ROUNDS)]
            time.sleep(SETTLE_SECONDS)
        missing = _missing_rules(yard.switch, set(load.ports) | {FIRST_PORT - 1})
        is_gone = not yard.switch.is_connected()
        connections = np.fromfile(scratch / echo_stream.CONNECTIONS)
        echoes = np.fromfile(scratch / echo_stream.ECHOES).reshape(-1, 2)
    return _report(rounds, echoes, load, missing, len(connections) - 1 + is_gone)


def _report(rounds: Sequence[Round], echoes: Array, load: RestLoad, missing: int, switch_broke: int) -> Bench:
    clients = (load.reports, load.jobs)
    unanswered = int(np.isnan(echoes[:, 1]).sum())
    lost = {"echoes": unanswered, "requests": sum(each.lost for each in clients), "rules": missing}
    asked = len(echoes) + sum(len(each.answers) + each.broken for each in clients)
    broken = switch_broke + sum(each.broken for each in clients)
    of_switch = _gaps(echoes[~np.isnan(echoes[:, 1]), 1], rounds)
    of_reports = _gaps(np.array(load.reports.answers), rounds)
    none = (math.nan, math.nan)
    return Bench(
        figures=(
            Figure(
                f"Messages and rules lost in {len(rounds)} renewals",
                metric="lost",
                unit="",
                value=sum(lost.values()),
                baseline=asked,
                baseline_name="messages that were to be answered",
                ci95=none,
                limit=1,
            ),
            Figure(
                f"Connections that broke in {len(rounds)} renewals",
                metric="broken",
                unit="",
                value=broken,
                baseline=1 + len(clients),
                baseline_name="connections, of the switch and of clients of the API",
                ci95=none,
                limit=1,
            ),
            of_switch.figure("The longest gap between two answers of the switch, mean", "switch_gap"),
            of_reports.figure("The longest gap between two answers to reports, mean", "report_gap"),
            Figure(
                "From the signal to a new connection with the new certificate, longest",
                metric="renewed",
                unit="ms",
                value=1e3 * max(each.renewed_seconds for each in rounds),
                baseline=1e3 * fmean(each.handshake_seconds for each in rounds),
                baseline_name="a new connection without a renewal, mean",
                ci95=none,
                limit=LIMIT_MS,
            ),
        ),
        details={
            "lost": lost,
            "answers": {"echoes": len(echoes), "reports": len(load.reports.answers), "jobs": len(load.jobs.answers)},
            "switch_gaps_ms": _digest(of_switch),
            "report_gaps_ms": _digest(of_reports),
            "renewed_ms": [1e3 * each.renewed_seconds for each in rounds],
        },
    )


def _digest(gaps: Gaps) -> dict[str, float | tuple[float, ...]]:
    return {
        "quiet": gaps.quiet_ms,
        "renewal": gaps.renewal_ms,
        "ratio_of_means": fmean(gaps.renewal_ms) / fmean(gaps.quiet_ms),
        "ratio_of_longest": max(gaps.renewal_ms) / max(gaps.quiet_ms),
    }


def _gaps(answers: Array, rounds: Sequence[Round]) -> Gaps:
    def of(moments: Sequence[float]) -> tuple[float, ...]:
        return tuple(1e3 * longest_gap(answers, began, began + WINDOW_SECONDS) for began in moments)

    return Gaps(of([each.quiet for each in rounds]), of([each.signalled for each in rounds]))


def _round(yard: Yard, certificates: Folder, number: int) -> Round:
    process = yard.controller.process
    assert process is not None
    context = _client(certificates)
    own = certificates.path / "controller.pem"
    shown = ssl.PEM_cert_to_DER_cert(own.read_text())
    certificates.make([_CONTROLLER], days=_DAYS, replace=True, now=utc_now())
    new = ssl.PEM_cert_to_DER_cert(own.read_text())
    time.sleep(SETTLE_SECONDS)
    quiet = time.monotonic()
    assert _handshake(yard.port, context) == shown, "the certificate has been read before the signal"
    handshake = time.monotonic() - quiet
    time.sleep(max(0.0, quiet + WINDOW_SECONDS + SETTLE_SECONDS - time.monotonic()))
    signalled = time.monotonic()
    process.send_signal(signal.SIGHUP)
    while _handshake(yard.port, context) != new:
        waited = time.monotonic() - signalled
        assert waited < RENEWED_SECONDS, f"no new certificate is shown: {yard.controller.log()[-500:]}"
    renewed = time.monotonic() - signalled
    time.sleep(max(0.0, signalled + WINDOW_SECONDS - time.monotonic()))
    sys.stderr.write(f"bench tls-renewal: {number + 1} of {ROUNDS}: new certificate after {1e3 * renewed:.1f} ms\n")
    return Round(quiet, signalled, handshake, renewed)


def _client(certificates: Folder) -> ssl.SSLContext:
    """The context of a switch that connects and goes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(certificates.authority_of("controller"))
    context.load_cert_chain(*_files(certificates, _SWITCHES[1]))
    return context


def _handshake(port: int, context: ssl.SSLContext) -> bytes | None:
    """The certificate that a new connection is shown, in DER form."""
    with socket.create_connection(("127.0.0.1", port), 10) as raw, context.wrap_socket(raw) as secured:
        return secured.getpeercert(binary_form=True)


def _files(certificates: Folder, whose: Wanted) -> tuple[Path, Path]:
    """A certificate and its key."""
    return certificates.path / f"{whose.stem}.pem", certificates.path / f"{whose.stem}.key"


def _missing_rules(switch: OpenVSwitch, ports: set[int]) -> int:
    """How many jobs have no rules at the switch, or have rules though they were deleted, when nothing changes any more.

    They have the time in which a plan comes into force.
    """
    deadline = time.monotonic() + RULES_SECONDS
    while wrong := ports ^ {int(port) for port in re.findall(r"tp_(?:src|dst)=(\d+)", switch.flows())}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return len(wrong)


@contextmanager
def _running(scratch: Path, certificates: Folder) -> Iterator[Yard]:
    """A controller with its app of echoes, and a switch that is connected by TLS."""
    certificate, key = _files(certificates, _CONTROLLER)
    openflow = free_port()
    tls = {"certificate": certificate, "key": key, "authority": certificates.authority_of("switch"),
           "revoked": certificates.revoked_of("switch")}  # fmt: skip
    controller = Controller(
        scratch,
        token=False,
        apps=[echo_stream.__name__],
        openflow={"port": openflow, "tls": {name: str(file) for name, file in tls.items()}},
        probe=False,
        queues="existing",
    )
    with OpenVSwitch(scratch / "ovs") as switch:
        try:
            controller.start()
            switch.set_ssl(*_files(certificates, _SWITCHES[0]), certificates.authority_of("controller"))
            switch.connect(f"ssl:127.0.0.1:{openflow}")
            wait_until(lambda: controller.call("GET", "/readyz").ok, 60, what="the switch's connection")
            yield Yard(controller, switch, openflow)
        finally:
            controller.stop()
