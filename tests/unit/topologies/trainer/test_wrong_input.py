"""Experiments and options that a trainer refuses, with what would be right."""

from __future__ import annotations

import json
import sys
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from tests.support.trainer.processes import job
from topologies.trainer.__main__ import load_experiment, main
from topologies.trainer.calls import Calls
from topologies.trainer.runner import InputError, Options, tasks
from topologies.trainer.start import Start


def refusal(folder: Path, plan: dict[str, object], host: str = "h1", only: str | None = None) -> str:
    file = folder / "experiment.json"
    file.write_text(json.dumps({"name": "test", "hosts": 4, "jobs": [plan]}))
    with pytest.raises(InputError) as refused:
        options = Options(load_experiment(file), host, 0.0, folder, (IPv4Address("127.0.0.0"),), only)
        tasks(options, Start(), Calls(folder))
    return str(refused.value)


def test_wrong_input_says_what_would_be_right(tmp_path):
    good = job("a", "ps", ("h1", "h2"))
    assert "no curve called '../x'" in refusal(tmp_path, good | {"curve": "../x"})
    assert "experiment.json:1: jobs[0].port" in refusal(tmp_path, good | {"port": 0})
    assert "h1..h4" in refusal(tmp_path, good, host="h9")
    assert "no job z; the experiment has a" in refusal(tmp_path, good, only="z")
    with pytest.raises(InputError, match=r"absent\.json: cannot be read"):
        load_experiment(tmp_path / "absent.json")


def test_wrong_input_ends_with_status_2_and_one_line(lab):
    run = lab([job("a", "ps", ("h1", "h2"))])
    run.start("h9")
    status, output = run.wait("h9")
    assert (status, output.count("\n")) == (2, 1)
    assert not run.folder.exists()


def command(monkeypatch: pytest.MonkeyPatch, file: Path, *options: str) -> int:
    """The trainer's command line, in this process; for what ends before anything starts."""
    words = ["trainer", "--experiment", str(file), "--host", "h1", "--dir", str(file.parent / "run"), *options]
    monkeypatch.setattr(sys, "argv", words)
    interval = sys.getswitchinterval()
    try:
        return main()
    finally:
        # The trainer sets it for its own threads, not for a test run's.
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("jobs: []\nname: !!bool foo\n", 2),
        ('name: x\nhosts: !!int ""\n', 2),
        ("name: x\n\nseed: !!timestamp foo\n", 3),
        ("name: x\njobs: " + "[" * 100_000, 2),
        ("[" * 100_000, 1),
        ("name: x\njobs: [\n", 3),
        ('{\n"name": "x",\n"jobs": 3}', 3),
        ("", 1),
    ],
)
def test_an_experiment_that_cannot_be_read_is_told_with_its_line(
    tmp_path, monkeypatch, capsys, suffix: str, text: str, line: int
):
    file = tmp_path / f"experiment.{suffix}"
    file.write_text(text)
    assert command(monkeypatch, file) == 2
    assert f"{file}:{line}: " in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_experiment_in_yaml_is_the_same_as_in_json(tmp_path):
    document = {"name": "test", "hosts": 4, "jobs": [job("a", "ps", ("h1", "h2"))]}
    for name in ("plan.json", "plan.yaml"):
        (tmp_path / name).write_text(json.dumps(document, indent=1))
    assert load_experiment(tmp_path / "plan.json") == load_experiment(tmp_path / "plan.yaml")


@pytest.mark.parametrize(
    "options",
    [
        ("--start", "inf"), ("--start", "nan"), ("--start", "-1"), ("--start", "1e300"), ("--start", "soon"),
        ("--connect-seconds", "inf"), ("--connect-seconds", "nan"), ("--connect-seconds", "-1"),
        ("--iterations-cap", "0"), ("--address-base", "10.0.0"),
    ],
)  # fmt: skip
def test_an_option_out_of_its_range_ends_with_status_2(tmp_path, monkeypatch, capsys, options: tuple[str, str]):
    file = tmp_path / "experiment.json"
    file.write_text(json.dumps({"name": "test", "hosts": 4, "jobs": [job("a", "ps", ("h1", "h2"))]}))
    with pytest.raises(SystemExit) as ended:
        command(monkeypatch, file, *options)
    assert ended.value.code == 2
    assert f"argument {options[0]}: " in capsys.readouterr().err
