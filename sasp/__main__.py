"""``python -m sasp``: the parameter server of one training job.

Workers call ``sasp.join`` with the same scheme. The exit status is 0 when all workers are done, 1 when a worker was
lost or did not come, and 2 for wrong input.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from sasp.core.defaults import SCHEME
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme, parse

MAX_WORKERS = 1024
DESCRIPTION = (
    "Serve the parameters of one training job. Workers call sasp.join with the same scheme. The exit status is 0 when "
    "all workers are done, 1 when a worker was lost or did not come, and 2 for wrong input."
)


def _scheme(text: str) -> Scheme:
    try:
        return parse(text)
    except SaspError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _endpoint(text: str) -> tuple[str, int]:
    address, _colon, port = text.rpartition(":")
    if not address or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r}; it must be ADDRESS:PORT, such as 10.0.0.1:29600")
    return address, int(port)


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_WORKERS):
        raise argparse.ArgumentTypeError(f"{text!r}; it must be a whole number from 1 to {MAX_WORKERS}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r}; it must be a number of seconds above 0 and at most 86400")
    return value


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(prog="python -m sasp", description=DESCRIPTION)
    options.add_argument(
        "--listen",
        type=_endpoint,
        default=("127.0.0.1", 29600),
        metavar="ADDRESS:PORT",
        help="where workers connect (127.0.0.1:29600)",
    )
    options.add_argument("--workers", type=_workers, required=True, metavar="N", help="number of workers of the job")
    options.add_argument(
        "--scheme",
        type=_scheme,
        default=SCHEME,
        help=f"bsp, ssp:S or asp, each with +overlap or +sasp; bsp and asp also with +sasp:S ({SCHEME})",
    )
    options.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the token that workers must send; required off loopback",
    )
    options.add_argument(
        "--patience", type=_seconds, default=60.0, metavar="S", help="seconds to wait for all workers (60)"
    )
    return options


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and serve; return the exit status."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s sasp: %(levelname)s %(message)s")
    try:
        token = "" if options.token_file is None else options.token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"--token-file {options.token_file}: {error}\n")
        return 2
    try:
        from sasp.server.server import serve  # noqa: PLC0415 (torch is loaded by who serves)
    except ImportError as error:
        sys.stderr.write(f"the parameter server needs PyTorch: {error}\n")
        return 2
    try:
        address, port = options.listen
        serve(
            address,
            port,
            options.workers,
            options.scheme,
            token=token,
            patience=options.patience,
            listening=lambda own: sys.stderr.write(f"listening on port {own}\n"),
        )
    except SaspError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
