"""``host-reporter``: the agent of a host. Wires its parts together, and takes everything away when it is stopped."""

from __future__ import annotations

import logging
import os
import signal
import stat
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from host_reporter.connection import Address, AddressError
from host_reporter.enforcement import Enforcement
from host_reporter.follower import Follower
from host_reporter.iptables import Marker
from host_reporter.jobs_dir import JobsDirectory
from host_reporter.nic import Nic
from host_reporter.notices import Notices
from host_reporter.options import Options, OptionsError, read_options
from host_reporter.plan_follower import PlanFollower
from host_reporter.sender import Sender

FAILED, WRONG_INPUT = 1, 2
log = logging.getLogger("host_reporter")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or Ctrl-C. 0: stopped; 1: a fault of the agent's own; 2: wrong options."""
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
    notices = Notices(log)
    if address.is_open:
        log.warning("the token crosses the network unencrypted: give the controller a certificate, and use https")
    if address.token_is_public():
        log.warning("others can read %s: make it readable by its owner only", options.token_file)
    _make_progress_dir(options.progress_dir)

    def failed(error: Exception) -> None:
        faults.append(_described(error))
        follower.stop()

    sender = Sender(address, options.host, options.period, notices, failed)
    directory = JobsDirectory(options.jobs_dir, options.progress_dir, notices)
    follower = Follower(directory, sender, notices)
    nic = Nic(options.interface, options.rate_bps) if options.interface is not None else None
    enforcement = Enforcement(Marker() if options.marking else None, nic, notices)
    plans = PlanFollower(address, options.host, enforcement, notices, count=sender.count_sent, failed=failed)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: follower.stop())
    log.info("host %s reports to %s; job files in %s", options.host, options.controller, options.jobs_dir)
    sender.start()
    plans.start()
    try:
        follower.run()
    finally:
        sender.stop()
        plans.stop()
        log.info("stopped")


def _described(error: Exception) -> str:
    """A fault in one line, with the place where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


def _make_progress_dir(path: Path) -> None:
    """The folder of the two-line helper, where any user's training may write, as in /tmp; only root makes it."""
    if os.geteuid() != 0 or path.exists():
        return
    try:
        path.mkdir(parents=True)
        path.chmod(stat.S_ISVTX | 0o777)
    except OSError as error:
        log.warning("the folder %s for progress files cannot be made: %s", path, error.strerror)


if __name__ == "__main__":
    sys.exit(main())
