"""``trainyard predict``: the options. What does the work is loaded by who predicts only: PyTorch takes seconds.

Exit status: 0 done, 1 failed, 2 wrong input.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deepprophet.choices import TYPES, WHOLE_SECONDS

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "none")
MEASURE_SECONDS = 60.0
MOST_WORKERS = 4095
"""With a parameter server beside them they are all the processes that a job's registration can name."""

MOST_THREADS = 1024
"""More would not be computing side by side on any machine, and a runtime that cannot start them ends the program."""


def add_command(commands: Any) -> None:
    """Add ``predict`` to ``trainyard``'s subcommands (argparse's subparsers)."""
    parser = commands.add_parser(
        "predict",
        help="the time of a training iteration, before it runs (DeepProphet)",
        description="Predict a training iteration. FACTORY returns (model, example batch) or (model, batch, loss).",
        epilog="Options that take several values, as 16,32,64, give a prediction for each combination.",
    )
    add_options(parser)
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.add_argument(
        "factory", nargs="?", metavar="MODULE:FACTORY", help="the function that makes the model and an example batch"
    )
    parser.add_argument("--calibrate", action="store_true", help="measure this device, once, instead of predicting")
    parser.add_argument(
        "--quick", action="store_true", help="with --calibrate: measure one model of each kind; the intervals are wide"
    )
    parser.add_argument(
        "--anew", action="store_true", help="with --calibrate: begin again, whatever an earlier one has kept"
    )
    what = parser.add_argument_group("what if")
    what.add_argument(
        "--batch-size",
        type=_several(_whole()),
        metavar="N[,N...]",
        help="the batch of one worker (default: the example batch)",
    )
    what.add_argument(
        "--dtype",
        type=_several(_choice(*TYPES)),
        default=["fp32"],
        metavar="T[,T...]",
        help="the type of numbers: fp32 or bf16 (fp32)",
    )
    what.add_argument(
        "--workers", type=_several(_whole(MOST_WORKERS)), default=[1], metavar="N[,N...]",
        help=f"how many workers, at most {MOST_WORKERS} (1)",
    )  # fmt: skip
    what.add_argument(
        "--architecture", type=_several(_choice("ring", "ps")), default=["ring"], metavar="A[,A...]",
        help="how workers exchange gradients: ring (all-reduce) or ps (parameter servers) (ring)",
    )  # fmt: skip
    what.add_argument(
        "--link-rate",
        type=_several(_rate),
        metavar="BPS[,BPS...]",
        help="the rate of every link, bit/s (1e9, or that of --network)",
    )
    what.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="the optimizer of the training (sgd)")
    where = parser.add_argument_group("where it runs")
    where.add_argument(
        "--network", type=Path, metavar="FILE", help="a YAML file with hosts, rates, latency and the load of other jobs"
    )
    where.add_argument(
        "--latency",
        type=_latency,
        default=None,
        metavar="S",
        help="the latency of a message in seconds (50e-6, or that of --network)",
    )
    where.add_argument("--device", default="cpu", metavar="D", help="the device that trains: cpu or cuda (cpu)")
    where.add_argument(
        "--threads", type=_whole(MOST_THREADS), default=1, metavar="N", help="the threads of one worker on a CPU (1)"
    )
    where.add_argument(
        "--calibration", type=Path, metavar="FILE", help="a calibration to use instead of this device's own"
    )
    where.add_argument(
        "--measure", type=_seconds, nargs="?", const=MEASURE_SECONDS, metavar="S",
        help="measure operators that the calibration has not seen, and keep what was found, for at most S seconds "
        f"({MEASURE_SECONDS:g}); 0: none. Without it a few calls are measured each, for as long as all takes under "
        f"{WHOLE_SECONDS:g} s, and not kept",
    )  # fmt: skip
    told = parser.add_argument_group("output")
    told.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    told.add_argument(
        "--timeline", type=Path, metavar="FILE", help="draw the iteration into this file (.png, .svg, .pdf)"
    )
    told.add_argument(
        "--registration", type=Path, metavar="FILE", help="write the registration for the controller (PUT /v1/jobs/ID)"
    )
    told.add_argument(
        "--iterations", type=_positive, metavar="N", help="the iterations of the whole run, for the registration"
    )


def run(options: argparse.Namespace) -> int:
    """The command: 0 done, 1 failed, 2 wrong input."""
    began = time.perf_counter()
    if options.calibrate == (options.factory is not None):
        return _fail("give MODULE:FACTORY, or --calibrate", WRONG_INPUT)
    if find_spec("torch") is None:
        return _fail("PyTorch is not installed in this environment: pip install torch", FAILED)
    try:
        return _calibrate(options) if options.calibrate else _predict(options, began)
    except BrokenPipeError:
        raise  # whoever reads has seen enough: the command's own end
    except OSError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped", INTERRUPTED)


def _calibrate(options: argparse.Namespace) -> int:
    from deepprophet.device import calibration_run
    from deepprophet.errors import InputError, ProphetError

    try:
        return calibration_run.calibrate_device(options)
    except InputError as error:
        return _fail(str(error), WRONG_INPUT)
    except ProphetError as error:
        return _fail(str(error), FAILED)


def _predict(options: argparse.Namespace, began: float) -> int:
    from deepprophet import factory_process
    from deepprophet.factory_main import as_json

    answer = factory_process.run(as_json(options), began)
    if answer.problem:
        return _fail(answer.problem, answer.status)
    if sys.stdout is not None:
        sys.stdout.write(answer.out)
        sys.stdout.flush()
    return answer.status


def _fail(message: str, status: int) -> int:
    lines = (message or "failed").splitlines()
    clean = ("".join(char if char.isprintable() else "?" for char in line) for line in lines)
    sys.stderr.write("".join(f"predict: {line}\n" for line in clean))
    return status


def _several(one: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def values(text: str) -> list[Any]:
        return list(dict.fromkeys(one(part.strip()) for part in text.split(",")))

    return values


def _whole(most: int = 1_000_000) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = 0
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(f"{_short(text)} is not a whole number from 1 to {most}")
        return value

    return number


def _number(text: str, least: float, most: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{_short(text)} is not {what}")
    return value


def _rate(text: str) -> float:
    return _number(text, 1e3, 1e15, "a rate in bit/s from 1e3 to 1e15, such as 1e9")


def _seconds(text: str) -> float:
    return _number(text, 0.0, 86_400.0, "a number of seconds from 0 to 86400")


def _latency(text: str) -> float:
    return _number(text, 0.0, 10.0, "a number of seconds from 0 to 10")


def _positive(text: str) -> float:
    return _number(text, 1e-9, 1e15, "a number from 1e-9 to 1e15")


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _choice(*names: str) -> Callable[[str], str]:
    def name(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{_short(text)} is none of {', '.join(names)}")
        return text

    return name
