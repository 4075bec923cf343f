"""``trainyard sim --events`` from end to end: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli.main import main
from controller.policies.registry import make
from simulator.engine import simulate
from simulator.limits import Limits
from simulator.workloads.training import Training, generate
from tests.support.simulator.recordings import as_text, documents, recorded

MIX = Training(hosts=6, jobs=3, load=0.7, workers=(2, 3), iterations=(30, 40))


@pytest.fixture(scope="module")
def text() -> str:
    workload = generate(MIX)
    return recorded(workload, simulate(workload, make("las", {}), Limits(classes=7, period=1.0)))


@pytest.fixture
def file(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    return path


def sim(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Returns exit status, stdout and stderr."""
    try:
        status = main(["sim", "--processes", "1", *map(str, arguments)])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    told = capsys.readouterr()
    return status, told.out, told.err


def test_the_recorded_policy_is_simulated_beside_the_other_and_the_error_is_shown(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = sim(capsys, "--events", file, "--policy", "fair", "--policy", "sebf")
    assert status == 0
    assert out.startswith(f"{file}: ") and " s under las, 3 of 3 jobs" in out
    assert "saved to las" in out
    assert "the estimate's error: las as simulated against as observed" in out
    assert "JCT (s) by job" in out
    assert "- the controller has 7 classes, and a plan each 1 s and at each arrival and end" in out
    assert "left out" not in out


def test_the_document_has_the_error_and_each_job(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = sim(capsys, "--events", file, "--policy", "fair", "--json")
    assert (status, err) == (0, "")
    made = json.loads(out)
    assert list(made["policies"]) == ["las", "fair"]
    assert made["baseline"] == "las"
    told = made["recording"]
    assert (told["policy"], told["left_out"]) == ("las", {})
    error = told["error"]["jct_seconds"]
    assert error["simulated"] == pytest.approx(made["policies"]["las"]["mean_jct_seconds"])
    assert error["observed"] == pytest.approx(told["observed"]["mean_jct_seconds"])
    assert error["difference"] == pytest.approx(error["simulated"] / error["observed"] - 1)
    assert abs(error["difference"]) < 0.25 and error["jobs"] == 3
    assert told["observed"]["mean_t90_seconds"] > 0
    workload = {job.id: job for job in generate(MIX).jobs}
    assert set(told["jobs"]) == set(workload)
    for name, job in told["jobs"].items():
        assert job["iterations"] == workload[name].iterations and job["whole"]
        assert set(job["simulated"]) == {"las", "fair"}


def changed(text: str, **changes: Any) -> str:
    """Returns a recording in which the events of a kind are replaced (a function of their data), or gone (None)."""
    events = []
    for event in documents(text):
        change = changes.get(event["event"], lambda data: data)
        if change is not None:
            events.append(event | {"data": change(event["data"])})
    return as_text(events)


def test_a_terminal_shows_how_far_the_fit_is(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    monkeypatch.setenv("COLUMNS", "200")
    status, _, err = sim(capsys, "--events", file, "--policy", "fair", "--json")
    assert status == 0
    shown = [line for line in err.splitlines() if "fit to the recording" in line]
    assert shown and "100%" in shown[-1]


def test_what_is_missing_is_assumed_and_said(text: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = generate(MIX).jobs[0].id

    def nameless(data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in data.items() if key != "description"} if data["id"] == first else data

    file.write_text(changed(text, host=None, settings=None, job=nameless))
    status, out, _ = sim(capsys, "--events", file, "--policy", "fair", "--json", "--port-rate", "1e9")
    assert status == 0
    told = json.loads(out)["recording"]
    assert told["left_out"] == {
        first: "the recording does not say what it is, because it was registered before and nothing has changed since"
    }
    assert any("have 1e+09 bit/s, which the recording does not say" in sentence for sentence in told["assumed"])
    assert "the controller has 7 classes, and a plan each 5 s and at each arrival and end" in told["assumed"]


def test_an_observing_controller_left_the_network_fair(
    text: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(changed(text, settings=lambda data: data | {"enforce": []}))
    out = sim(capsys, "--events", file, "--policy", "las", "--json")[1]
    made = json.loads(out)
    assert (made["recording"]["policy"], list(made["policies"])) == ("fair", ["fair", "las"])


def test_a_policy_that_cannot_be_simulated_leaves_the_error_unknown(
    text: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(changed(text, plan=lambda data: data | {"policy": "of-another-package"}))
    status, out, _ = sim(capsys, "--events", file, "--policy", "fair", "--json")
    told = json.loads(out)["recording"]
    assert (status, told["error"]) == (0, {})
    assert any("of-another-package could not be simulated" in sentence for sentence in told["assumed"])
    named = json.loads(sim(capsys, "--events", file, "--policy", "fair", "--followed", "las", "--json")[1])
    assert list(named["policies"]) == ["las", "fair"]
    assert named["recording"]["error"]


def test_the_limits_may_be_others_than_those_recorded(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def limits(*more: str) -> str:
        told = json.loads(sim(capsys, "--events", file, "--policy", "fair", "--json", *more)[1])["recording"]
        return next(sentence for sentence in told["assumed"] if "class" in sentence)

    assert limits("--ideal") == "each rank of a policy is a class, and control is instant"
    assert limits("--classes", "2", "--period", "3").startswith("the controller has 2 classes, and a plan each 3 s")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--offline",), "--offline is not for --events"),
        (("--hosts", "3"), "--hosts is for --workload; a recording says that itself"),
        (("--seed", "3"), "--seed is for --workload"),
        (("--followed", "nobody", "--baseline", "nobody"), "--baseline nobody"),
    ],
)
def test_what_does_not_fit_a_recording_is_refused(
    more: tuple[str, ...], said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = sim(capsys, "--events", file, "--policy", "fair", *more)
    assert (status, out) == (2, "")
    assert said in err


def test_a_recording_without_a_plan_or_without_jobs_is_refused(
    text: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(changed(text, plan=None))
    status, _, err = sim(capsys, "--events", file, "--policy", "fair")
    assert status == 2 and "it has no plan, so nobody knows what the network followed; use --followed" in err
    assert sim(capsys, "--events", file, "--policy", "fair", "--followed", "las")[0] == 0
    file.write_text(changed(text, job=None))
    status, _, err = sim(capsys, "--events", file, "--policy", "fair")
    assert status == 2 and "no job of the recording can be simulated: there is none" in err
    status, _, err = sim(capsys, "--trace", "x", "--policy", "fair", "--followed", "las")
    assert status == 2 and "--followed is for --events" in err


def test_a_report_and_plots_are_written(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--events", file, "--policy", "fair", "--html", tmp_path / "r.html", "--plots", tmp_path / "plots")
    assert sim(capsys, *given)[0] == 0
    assert "las" in (tmp_path / "r.html").read_text()
    assert list((tmp_path / "plots").glob("*.png"))
