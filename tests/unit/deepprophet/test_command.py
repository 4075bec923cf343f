"""``trainyard predict`` without PyTorch: its options, and that other commands do not pay for it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from importlib.util import find_spec

import pytest
from pydantic import ValidationError

from controller.model import Role
from controller.wire import DemandSpec, JobSpec, TaskSpec
from deepprophet import command
from deepprophet.predict import network
from deepprophet.predict.prediction import MAX_PAIRS, MAX_PROCESSES
from tests.support.paths import ROOT


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="trainyard")
    command.add_command(parser.add_subparsers(required=True))
    return parser.parse_args(["predict", *arguments])


def test_trainyard_has_it() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    commands = dict(
        line.split(" = ") for line in config["options.entry_points"]["trainyard.commands"].split("\n") if line
    )
    module, _, name = commands["predict"].partition(":")
    assert getattr(import_module(module), name) is command.add_command


def test_several_values() -> None:
    options = parse("m:f", "--batch-size", "16,32,16", "--dtype", "fp32,bf16", "--link-rate", "1e8,1e9", "--measure")
    assert options.batch_size == [16, 32]
    assert options.dtype == ["fp32", "bf16"]
    assert options.link_rate == [1e8, 1e9]
    assert options.measure == command.MEASURE_SECONDS


@pytest.mark.parametrize(
    "wrong",
    [
        ("--batch-size", "0"), ("--batch-size", "x"), ("--batch-size", "8,"), ("--dtype", "fp8"), ("--workers", "1.5"),
        ("--link-rate", "nan"), ("--link-rate", "1"), ("--latency", "-1"), ("--architecture", "star"),
        ("--optimizer", "magic"), ("--iterations", "0"), ("--threads", "-1"), ("--measure", "inf"),
    ],
)  # fmt: skip
def test_wrong_values_end_with_2(wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("m:f", *wrong)
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "inside", "allowed"),
    [
        ("--batch-size", ("1", "1000000"), "a whole number from 1 to 1000000"),
        ("--workers", ("1", "4095"), "a whole number from 1 to 4095"),
        ("--threads", ("1", "1024"), "a whole number from 1 to 1024"),
        ("--link-rate", ("1e3", "1e15"), "a rate in bit/s from 1e3 to 1e15"),
        ("--latency", ("0", "10"), "a number of seconds from 0 to 10"),
        ("--measure", ("0", "86400"), "a number of seconds from 0 to 86400"),
        ("--iterations", ("1e-9", "1e15"), "a number from 1e-9 to 1e15"),
    ],
)
def test_numbers_outside_their_range_are_told_the_range(
    option: str, inside: tuple[str, str], allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in inside:
        parse("m:f", option, value)
    beyond = [str(2 * float(inside[1])), str(2 * int(float(inside[1])))]
    for wrong in (*beyond, "-1", "nan", "inf", "", "9" * 5000):
        with pytest.raises(SystemExit) as ended:
            parse("m:f", f"{option}={wrong}")
        assert ended.value.code == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith(f"trainyard predict: error: argument {option}: ")
        assert allowed in said
        assert len(said) < 200


def test_what_the_options_allow_the_network_and_the_registration_take() -> None:
    most = network.uniform(command.MAX_WORKERS + 1, 1e15, 10.0)
    tasks = [TaskSpec(role=Role.WORKER, host=host.name) for host in most.hosts]
    assert len(JobSpec(tasks=tuple(tasks), iterations=1e15).tasks) == MAX_PROCESSES
    with pytest.raises(ValidationError):
        JobSpec(tasks=(*tasks, tasks[0]))
    pair = DemandSpec(src="a", dst="b", bytes=1.0)
    assert len(JobSpec(demand=(pair,) * MAX_PAIRS).demand) == MAX_PAIRS
    with pytest.raises(ValidationError):
        JobSpec(demand=(pair,) * (MAX_PAIRS + 1))


@pytest.mark.parametrize("arguments", [(), ("m:f", "--calibrate")])
def test_either_a_factory_or_a_calibration(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(*arguments)
    assert options.run(options) == 2
    assert capsys.readouterr().err == "predict: give MODULE:FACTORY, or --calibrate\n"


def test_other_commands_do_not_load_what_predicts() -> None:
    code = (
        "import sys, controller.cli.main, deepprophet.command as c;"
        "heavy = [n for n in sys.modules if n.partition('.')[0] in ('torch', 'matplotlib')"
        " or n == 'deepprophet.engine']; sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_pytorch_one_line_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # In the environment of the frameworks' tests PyTorch is there.
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "torch" else find_spec(name))
    options = parse("m:f")
    assert options.run(options) == 1
    assert capsys.readouterr().err == "predict: PyTorch is not installed in this environment: pip install torch\n"
