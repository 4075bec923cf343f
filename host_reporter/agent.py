"""``host-reporter``: the agent of a host. Wires its parts together, and takes everything away when it is stopped."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from host_reporter import progress_dir
from host_reporter.connection import Address, AddressError
from host_reporter.enforcement import Enforcement
from host_reporter.follower import Follower
from host_reporter.helper import DEFAULT_DIRECTORY
from host_reporter.iptables import Marker
from host_reporter.jobs_dir import JobsDirectory
from host_reporter.nic import Nic
from host_reporter.notices import Notices
from host_reporter.options import Options, OptionsError, read_options
from host_reporter.plan_follower import PlanFollower
from host_reporter.sender import Sender

FAILED, WRONG_INPUT = 1, 2
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
log = logging.getLogger("host_reporter")

SWITCH_SECONDS = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, SIGHUP or Ctrl-C. 0: stopped; 1: a fault of the agent's own; 2: wrong options."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        options = read_options(sys.argv[1:] if arguments is None else arguments, dict(os.environ))
        address = Address(options.controller, options.token_file, options.ca_file)
    except (OptionsError, AddressError) as error:
        sys.stderr.write(f"host-reporter: {error}\n")
        return WRONG_INPUT
    faults: list[str] = []
    try:
        _run(options, address, faults)
    except Exception as error:
        faults.append(_described(error))
    if faults:
        sys.stderr.write(f"host-reporter: stopped by a fault of its own: {faults[0]}\n")
        return FAILED
    return 0


def _run(options: Options, address: Address, faults: list[str]) -> None:
    """Run until stopped. A thread that fails ends all, and leaves a line in ``faults``."""
    # An agent has threads that mostly wait, and its host better things to do than to switch between them.
    sys.setswitchinterval(SWITCH_SECONDS)
    notices = Notices(log)
    if address.is_open:
        log.warning("the token crosses the network unencrypted: give the controller a certificate, and use https")
    if address.token_is_public():
        log.warning("others can read %s: make it readable by its owner only", options.token_file)
    trouble = progress_dir.prepare(options.progress_dir, is_ours=options.progress_dir == Path(DEFAULT_DIRECTORY))
    if trouble is not None:
        log.warning("%s", trouble)

    def failed(error: Exception) -> None:
        faults.append(_described(error))
        follower.stop()

    def held(jobs: tuple[str, ...]) -> None:
        follower.hold(jobs)

    sender = Sender(address, options.host, options.period, notices, failed, held=held)
    directory = JobsDirectory(options.jobs_dir, options.progress_dir, notices)
    follower = Follower(directory, sender, notices)
    nic = Nic(options.interface, options.rate_bps) if options.interface is not None else None
    enforcement = Enforcement(Marker() if options.marking else None, nic, notices)
    plans = PlanFollower(address, options.host, enforcement, notices, count=sender.count_sent, failed=failed)
    with ExitStack() as ending:
        # In the end all of it, in the opposite order, whatever fails on the way.
        ending.callback(log.info, "stopped")
        ending.callback(follower.close)
        ending.callback(plans.stop)
        ending.callback(sender.stop)
        _stop_by_signal(follower.stop)
        log.info("host %s reports to %s; job files in %s", options.host, options.controller, options.jobs_dir)
        sender.start()
        plans.start()
        follower.run()


def _stop_by_signal(stop: Callable[[], None]) -> None:
    """Have the first signal that ends a process call ``stop``, and the others do nothing: the end is under way."""

    def first(_number: int, _frame: object) -> None:
        for number in _ENDS:
            # Ignored, not handled: it is ignored in the tools too that take marks and classes away.
            signal.signal(number, signal.SIG_IGN)
        stop()

    for number in _ENDS:
        # Who runs it under nohup wants it to outlive the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, first)


def _described(error: Exception) -> str:
    """A fault in one line, with the place where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


if __name__ == "__main__":
    sys.exit(main())
