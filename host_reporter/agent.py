"""``host-reporter``: the agent of a host. It connects its parts, and when it stops it removes what it has installed."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from host_reporter.address import address_of
from host_reporter.discovery.finder import Discovery
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.enrolment.announcing import Announcing
from host_reporter.enrolment.enrol import enrol, facts_of
from host_reporter.enrolment.kept_secret import KeptSecret
from host_reporter.enrolment.own_token import OwnTokenError
from host_reporter.environment.job_files import JobFiles
from host_reporter.found import found_jobs
from host_reporter.heartbeat import Heartbeat
from host_reporter.jobs import progress_dir
from host_reporter.jobs.follower import Follower
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.jobs.receivers import Receivers
from host_reporter.marking.enforcement import Enforcement
from host_reporter.marking.families import IPV6
from host_reporter.marking.iptables import Marker
from host_reporter.marking.reconciler import Reconciler
from host_reporter.nic.tensorlights.thread import TensorLights
from host_reporter.nic.trees import Ordered, Trees
from host_reporter.notices import Notices
from host_reporter.options import Options, OptionsError, read_options
from host_reporter.readers import unread
from host_reporter.training.progress_file import DEFAULT_DIRECTORY
from host_reporter.unseen.observer import Observer
from host_reporter.uplink.connection import Address, AddressError
from host_reporter.uplink.peers import PeerBook
from host_reporter.uplink.plan_follower import PlanFollower
from host_reporter.uplink.sender import Sender

FAILED, WRONG_INPUT = 1, 2
_ENDS = (signal.SIGTERM, signal.SIGINT)
log = logging.getLogger("host_reporter")

FIRST_PLAN_SECONDS = 10.0
"""TensorLights waits this long for a controller that does not answer, which may have paused."""
SWITCH_SECONDS = 0.1
"""Python's threads switch at most this often. The agent's threads mostly wait, so more switches would waste time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or Ctrl-C. Returns 0 after a stop, 1 after a fault of the agent, and 2 for wrong options."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == "check":
        from host_reporter.check.command import main as check  # noqa: PLC0415 - only who checks pays for its import

        return check(given[1:])
    for number in _ENDS:
        # Nothing is installed yet, so the process can end at once.
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        options = read_options(given, dict(os.environ))
        address = address_of(options)
    except (OptionsError, AddressError) as error:
        sys.stderr.write(f"host-reporter: {error}\n")
        return WRONG_INPUT
    faults: list[str] = []
    try:
        _run(options, address, faults)
    except OwnTokenError as error:
        sys.stderr.write(f"host-reporter: {error}\n")
        return WRONG_INPUT
    except Exception as error:
        faults.append(_described(error))
    if faults:
        sys.stderr.write(f"host-reporter: stopped by a fault of its own: {faults[0]}\n")
        return FAILED
    return 0


def _run(options: Options, address: Address, faults: list[str]) -> None:
    """Run until stopped. A fault of any thread stops the agent, and adds a line to ``faults``."""
    sys.setswitchinterval(SWITCH_SECONDS)
    notices = Notices(log)
    heartbeat = Heartbeat(options.alive_file, notices)
    heartbeat.beat()
    if address.is_open:
        log.warning("the token crosses the network unencrypted: give the controller a certificate, and use https")
    if address.token_is_public():
        log.warning("others can read %s: make it readable by its owner only", address.token_file)
    if options.enrol_token_file is not None and not options.is_alone:
        address = enrol(
            address,
            options.state_dir,
            options.host,
            notices,
            interfaces=[each.name for each in options.ordered],
            rates={each.name: each.rate_bps for each in options.ordered if each.rate_bps is not None},
            sleep=heartbeat.sleep,
        )
    trouble = progress_dir.prepare(options.progress_dir, is_ours=options.progress_dir == Path(DEFAULT_DIRECTORY))
    if trouble is not None:
        log.warning("%s", trouble)

    with ExitStack() as ending:
        # At the end all parts are stopped in the opposite order, even if some of them fail.
        ending.callback(log.info, "stopped")
        _keep_unread_lines(options.unread_file(), ending)
        follow = _alone if options.is_alone else _with_controller
        follow(options, address, notices, faults, ending, beat=heartbeat.beat).run()


def _keep_unread_lines(file: Path | None, ending: ExitStack) -> None:
    """Let lines that are not understood be written to a file of this host."""
    if file is None:
        return
    try:
        ending.callback(unread.close_file, unread.open_file(file))
    except OSError as error:
        log.warning("%s: lines that are not understood are not kept: %s", file, error.strerror)


def _alone(
    options: Options,
    _address: Address,
    notices: Notices,
    faults: list[str],
    ending: ExitStack,
    *,
    beat: Callable[[], None],
) -> Follower:
    """Run TensorLights on this host without a controller."""

    def failed(error: Exception) -> None:
        faults.append(_described(error))
        follower.stop()

    lights = _lights(options, notices, failed, lambda: options.period)
    assert lights is not None
    follower = Follower(JobsDirectory(options.jobs_dir, options.progress_dir, notices), lights, notices, beat=beat)
    _stop_by_signal(follower.stop)
    ending.callback(follower.close)
    log.info("host %s has no controller; job files in %s", options.host, options.jobs_dir)
    ending.callback(lights.stop)
    lights.start()
    return follower


