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
MAX_WORKERS = 4095
"""A prediction takes at most so many workers: with one parameter server they are all that a registration can name."""

MAX_THREADS = 1024
"""A worker has at most so many threads: a runtime that cannot start more ends the program."""


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
        "factory", nargs="?", metavar="MODULE:FACTORY",
        help="a function that returns the model and an example batch; or transformers:NAME, a type of model of the "
        "library transformers, one with a size (transformers:vit-tiny), or a config.json",
    )  # fmt: skip
    parser.add_argument("--calibrate", action="store_true", help="measure this device, once, instead of predicting")
    parser.add_argument("--quick", action="store_true", help="with --calibrate: one model a kind; wide intervals")
    parser.add_argument(
        "--anew",
        action="store_true",
        help="with --calibrate: begin again, without the measurements that an earlier one has kept",
    )
    what = parser.add_argument_group("what if")
    what.add_argument(
        "--batch-size",
        type=_several(_whole()),
        metavar="N[,N...]",
        help="batch size of a worker (that of the example batch)",
    )
    what.add_argument(
        "--length",
        type=_whole(),
        metavar="N",
        help="tokens of an example of transformers:NAME (128, or as many as it takes)",
    )
    what.add_argument(
        "--dtype",
        type=_several(_choice(*TYPES)),
        default=["fp32"],
        metavar="T[,T...]",
        help="data type: fp32 or bf16 (fp32)",
    )
    what.add_argument(
        "--workers", type=_several(_whole(MAX_WORKERS)), default=[1], metavar="N[,N...]",
        help=f"number of workers, at most {MAX_WORKERS} (1)",
    )  # fmt: skip
    what.add_argument(
        "--architecture", type=_several(_choice("ring", "ps")), default=["ring"], metavar="A[,A...]",
        help="ring: all-reduce in a ring; ps: parameter servers (ring)",
    )  # fmt: skip
    what.add_argument(
        "--link-rate",
        type=_several(_rate),
        metavar="BPS[,BPS...]",
        help="rate of every link in bit/s (1e9, or that of --network)",
    )
    what.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="optimiser of the training (sgd)")
    what.add_argument(
        "--mapping", type=Path, metavar="FILE",
        help="YAML file with how the model is spread: accumulate, checkpoint, fsdp, tensor, pipeline",
    )  # fmt: skip
    where = parser.add_argument_group("where it runs")
    where.add_argument(
        "--network", type=Path, metavar="FILE", help="YAML file with hosts, rates, latency and other jobs' load"
    )
    where.add_argument(
        "--latency",
        type=_latency,
        default=None,
        metavar="S",
        help="latency of a message in seconds (50e-6, or that of --network)",
    )
    where.add_argument("--device", default="cpu", metavar="D", help="cpu or cuda (cpu)")
    where.add_argument(
        "--threads", type=_whole(MAX_THREADS), default=1, metavar="N", help="threads of one worker on a CPU (1)"
    )
    where.add_argument(
        "--calibration", type=Path, metavar="FILE", help="use this calibration instead of that of this device"
    )
    where.add_argument(
        "--device-sheet", type=Path, metavar="FILE",
        help="YAML file with the numbers of a device that is not at hand: peak, memory, cost of a call",
    )  # fmt: skip
    where.add_argument(
        "--measure", type=_seconds, nargs="?", const=MEASURE_SECONDS, metavar="S",
        help="measure operators that the calibration has not seen for at most S seconds, and keep the measurements "
        f"({MEASURE_SECONDS:g}); 0: measure nothing. Without this option a few calls of each are measured while the "
        f"whole command takes less than {WHOLE_SECONDS:g} s, and nothing is kept",
    )  # fmt: skip
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one JSON document on stdout")
    output.add_argument("--timeline", type=Path, metavar="FILE", help="a picture of the iteration (.png, .svg, .pdf)")
    output.add_argument(
        "--registration", type=Path, metavar="FILE", help="write the job's registration (the body of PUT /v1/jobs/ID)"
    )
    output.add_argument(
        "--iterations", type=_positive, metavar="N", help="iterations of the whole run, for the registration"
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


def _several(convert: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def values(text: str) -> list[Any]:
        return list(dict.fromkeys(convert(part.strip()) for part in text.split(",")))

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
