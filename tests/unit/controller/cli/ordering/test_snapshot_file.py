"""Everything that can be wrong with the file of ``trainyard order``, with its line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli.ordering.snapshot_file import SnapshotError, read_snapshot
from controller.documents.document import DocumentError
from controller.documents.json_lines import parse, read_json
from tests.support.controller.cli.snapshots import WHOLE, job, snapshot, write

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
