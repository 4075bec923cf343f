"""``trainyard order``: the answer, its options, and wrong usage."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from controller.cli.main import main
from controller.cli.ordering.snapshot_file import read_snapshot
from controller.policies.registry import available
from tests.support.controller.cli.snapshots import WHOLE, job, snapshot, write


def test_the_answer_has_what_the_design_says_and_nothing_else(run: Any, tmp_path: Path) -> None:
    status, out, err = run("--policy", "sincronia", write(tmp_path, WHOLE), "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert list(answer) == [
        "policy",
        "order",
        "classes",
        "reasons",
        "objective_seconds",
        "lower_bound_seconds",
        "wall_seconds",
    ]
    assert (answer["policy"], answer["order"], answer["classes"]) == ("sincronia", [["a"]], {"a": 0})
    # 10 iterations of 1 MB at 1 Gbit/s.
    assert answer["objective_seconds"] == pytest.approx(0.08)
    assert answer["lower_bound_seconds"] == pytest.approx(0.08)
    assert answer["wall_seconds"] > 0


@pytest.mark.parametrize("policy", sorted(available()))
def test_every_policy_orders_a_file_and_never_below_the_bound(policy: str, run: Any, tmp_path: Path) -> None:
    points = [{"iteration": k, "time": float(k), "metric": 1 - 1 / k} for k in range(1, 9)]
    document = snapshot(
        job("a", ("h1", "h2", 5e6), ("h1", "h3", 5e6), iterations_left=20, progress=points, compute_seconds=0.2),
        job("b", ("h2", "h3", 9e6), arrival=-3.0, weight=2.5, stage="s"),
        job("c", ("h1", "h2", 1e6), ("h1", "h4", 1e6), arrival=1.0, stage="s", rungs_left=2, iterations_left=0.5),
        job("d"),
        now=10.0,
    )
    status, out, _ = run("--policy", policy, write(tmp_path, document), "--json")
    assert status == 0
    answer = json.loads(out)
    assert sorted(job for band in answer["order"] for job in band) == ["a", "b", "c", "d"]
    assert sorted(answer["classes"]) == sorted(answer["reasons"]) == ["a", "b", "c", "d"]
    assert answer["objective_seconds"] >= answer["lower_bound_seconds"] * (1 - 1e-9) > 0


def test_defaults(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path, '{"hosts": [], "jobs": []}')
    made = read_snapshot(path)
    assert (made.now, made.classes, made.hosts, made.jobs) == (0.0, 7, {}, ())
    _, out, _ = run("--policy", "jpas", path, "--json")
    answer = json.loads(out)
    assert (answer["order"], answer["objective_seconds"], answer["lower_bound_seconds"]) == ([], 0.0, 0.0)
    made = read_snapshot(write(tmp_path, {"hosts": [{"name": "x"}], "jobs": [job("a", stage=None)]}))
    one = made.jobs[0]
    assert (one.arrival, one.weight, one.stage, one.iterations_left) == (0.0, 1.0, None, 1.0)
    assert one.rungs_left is None
    assert (one.compute_seconds, one.progress, one.iterations_total, one.metric.name) == (0.0, (), None, "accuracy")
    assert (made.hosts["x"].ingress_bps, made.hosts["x"].egress_bps) == (1e9, 1e9)


def test_a_job_may_declare_a_target_and_have_diverged(run: Any, tmp_path: Path) -> None:
    jobs = job("a", target=0.9, diverged=True), job("b")
    aimed, plain = read_snapshot(write(tmp_path, snapshot(*jobs))).jobs
    assert (aimed.target, aimed.diverged) == (0.9, True)
    assert (plain.target, plain.diverged) == (None, False)
    status, _, err = run("--policy", "jpas", write(tmp_path, snapshot(job("a", target="high"))))
    assert (status, "jobs[0].target" in err) == (2, True)


def test_reports_are_put_in_order_and_tell_the_length_of_the_run(tmp_path: Path) -> None:
    points = [{"iteration": 5, "time": 2.0, "metric": 0.5}, {"iteration": 2, "time": 1.0, "metric": None}]
    one = read_snapshot(write(tmp_path, snapshot(job("a", progress=points, iterations_left=3)))).jobs[0]
    assert [point.iteration for point in one.progress] == [2.0, 5.0]
    assert one.iterations_total == 8.0


def test_classes_are_cut_as_asked(run: Any, tmp_path: Path) -> None:
    far = [job("a", ("h1", "h2", 1e6)), job("b", ("h3", "h4", 2e6)), job("c", ("h1", "h4", 3e6))]
    path = write(tmp_path, snapshot(*far, classes=2))
    _, out, _ = run("--policy", "sebf", path, "--json")
    assert json.loads(out)["classes"] == {"a": 0, "b": 0, "c": 1}
    _, out, _ = run("--policy", "sebf", "--assign", "top", path, "--json")
    assert json.loads(out)["classes"] == {"a": 0, "b": 1, "c": 1}


def test_the_bound_is_chosen_and_each_is_at_least_as_tight_as_the_one_before(run: Any, tmp_path: Path) -> None:
    # Each pair of jobs meets at a port of its own: no single port shows that one of the three must wait for both.
    triangle = [
        job("a", ("h1", "h2", 1e6), ("h3", "h4", 1e6)),
        job("b", ("h1", "h2", 1e6), ("h2", "h3", 1e6)),
        job("c", ("h3", "h4", 1e6), ("h2", "h3", 1e6)),
    ]
    path = write(tmp_path, snapshot(*triangle))
    bounds, objectives = [], []
    for bound in ("dual", "linear", "exact"):
        status, out, _ = run("--policy", "sincronia", "--bound", bound, "--json", path)
        assert status == 0
        answer = json.loads(out)
        bounds.append(answer["lower_bound_seconds"])
        objectives.append(answer["objective_seconds"])
    assert bounds[0] <= bounds[1] <= bounds[2] * (1 + 1e-6)
    # In whatever order: the first job waits for none, the second for one, the third for two ports that serve two.
    assert objectives == pytest.approx([(8 + 16 + 16) / 3 * 1e-3] * 3)
    assert bounds[2] == pytest.approx((8 + 16 + 16) / 3 * 1e-3)
    assert bounds[2] > bounds[1] * 1.01
    _, out, _ = run("--policy", "sincronia", "--json", path)
    assert json.loads(out)["lower_bound_seconds"] == bounds[0]
    _, out, _ = run("--policy", "sincronia", "--bound", "exact", path)
    assert "(no order is below 13.3 ms)" in out


def test_the_exact_bound_is_refused_for_more_than_12_jobs(run: Any, tmp_path: Path) -> None:
    jobs = [job(f"j{i}", ("h1", "h2", 1e6)) for i in range(13)]
    assert run("--policy", "fifo", "--bound", "exact", "--json", write(tmp_path, snapshot(*jobs[:12])))[0] == 0
    path = write(tmp_path, snapshot(*jobs))
    status, _, err = run("--policy", "fifo", "--bound", "exact", path)
    assert status == 2
    assert err == f"trainyard: --bound exact: {path} has 13 jobs; it is for at most 12; use --bound linear\n"
    assert run("--policy", "fifo", "--bound", "linear", path)[0] == 0


def test_a_table_for_people_and_the_standard_input(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WHOLE.encode())))
    status, out, _ = run("--policy", "fifo", "-")
    assert status == 0
    assert "policy      fifo\n" in out
    assert out.splitlines()[-2].split() == ["band", "class", "job", "reason"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n[")))
    status, _, err = run("--policy", "fifo", "-")
    assert status == 2
    assert err.startswith("<stdin>:2: ")


def test_options_of_the_policy(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path, snapshot(job("a", ("h1", "h2", 1e6)), job("b", ("h1", "h2", 9e9))))
    _, out, _ = run("--policy", "sincronia", "--option", "online=true", "--option", "unit_seconds=0.5", path)
    assert "epoch 1 of 8, which ends in 500 ms" in out
    for wrong, words in [
        (["--option", "online=maybe"], "online: 'maybe'; it must be true or false"),
        (["--option", "online"], "it must be KEY=VALUE"),
        (["--option", "nope=1"], "nope"),
        (["--option", "online=true", "--option", "online=true"], "given twice"),
        (["--option", "online=[1"], "online: '[1'; it must be true or false"),
    ]:
        status, _, err = run("--policy", "sincronia", *wrong, path)
        assert status == 2
        assert words in err
    status, _, err = run("--policy", "best", path)
    assert status == 2
    assert "unknown policy 'best'; there are: beamer," in err


def test_an_option_that_does_not_fit_the_file_is_wrong_input(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path, snapshot(job("a", ("h1", "h2", 1e6))))
    for policy in ("tensorlights-one", "tensorlights-rr"):
        status, _, err = run("--policy", policy, "--option", "host=NOSUCH", path)
        assert status == 2
        assert f"policy {policy}: host: there is no host 'NOSUCH'; there are: h1, h2, h3, h4" in err


@pytest.mark.parametrize("assign", ["layered", "top"])
def test_an_order_is_cut_into_up_to_64_classes(assign: str, run: Any, tmp_path: Path) -> None:
    crowd = [job(f"j{n:02}", ("h1", "h2", 1e6), arrival=float(n)) for n in range(100)]
    path = write(tmp_path, snapshot(*crowd, classes=64))
    status, out, _ = run("--policy", "fifo", "--assign", assign, "--json", path)
    assert status == 0
    classes = list(json.loads(out)["classes"].values())
    assert sorted(set(classes)) == list(range(64))
    assert classes == sorted(classes)
    # All meet at one port. Of 100 in 64 classes at least 36 pairs stand together; top leaves all of 37 together.
    together = sum(classes.count(one) * (classes.count(one) - 1) // 2 for one in set(classes))
    assert together == (36 if assign == "layered" else 37 * 36 // 2)


def test_wrong_usage_is_2() -> None:
    for arguments in (["order"], ["order", "x.json"], ["order", "--policy", "fifo", "--assign", "best", "x.json"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_ids_that_would_steer_a_terminal_do_not(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path, snapshot(job("\x1b[31mred")))
    status, out, _ = run("--policy", "fifo", path)
    assert status == 0
    assert "\x1b" not in out
    _, out, _ = run("--policy", "fifo", path, "--json")
    assert json.loads(out)["order"] == [["\x1b[31mred"]]
    status, _, err = run("--policy", "fifo", write(tmp_path, snapshot(job("half a pair: \ud800"))))
    assert status == 2
    assert ":1: jobs[0].id: is the text" in err
