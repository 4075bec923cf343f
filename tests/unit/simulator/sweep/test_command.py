"""``trainyard sim`` from end to end: what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
import re
from argparse import ArgumentParser
from pathlib import Path

import pytest

from controller.cli.main import main
from controller.policies.registry import available
from simulator.sweep import request as sim_request
from simulator.sweep.command import add_options
from simulator.sweep.request import request

TRACE = "3 3\n1 0 1 0 1 1:10\n2 0 1 0 1 2:100\n3 500 2 0 1 1 2:0\n"
SMALL = ["--workload", "training-middle", "--hosts", "6", "--jobs", "2", "--iterations", "4", "--workers", "2"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    return path


def sim(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, stdout and stderr."""
    try:
        status = main(["sim", "--processes", "1", *map(str, arguments)])
    except SystemExit as stopped:  # argparse's way to refuse
        status = int(stopped.code or 0)
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_trace_as_json_is_one_document_and_nothing_else(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = sim(capsys, "--policy", "fifo", "--policy", "fair", "--trace", trace, "--json")
    assert (status, err) == (0, "")
    made = json.loads(out)
    assert set(made) == {"policies", "per_coflow"}
    assert list(made["policies"]) == ["fifo", "fair"]
    # Both leave the egress of 0: 10 MB and 100 MB of 2^20 bytes at 1 Gbit/s.
    mb = 2**20 * 8 / 1e9
    assert made["per_coflow"]["fifo"] == {
        "1": pytest.approx(10 * mb), "2": pytest.approx(110 * mb), "3": 0.0,
    }  # fmt: skip
    assert made["per_coflow"]["fair"] == {"1": pytest.approx(20 * mb), "2": pytest.approx(110 * mb), "3": 0.0}
    assert made["policies"]["fair"]["makespan_seconds"] == pytest.approx(110 * mb)
    assert made["policies"]["fair"]["mean_jct_seconds"] is None


def test_64_classes_keep_64_coflows_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "crowd.txt"
    path.write_text("2 64\n" + "".join(f"{n} {n} 1 0 1 1:{64 - n}\n" for n in range(64)))
    given = ("--policy", "fifo", "--trace", path, "--json")
    ideal, all_apart, seven = (
        json.loads(sim(capsys, *given, *more)[1])["per_coflow"]["fifo"]
        for more in ((), ("--classes", "64"), ("--classes", "7"))
    )
    assert all_apart == pytest.approx(ideal)
    # Who shares a class waits for others' bytes too.
    assert sum(seven.values()) > 1.02 * sum(ideal.values())


def test_a_trace_in_unix_times_has_the_same_ccts(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in TRACE.splitlines()]
    far = trace.with_name("far.txt")
    moved = (" ".join((word, str(1_700_000_000_000 + int(arrival)), *rest)) for word, arrival, *rest in lines[1:])
    far.write_text("\n".join((" ".join(lines[0]), *moved)))
    near, there = (
        json.loads(sim(capsys, "--policy", "sebf", "--trace", path, "--json")[1])["per_coflow"] for path in (trace, far)
    )
    assert near == there


def test_port_rate_offline_and_options_are_heeded(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--policy", "fifo", "--trace", trace, "--json")
    once = json.loads(sim(capsys, *given)[1])["per_coflow"]["fifo"]
    twice = json.loads(sim(capsys, *given, "--port-rate", "2e9", "--offline", "--exact")[1])["per_coflow"]["fifo"]
    assert twice == {name: pytest.approx(cct / 2) for name, cct in once.items()}
    assert sim(capsys, *given, "--ideal")[0] == 0
    assert sim(capsys, "--policy", "jpas", "--option", "jpas.variant=gain", *SMALL, "--json")[0] == 0


@pytest.mark.parametrize(
    ("given", "quanta"),
    [
        ((), [0.25, 0.25, 0.0]),
        (("--exact",), [0.0, 0.0, 0.0]),
        (("--quantum", "0.5"), [0.5, 0.5, 0.5]),
        (("--quantum", "0.5", "--offline"), [0.5, 0.5, 0.5]),
        (("--classes", "7"), [0.0, 0.0, 0.0]),
        (("--period", "5"), [0.0, 0.0, 0.0]),
        (("--delay", "1"), [0.0, 0.0, 0.0]),
        (("--rates", "madd"), [0.25, 0.0, 0.0]),
        (("--rates", "madd", "--exact"), [0.0, 0.0, 0.0]),
        (("--offline",), [0.0, 0.0, 0.0]),
        (("--port-rate", "1e10"), [0.0, 0.0, 0.0]),
        (("--port-rate", "1e9"), [0.25, 0.25, 0.0]),
        (("--option", "sincronia.online=true"), [0.25, 0.0, 0.0]),
    ],
)
def test_a_large_trace_is_coarse_only_where_it_is_measured_that_results_stay_the_same(
    given: tuple[str, ...], quanta: list[float], trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = ArgumentParser()
    add_options(parser)
    options = ("--policy", "sebf", "--policy", "sincronia", "--policy", "tensorlights-rr", "--trace", str(trace))
    small = request(parser.parse_args([*options, *given]))
    monkeypatch.setattr(sim_request, "MANY_FLOWS", 2)
    large = request(parser.parse_args([*options, *given]))
    assert [task.limits.quantum for task in large.tasks] == quanta
    asked = 0.5 if "--quantum" in given else 0.0
    assert {task.limits.quantum for task in small.tasks} == {asked}, "of few flows it is as exact as is asked for"


def test_a_workload_has_more_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--policy", "fair", "--policy", "fifo", *SMALL, "--seeds", "2", "--json")
    status, out, _ = sim(capsys, *given)
    assert status == 0
    made = json.loads(out)
    fifo = made["policies"]["fifo"]
    assert made["seeds"] == [1, 2]
    assert fifo["mean_jct_seconds"] > 0
    assert fifo["mean_t90_seconds"] > 0
    assert fifo["mean_sct_seconds"] is None
    assert fifo["measures"]["jct_seconds"]["count"] == 4
    assert fifo["measures"]["jct_seconds"]["mean_ci95"] is not None
    assert "jct_seconds" in fifo["versus_baseline"]
    again = json.loads(sim(capsys, *given)[1])
    for document in (made, again):
        for policy in document["policies"].values():
            del policy["wall_seconds"], policy["cpu_seconds"]
    assert made == again, "same seed, same bytes"


def test_a_sweep_under_jpas_says_the_same_bytes_from_one_process_as_from_two(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # JPAS remembers fits by job in the process, and the jobs of every seed have the same names.
    given = ("--policy", "jpas", *SMALL, "--iterations", "30", "--seeds", "3", "--load", "0.3,0.7", "--json")
    told = []
    for processes in (1, 2):
        status, out, err = sim(capsys, *given, "--processes", processes)
        assert (status, err) == (0, "")
        told.append(re.sub(r'"(wall|cpu)_seconds": [0-9.e-]+', "", out))
    assert told[0].encode() == told[1].encode()
    assert json.loads(out)["loads"]["0.7"]["policies"]["jpas"]["measures"]["t90_seconds"]["count"] > 0


def test_all_is_every_policy_and_fair_sharing_is_the_baseline(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = sim(capsys, "--policy", "all", "--trace", trace, "--json", "--detail")
    made = json.loads(out)
    assert (status, made["baseline"], set(made["policies"])) == (0, "fair", set(available()))
    status, _, err = sim(capsys, "--policy", "all", "--policy", "fair", "--trace", trace)
    assert status == 2
    assert "unknown policy 'all'" in err


def test_a_table_and_files(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, folder = tmp_path / "report.html", tmp_path / "deep" / "plots"
    status, out, err = sim(capsys, "--policy", "fair", "--trace", trace, "--html", page, "--plots", folder)
    assert (status, err) == (0, "")
    assert "CCT (s)" in out
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert {"cdf-cct.png", "means.png", "timeline-fair.png"} <= {path.name for path in folder.iterdir()}


def test_an_empty_trace_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.txt").write_text("5 0\n")
    status, out, _ = sim(capsys, "--policy", "fair", "--trace", tmp_path / "none.txt", "--json")
    assert status == 0
    assert json.loads(out)["policies"]["fair"]["coflows"] == 0


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], ["--policy"]),
        (["--policy", "fair"], ["--trace", "--workload"]),
        (["--policy", "fairest", "--trace", "TRACE"], ["fairest", "fair"]),
        (["--policy", "fair", "--policy", "fair", "--trace", "TRACE"], ["fair", "twice"]),
        (["--policy", "fair", "--trace", "TRACE", "--workload", "training-light"], ["not allowed with"]),
        (["--policy", "fair", "--trace", "none.txt"], ["none.txt", "cannot be read"]),
        (["--policy", "fair", "--trace", "BAD"], ["bad.txt:2: reducer 1 port:", "between 0 and 2"]),
        (["--policy", "fair", "--trace", "TRACE", "--port-rate", "0"], ["--port-rate", "from 0.001 to 1e+18"]),
        (["--policy", "fair", "--trace", "TRACE", "--port-rate", "nan"], ["--port-rate", "in bit/s"]),
        (["--policy", "fair", "--workload", "training-light", "--port-rate", "1e305"], ["--port-rate", "in bit/s"]),
        (["--policy", "fair", "--trace", "TRACE", "--quantum", "1e-20"], ["quantum", "at least 1e-06"]),
        (["--policy", "fair", "--workload", "tuning-halving", "--eta", "2", "--iterations", "2-100000"], ["reports"]),
        (["--policy", "fair", "--trace", "TRACE", "--port-rate", "fast"], ["--port-rate", "number"]),
        (["--policy", "fair", "--trace", "TRACE", "--classes", "0"], ["--classes", "from 1 to"]),
        (["--policy", "fair", "--trace", "TRACE", "--classes", "65"], ["--classes", "from 1 to 64"]),
        (["--policy", "fair", "--trace", "TRACE", "--period", "-1"], ["--period", "above 0"]),
        (["--policy", "fair", "--trace", "TRACE", "--delay", "-1"], ["--delay", "0 or more"]),
        (["--policy", "fair", "--trace", "TRACE", "--ideal", "--delay", "1"], ["--ideal", "--delay"]),
        (["--policy", "fair", "--trace", "TRACE", "--quantum", "inf"], ["--quantum", "above 0"]),
        (["--policy", "fair", "--trace", "TRACE", "--quantum", "1", "--exact"], ["not allowed with"]),
        (["--policy", "fair", "--trace", "TRACE", "--rates", "wfq"], ["--rates", "maxmin"]),
        (["--policy", "fair", "--trace", "TRACE", "--ideal", "--classes", "3"], ["--ideal", "--classes"]),
        (["--policy", "fair", "--trace", "TRACE", "--seeds", "3"], ["--seeds is for --workload"]),
        (["--policy", "fair", "--trace", "TRACE", "--load", "0.5"], ["--load is for --workload"]),
        (["--policy", "fair", "--trace", "TRACE", "--baseline", "fifo"], ["--baseline fifo"]),
        (["--policy", "jpas", "--trace", "TRACE", "--option", "jpas.variant=x"], ["jpas", "variant", "index"]),
        (["--policy", "jpas", "--trace", "TRACE", "--option", "jpas.colour=1"], ["jpas", "colour"]),
        (["--policy", "jpas", "--trace", "TRACE", "--option", "variant=gain"], ["POLICY.KEY=VALUE"]),
        (["--policy", "fair", "--trace", "TRACE", "--option", "jpas.variant=gain"], ["--policy jpas is not given"]),
        (
            ["--policy", "tensorlights-one", "--trace", "TRACE", "--option", "tensorlights-one.host=NOSUCH"],
            ["policy tensorlights-one: host: there is no host 'NOSUCH'; there are: 0, 1, 2"],
        ),
        (["--policy", "fair", "--trace", "TRACE", "--html", "FOLDER"], ["--html", "is a folder"]),
        (["--policy", "fair", "--trace", "TRACE", "--html", "FOLDER/none/x.html"], ["--html", "there is no folder"]),
        (["--policy", "fair", "--trace", "TRACE", "--plots", "TRACE"], ["--plots", "is a file"]),
        (["--policy", "fair", "--workload", "training-havy"], ["did you mean training-heavy?"]),
        (["--policy", "fair", "--workload", "x"], ["there are: training-light"]),
        (["--policy", "fair", *SMALL, "--load", "1.5"], ["--load", "at most 1"]),
        (["--policy", "fair", *SMALL, "--load", "1e-320"], ["--load", "at least 1e-06"]),
        (["--policy", "fair", *SMALL, "--seeds", "999999999"], ["--seeds", "from 1 to 10000"]),
        (["--policy", "fair", "--trace", "TRACE", "--hosts", "999999999"], ["--hosts", "from 1 to 1000000"]),
        (["--policy", "fair", "--trace", "TRACE", "--period", "1e-320"], ["period", "at least 0.001"]),
        (["--policy", "fair", "--trace", "BYTES"], ["bytes.txt:2: byte 7 of the file (0x", "no UTF-8 text"]),
        (["--policy", "fair", "--trace", "HUGE"], ["huge.txt:2: reducer 1 megabytes", "from 0 to 1e+15"]),
        (["--policy", "jpas", "--trace", "TRACE", "--option", "jpas.margin=" + "[" * 5000], ["jpas.margin", "deeply"]),
        (["--policy", "fair", "--trace", "TRACE", "--ray", "127.0.0.1:port"], ["--ray 127.0.0.1:port", "HOST:PORT"]),
        (["--policy", "fair", *SMALL, "--load", "0.5,0.5"], ["--load", "twice"]),
        (["--policy", "fair", *SMALL, "--hosts", "2"], ["hosts: 2", "at least 3"]),
        (["--policy", "fair", *SMALL, "--workers", "8-4"], ["--workers", "must not be above"]),
        (["--policy", "fair", *SMALL, "--seeds", "0"], ["--seeds", "from 1 to 10000"]),
        (["--policy", "fair", *SMALL, "--seeds", "3,3"], ["--seeds", "each once"]),
        (["--policy", "fair", *SMALL, "--seeds", "2", "--seed", "1"], ["not allowed with"]),
        (["--policy", "fair", *SMALL, "--sync", "ssp"], ["--sync", "ssp:S"]),
        (["--policy", "fair", *SMALL, "--sync", "asp", "--architecture", "ring"], ["sync", "parameter server"]),
        (["--policy", "fair", *SMALL, "--architecture", "star"], ["--architecture", "tree"]),
        (["--policy", "fair", *SMALL, "--eta", "3"], ["--eta is for tuning"]),
        (["--policy", "fair", "--workload", "tuning-asha", "--sync", "asp"], ["--sync is for training"]),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(
    arguments: list[str], wanted: list[str], trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.txt").write_text("3 1\n1 0 1 0 1 7:1\n")
    (tmp_path / "bytes.txt").write_bytes(b"3 1\n1 \xff 1 0 1 2:1\n")
    (tmp_path / "huge.txt").write_text("3 1\n1 0 1 0 1 2:1e308\n")
    before = sorted(tmp_path.rglob("*"))
    places = {"TRACE": str(trace)} | {name.upper(): str(tmp_path / f"{name}.txt") for name in ("bad", "bytes", "huge")}
    given = [places.get(word, word.replace("FOLDER", str(tmp_path))) for word in arguments]
    status, out, err = sim(capsys, *given)
    assert (status, out) == (2, "")
    assert "Traceback" not in err
    for part in wanted:
        assert part in err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_last_seed_and_load_are_checked_too(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = sim(capsys, "--policy", "fair", *SMALL, "--load", "0.2,0.9", "--seeds", "4,9", "--json")
    assert status == 0
    made = json.loads(out)
    assert list(made["loads"]) == ["0.2", "0.9"]
    assert made["loads"]["0.9"]["seeds"] == [4, 9]


def test_a_page_that_cannot_be_written_fails_without_stdout(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fdopen", full)
    status, out, err = sim(capsys, "--policy", "fair", "--trace", trace, "--html", tmp_path / "x.html", "--json")
    assert (status, out) == (1, "")
    assert "No space left" in err
    assert [path.name for path in tmp_path.iterdir()] == ["trace.txt"]
