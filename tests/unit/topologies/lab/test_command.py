"""What ``trainyard lab`` says of wrong input, before it starts anything."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli.main import main
from tests.support.fake_kernel import FakeKernel
from topologies.lab import command

JOB = {
    "id": "a", "arrival": 0.0, "architecture": "ps", "hosts": ["h1", "h2"], "port": 5000, "model": "m",
    "model_bytes": 1000, "compute_seconds": 0.1, "iterations": 10, "curve": "digits-linear-40",
}  # fmt: skip


def spec(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({"name": "x", "jobs": [JOB]} | changes, indent=1))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["lab", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"link_bps": -1}, ["spec.yaml:", "link_bps"]),
        ({"linkbps": 1}, ["spec.yaml:", "linkbps", "link_bps"]),
        ({"jobs": []}, ["spec.yaml:", "jobs"]),
        ({"processes": "thread"}, ["spec.yaml:", "processes", "'host' or 'job'"]),
        ({"jobs": [JOB | {"hosts": ["h1", "h99"]}]}, ["spec.yaml:", "h99"]),
        ({"jobs": [JOB | {"curve": "digits-linear-4"}]}, ["spec.yaml:", "curve", "did you mean digits-linear-4"]),
        ({"jobs": [JOB | {"curve": "digits-linear-40", "iterations": 9999}]}, ["spec.yaml:", "iterations, not 9999"]),
        ({"jobs": [JOB | {"curve": [0.5] * 9}]}, ["spec.yaml:", "jobs[0].curve: the curve has 9 iterations, not 10"]),
        ({"jobs": [JOB | {"curve": []}]}, ["spec.yaml:", "jobs[0].curve: is an empty list; it should have at least 1"]),
        (
            {"jobs": [JOB | {"curve": [0.5, "x"]}]},
            ["spec.yaml:", "jobs[0].curve[1]: is the text 'x'; it should be a valid number"],
        ),
        (
            {"jobs": [JOB | {"curve": 5}]},
            ["jobs[0].curve: is the number 5; it should be the name of a recorded curve or a list of its metric"],
        ),
        (
            {"earlier": [{"id": "e", "family": "f", "curve": "digits-linear-4", "iterations": 9}]},
            ["spec.yaml:", "earlier[0].curve: there is no curve 'digits-linear-4'; did you mean digits-linear-4"],
        ),
        (
            {"earlier": [{"id": "e", "family": "--", "curve": "digits-linear-40", "iterations": 9}]},
            ["spec.yaml:", "earlier[0].family: is the text '--'; the name of a family has a letter or a digit"],
        ),
        ({"jobs": [JOB | {"family": "a\nb"}]}, ["spec.yaml:", "jobs[0].family", "no control characters"]),
        ({"jobs": [JOB, JOB]}, ["spec.yaml:", "two jobs are called a"]),
        ({"topology": "ring"}, ["spec.yaml:", "topology", "'testbed' or 'leaf_spine'"]),
        ({"rails": 9}, ["spec.yaml:", ": rails: is the number 9; it should be less than or equal to 8"]),
        ({"addresses": "ipv5"}, ["spec.yaml:", ": addresses:", "'ipv4', 'ipv6' or 'both'"]),
        (
            {"topology": "leaf_spine", "hosts": 4, "rails": 2},
            ["spec.yaml:", ": rails: several rails are for topology: testbed; a leaf_spine has one"],
        ),
        ({"leaves": 2}, ["spec.yaml:", ": leaves: is for topology: leaf_spine; the testbed has one switch"]),
        ({"uplink_bps": 1e6}, ["spec.yaml:", ": uplink_bps: is for topology: leaf_spine"]),
        (
            {"topology": "leaf_spine", "hosts": 4, "leaves": 3},
            ["spec.yaml:", ": leaves: 4 hosts cannot be shared evenly by 3 leaves; hosts = leaves x hosts a leaf"],
        ),
        ({"topology": "leaf_spine"}, ["spec.yaml:", ": leaves: 13 hosts cannot be shared evenly by 2 leaves"]),
        ({"topology": "leaf_spine", "hosts": 4, "spines": 0}, ["spec.yaml:", ": spines: is the number 0"]),
        ({"topology": "leaf_spine", "hosts": 4, "uplink_bps": 1}, ["spec.yaml:", ": uplink_bps: is the number 1"]),
    ],
)
def test_a_wrong_experiment_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], wanted: list[str]
) -> None:
    status, out, err = run(capsys, "--policy", "fair", spec(tmp_path / "spec.yaml", **changes))
    assert status == 2
    assert out == ""
    assert all(part in err for part in wanted), err


@pytest.mark.parametrize(
    ("options", "topology", "wanted"),
    [
        (["--rails", "0"], "testbed", "--rails: is the number 0; it should be greater than or equal to 1"),
        (["--rails", "2"], "leaf_spine", "--rails: several rails are for topology: testbed"),
    ],
)
def test_an_option_that_does_not_fit_the_experiment_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], topology: str, wanted: str
) -> None:
    file = spec(tmp_path / "spec.yaml", topology=topology, hosts=4)
    status, out, err = run(capsys, "--policy", "fair", *options, file)
    assert (status, out) == (2, "")
    assert wanted in err
    assert len(err.splitlines()) == 1


def test_options_win_over_the_experiments_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kernel: FakeKernel
) -> None:
    out = tmp_path / "out"
    common = ["--datapath", "uml", "--policy", "fair", "--results", out]
    chosen = ["--addresses", "both", "--rails", "2"]
    status, shown, err = run(capsys, *common, *chosen, spec(tmp_path / "spec.yaml", addresses="ipv6"))
    assert status == 0, err
    assert "testbed of 13 hosts with 2 rails, IPv4 and IPv6" in shown


@pytest.mark.parametrize(("more", "identity"), [([], "flows"), (["--identity", "dscp"], "dscp")])
def test_all_arms_know_jobs_by_what_is_said(more: list[str], identity: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers())
    options = parser.parse_args(["lab", "spec.yaml", "--policy", "fair", "--policy", "jpas", *more])
    assert [(choice.policy, choice.identity) for choice in command.choices(options)] == [
        ("fair", identity),
        ("jpas", identity),
    ]


def test_an_unknown_policy_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--policy", "fairest", spec(tmp_path / "spec.yaml"))
    assert (status, out) == (2, "")
    assert "fairest" in err
    assert "fair" in err


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _out, err = run(capsys, "--policy", "fair", tmp_path / "none.yaml")
    assert status == 2
    assert "none.yaml" in err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("jobs: []\nname: !!bool foo\n", 2),
        ('name: x\nhosts: !!int ""\n', 2),
        ("name: x\n\nseed: !!timestamp foo\n", 3),
        ("name: x\njobs: " + "[" * 100_000, 2),
        ("name: x\njobs: [\n", 3),
    ],
)
def test_what_yaml_stumbles_over_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int
) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text)
    status, out, err = run(capsys, "--policy", "fair", file)
    assert (status, out) == (2, "")
    assert f"{file}:{line}: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("wrong", [["fair", "fair"], ["jpas", "fair", "jpas"]])
def test_a_policy_given_twice_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    policies = [word for policy in wrong for word in ("--policy", policy)]
    folder = tmp_path / "out"
    status, out, err = run(capsys, *policies, "--results", folder, spec(tmp_path / "spec.yaml"))
    assert (status, out) == (2, "")
    assert "two policies are called the same" in err
    assert not folder.exists()


def test_the_command_prints_one_json_document_and_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kernel: FakeKernel
) -> None:
    common = ["--datapath", "uml", "--policy", "fair", "--policy", "jpas", "--results", tmp_path / "out"]
    status, out, _err = run(capsys, *common, "--json", spec(tmp_path / "spec.yaml"))
    assert status == 0
    assert [arm["policy"] for arm in json.loads(out)["arms"]] == ["fair", "jpas"]
    status, out, _err = run(capsys, *common, spec(tmp_path / "spec.yaml"))
    assert status == 0
    assert "44.0" in out, "the mean t90 of fair sharing"
    kernel.order(fail=("out",))
    status, out, err = run(capsys, *common, "--json", spec(tmp_path / "spec.yaml"))
    assert (status, out) == (1, "")
    assert "lab: out went wrong" in err
