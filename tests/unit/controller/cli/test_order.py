"""``trainyard order``: the file, the answer, and everything that can be wrong with the file."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from controller.cli.main import main
from controller.cli.ordering.snapshot_file import SnapshotError, read_snapshot
from controller.documents.document import DocumentError
from controller.documents.json_lines import parse, read_json
from controller.families.sentence import sentence
from controller.policies.registry import available

WHOLE = """\
{"now": 0.0, "classes": 7,
 "hosts": [{"name": "h1", "ingress_bps": 1e9, "egress_bps": 1e9}, {"name": "h2"}],
 "jobs": [{"id": "a", "arrival": 0.0, "weight": 1.0, "stage": "s1",
           "demand": [{"src": "h1", "dst": "h2", "bytes": 1000000}],
           "iterations_left": 10, "compute_seconds": 0.1,
           "progress": [{"iteration": 1, "time": 0.5, "metric": 0.41}]}],
 "metric": {"name": "accuracy", "direction": "max"}}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: object) -> tuple[int, str, str]:
        status = main(["order", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert status == 0 or captured.out == ""
        return status, captured.out, captured.err

    return command


def snapshot(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hosts": [{"name": f"h{i}"} for i in range(1, 5)], "jobs": list(jobs), **more}


def job(name: str, *demand: tuple[str, str, float], **more: Any) -> dict[str, Any]:
    return {"id": name, "demand": [{"src": s, "dst": d, "bytes": b} for s, d, b in demand], **more}


def write(folder: Path, document: Any) -> Path:
    path = folder / "snapshot.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


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
        job("c", ("h1", "h2", 1e6), ("h1", "h4", 1e6), arrival=1.0, stage="s", iterations_left=0.5),
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
    assert "(no order is below 0.01333 s)" in out


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
    assert "epoch 1 of 8, which ends in 0.5 s" in out
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


HOST = '{"hosts": [{"name": "h1"}, {"name": "h2"}],\n'
FLOW = '{"src": "h1", "dst": "h2", "bytes": 1}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1: is empty; it must hold a snapshot: an object with hosts and jobs"),
        ("[]", ":1: (whole file): holds no object; it must hold one with hosts and jobs"),
        ("3\n", ":1: (whole file): holds no object"),
        ("{}", ":1: hosts: is missing; it must be given"),
        (HOST + '"jobs": [{"id": "a"}]}', ":2: jobs[0].demand: is missing"),
        (HOST + '"jobs": [\n{"demand": []}]}', ":3: jobs[0].id: is missing"),
        (HOST + '"jobs": [],\n"job": 1}', ":3: job: unknown key; did you mean jobs?"),
        (
            HOST + '"jobs": [{"id": "a", "demand": [],\n"wieght": 1}]}',
            ":3: jobs[0].wieght: unknown key; did you mean w",
        ),
        (
            HOST + '"jobs": [{"id": "a", "demand": [\n' + FLOW + ',\n{"src": "h1", "dst": "h2"}]}]}',
            ":4: jobs[0].demand[1].",
        ),
        (
            HOST + '"jobs": [\n{"id": "a", "demand": []},\n{"id": "a", "demand": []}]}',
            ":4: jobs[1].id: 'a' is the id of jo",
        ),
        (
            '{"hosts": [{"name": "x"},\n{"name": "x"}], "jobs": []}',
            ":2: hosts[1].name: 'x' is the name of hosts[0] already",
        ),
        (
            HOST + '"jobs": [{"id": "a", "demand": [{"src": "h1",\n"dst": "h9", "bytes": 1}]}]}',
            ":3: jobs[0].demand[0].dst: unknown host 'h9'; there are: h1, h2",
        ),
        (
            HOST + '"jobs": [{"id": "a", "demand": [{"src": "h1",\n"dst": "h1", "bytes": 1}]}]}',
            ":3: jobs[0].demand[0].dst: is 'h1', as its src; a flow goes to another host",
        ),
        (
            HOST + '"jobs": [{"id": "a", "demand": [{"src": "h1", "dst": "h2",\n"bytes": -1}]}]}',
            ":3: jobs[0].demand[0].bytes: is the number -1; it should be greater than or equal to 0",
        ),
        (
            HOST + '"jobs": [{"id": "a", "demand": [], "weight":\n0}]}',
            ":3: jobs[0].weight: is the number 0; it should be gr",
        ),
        (HOST + '"jobs": [], "classes": 0}', ":2: classes: is the number 0; it should be greater than or equal to 1"),
        (HOST + '"jobs": [], "classes": 65}', ":2: classes: is the number 65; it should be less than or equal to 64"),
        (HOST + '"jobs": [], "classes": 2.5}', ":2: classes: is the number 2.5; it should be a valid integer"),
        (HOST + '"jobs": [], "classes": true}', ":2: classes: is the truth value true"),
        (HOST + '"jobs": [], "now": NaN}', ":2: now: is NaN; it must be a finite number"),
        (HOST + '"jobs": [], "now":\n-Infinity}', ":3: now: is -Infinity; it must be a finite number"),
        (HOST + '"jobs": [], "now": 1e999}', ":2: now: is too large a number"),
        (HOST + '"jobs": [], "now": ' + "9" * 5000 + "}", ":2: now: is too large a number"),
        (
            HOST + '"jobs": [], "now": 1e300}',
            ":2: now: is the number 1e+300; it should be less than or equal to 1000000000000000",
        ),
        (HOST + '"jobs": [], "now": "0"}', ":2: now: is the text '0'; it should be a valid number"),
        (HOST + '"jobs": [],\n"jobs": []}', ":3: jobs: given twice, first in line 2; keep one"),
        (HOST + '"jobs": {}}', ":2: jobs: is an empty mapping; it should be a valid list"),
        (HOST + '"jobs": [{"id": "", "demand": []}]}', ":2: jobs[0].id: is the text ''; it "),
        (HOST + '"jobs": [{"id": 1, "demand": []}]}', ":2: jobs[0].id: is the number 1; it should be a valid string"),
        (
            HOST + '"jobs": [], "metric": {"direction": "up"}}',
            ":2: metric.direction: is the text 'up'; it should be 'max' or",
        ),
        ('{"hosts": [{"name": "h1", "egress_bps": 0}], "jobs": []}', ":1: hosts[0].egress_bps: is the number 0"),
        (HOST + '"jobs": [}', ":2: jobs[0]: there is '}' where a value should be; this is no valid JSON"),
        (HOST + '"jobs": [] "now": 1}', ":2: jobs: a ',' or '}' should follow; this is no valid JSON"),
        (HOST + '"jobs" []}', ":2: jobs: a ':' should follow the key"),
        (HOST + "jobs: []}", ":2: (whole file): a key in quotes should be here"),
        (HOST + '"jobs": []}\n{}', ":3: (whole file): there is more after the end of the document"),
        (HOST + '"jobs": [{"id": "a\n', ":2: jobs[0].id: invalid control character at"),
        (HOST + '"jobs": [{"id": "a', ":2: jobs[0].id: unterminated string starting at"),
        (HOST + '"jobs": [01]}', ":2: jobs[0]: a ',' or ']' should follow"),
        ("[" * 100_000, ":1: [0][0][0]: is nested more than 64 deep"),
        ('{"hosts": ' + "[" * 500 + "]" * 500 + ', "jobs": []}', ":1: hosts[0]"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_field(text: str, expected: str, run: Any, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    status, _, err = run("--policy", "fifo", path, "--json")
    assert status == 2
    assert err.startswith(str(path) + ":")
    assert expected in err


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


def test_every_fault_has_its_line_but_very_many_are_counted(run: Any, tmp_path: Path) -> None:
    document = json.dumps(snapshot(*(job(f"j{i}", ("h1", "h9", 1.0)) for i in range(30))), indent=0)
    _, _, err = run("--policy", "fifo", write(tmp_path, document))
    lines = err.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 10 more"
    assert len({line.split(":")[1] for line in lines[:-1]}) == 20


def test_files_that_are_no_text(run: Any, tmp_path: Path) -> None:
    for raw, words in [
        (b"\xff\xfe{\x00}\x00", "x: is UTF-16 text; save it as UTF-8"),
        (b"{\n\n\x80}", "x:3: byte 4 of the file (0x80) is no UTF-8 text"),
    ]:
        (tmp_path / "x").write_bytes(raw)
        status, _, err = run("--policy", "fifo", tmp_path / "x")
        assert status == 2
        assert words in err
    for path, words in [(tmp_path, "Is a directory"), (tmp_path / "none", "No such file"), ("a\0b", "null byte")]:
        status, _, err = run("--policy", "fifo", path)
        assert status == 2
        assert words in err
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert run("--policy", "fifo", tmp_path / "bom")[0] == 0


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


def test_a_large_file_and_a_fault_at_its_end(tmp_path: Path) -> None:
    jobs = [job(f"j{i}", ("h1", "h2", 1.0)) for i in range(20_000)]
    made = read_snapshot(write(tmp_path, snapshot(*jobs)))
    assert len(made.jobs) == 20_000
    jobs[-1]["weight"] = -1
    text = json.dumps(snapshot(*jobs), indent=1)
    with pytest.raises(SnapshotError, match=r"jobs\[19999\].weight") as caught:
        read_snapshot(write(tmp_path, text))
    line = int(str(caught.value).split(":")[1])
    assert '"weight": -1' in text.splitlines()[line - 1]


def test_the_scan_agrees_with_the_fast_parser_on_what_is_right() -> None:
    text = '{"a": [1, -2.5e3, "x\\u00e9\\n", {"b": null, "c": [true, false, []]}, {}],\n "d": "\\ud83d\\ude00"}\n'
    assert parse(text) == json.loads(text)
    assert read_json(text).lines([("a", 3, "c", 2), ("d",), ("d", "no such key")]) == [1, 2, 2]
    with pytest.raises(DocumentError, match="given twice"):
        parse('{"a": {"x": 1, "x": 2}}')


RUN = {
    "iterations": 1000,
    "converged": 0.94,
    "t90_iteration": 140,
    "t95_iteration": 200,
    "curve": [[1, 0.1], [1e3, 0.94]],
}


def test_a_job_may_have_a_family(tmp_path: Path, run: Any) -> None:
    runs = [RUN, RUN | {"converged": 0.945, "t90_iteration": 200}, {"iterations": 5, "ending": "aborted"}]
    document = snapshot(
        job("a", ("h1", "h2", 1e6), family={"name": "resnet50", "runs": runs}),
        job("b", family={"name": "bert"}),
        job("c"),
    )
    first, second, third = read_snapshot(write(tmp_path, document)).jobs
    assert first.family is not None
    assert sentence(first.family) == (
        "2 earlier runs of resnet50: 0.94 to 0.945, 90 % at 14 to 20 % of the run; not counted: 1 aborted"
    )
    assert first.family.gate.is_open
    assert first.family.runs[0].curve == ((1.0, 0.1), (1000.0, 0.94))
    assert second.family is not None
    assert second.family.runs == ()
    assert third.family is None
    assert run("--policy", "jpas", write(tmp_path, document))[0] == 0


@pytest.mark.parametrize(
    ("runs", "more", "field", "said"),
    [
        (
            [RUN, RUN | {"t90_iteration": 1001}],
            {},
            "jobs[0].family.runs[1].t90_iteration",
            "the run has 1000 iterations",
        ),
        ([{"iterations": 10}], {}, "jobs[0].family.runs[0].converged", "a run that finished has one"),
        ([RUN | {"t90_iteration": None}], {}, "jobs[0].family.runs[0].t90_iteration", "a run that finished has one"),
        ([RUN | {"curve": []}], {"metric": {"direction": "min"}}, "jobs[0].family.runs[0].curve", "its first value"),
        ([RUN | {"ending": "lost"}], {}, "jobs[0].family.runs[0].ending", "finished"),
        ([RUN | {"curve": [[1, 2]] * 65}], {}, "jobs[0].family.runs[0].curve", "64"),
        ([RUN | {"iterations": 0}], {}, "jobs[0].family.runs[0].iterations", "0"),
    ],
)
def test_what_is_wrong_with_a_family_is_said(tmp_path: Path, runs: Any, more: Any, field: str, said: str) -> None:
    document = snapshot(job("a", family={"name": "f", "runs": runs}), **more)
    with pytest.raises(SnapshotError) as refused:
        read_snapshot(write(tmp_path, document))
    assert f": {field}: " in str(refused.value)
    assert said in str(refused.value)