def _with_controller(
    options: Options,
    address: Address,
    notices: Notices,
    faults: list[str],
    ending: ExitStack,
    *,
    beat: Callable[[], None],
) -> Follower:
    """Run the agent with a controller: reports, discovery and the plan, or TensorLights for the order at the NIC."""

    def failed(error: Exception) -> None:
        faults.append(_described(error))
        follower.stop()

    def held(jobs: tuple[str, ...]) -> None:
        follower.hold(jobs)

    def sources_changed(sources: PacketSources) -> None:
        enforcement.set_sources(sources)
        # The first pod of a job makes tunnels' marks, and switches may believe them only then.
        sender.marks(enforcement.marking)

    def addressed() -> None:
        discovery.look_soon()

    def period() -> float:
        return sender.plan_period

    lights = _lights(options, notices, failed, period)
    sender = Sender(address, options.host, options.period, notices, failed, held=held)
    directory = JobsDirectory(options.jobs_dir, options.progress_dir, notices)
    book = PeerBook(address, options.host, notices, changed=addressed, failed=failed)
    names = [each.name for each in options.ordered]
    observer = Observer(options.host, book, notices, interfaces=names, changed=sender.note_interfaces)
    discovery = Discovery(
        options.host,
        book,
        sender,
        notices,
        sources_changed=sources_changed,
        failed=failed,
        is_marking=options.marking,
        watcher=observer,
    )
    receiver = sender if lights is None else Receivers(sender, lights)
    found = found_jobs(options, notices)
    follower = Follower(directory, receiver, notices, found=found, follow=discovery.follow, beat=beat)
    _stop_by_signal(follower.stop)
    ordered = [Ordered(each.name, each.rate_bps) for each in options.ordered]
    enforcement = Enforcement(
        Marker() if options.marking else None,
        Trees(ordered, notices) if ordered and lights is None else None,
        notices,
        marker_ipv6=Marker(IPV6) if options.marking else None,
        mark_sockets=discovery.mark,
    )
    plans = PlanFollower(
        address,
        options.host,
        enforcement,
        notices,
        count=sender.count_sent,
        marked=sender.marks,
        failed=failed,
        paused=lights.pause if lights is not None else _ignore,
        followed=JobFiles(options.environment_dir, notices).follow,
    )
    reconciler = Reconciler(enforcement, period=period, failed=failed, marked=sender.marks)
    # They stop from the last to the first. So bytes are counted once more before the sender reports all that is left.
    for last in (follower.close, sender.stop, book.stop, plans.stop, reconciler.stop, discovery.stop):
        ending.callback(last)
    if (announcing := _announcing(options, address, notices, failed)) is not None:
        ending.callback(announcing.stop)
        announcing.start()
    log.info("host %s reports to %s; job files in %s", options.host, options.controller, options.jobs_dir)
    if lights is not None:
        ending.callback(lights.stop)
        # The first plan says whether anything may be installed. Without any, bands do not need the controller.
        lights.hold(FIRST_PLAN_SECONDS)
        lights.start()
    sender.start()
    plans.start()
    reconciler.start()
    discovery.start()
    return follower


def _announcing(
    options: Options, address: Address, notices: Notices, failed: Callable[[Exception], None]
) -> Announcing | None:
    """Returns what announces a host that has enrolled; None where it has nothing to announce itself with."""
    secret = KeptSecret(options.state_dir, options.host).read() if options.enrol_token_file is not None else None
    if secret is None:
        return None
    facts = facts_of(address, [each.name for each in options.ordered], is_whole=False)
    return Announcing(options.host, secret, facts, notices, failed=failed)


def _lights(
    options: Options, notices: Notices, failed: Callable[[Exception], None], period: Callable[[], float]
) -> TensorLights | None:
    """Returns TensorLights where it orders the interface. ``period`` returns the seconds between two looks at it."""
    if options.nic == "plan":
        return None
    from host_reporter.nic.tensorlights.nic import TensorLightsNic  # noqa: PLC0415 - it loads pyroute2

    (interface,) = options.ordered
    assert interface.rate_bps is not None
    rotate_seconds = options.rotate_seconds if options.nic == "tls-rr" else None
    nic = TensorLightsNic(interface.name, interface.rate_bps, options.nic_bands)
    return TensorLights(nic, options.host, rotate_seconds, notices, failed, period=period)


def _stop_by_signal(stop: Callable[[], None]) -> None:
    """Make the first SIGTERM or SIGINT call ``stop``; later signals do nothing.

    SIGHUP only logs a line.
    """

    def first(_number: int, _frame: object) -> None:
        for number in (*_ENDS, signal.SIGHUP):
            # An ignored signal is ignored in the child processes too, which remove marks and classes.
            signal.signal(number, signal.SIG_IGN)
        stop()

    for number in _ENDS:
        signal.signal(number, first)
    # Under nohup SIGHUP is ignored already.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _hang_up)


def _hang_up(_number: int, _frame: object) -> None:
    log.warning("SIGHUP is ignored: the options are read at the start alone; restart the agent to read them again")


def _ignore(_is_paused: bool) -> None:
    """Do nothing: the plan orders the interface, or nothing does."""


def _described(error: Exception) -> str:
    """Returns a fault in one line, with the place where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


if __name__ == "__main__":
    sys.exit(main())
