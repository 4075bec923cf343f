"""A body's bytes to a message: what JSON leaves open is refused, with its place."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, RootModel

from controller.api.bodies.parsing import parse
from controller.api.http import HttpError
from controller.wire import HostReport, JobSpec, Settings

Anything = RootModel[JsonValue]
REPORT = b'{"session": "s", "seq": 1, "sent_at": 1, "jobs": [{"job": "a", "points": [%s]}]}'


@pytest.mark.parametrize(
    ("raw", "model", "status", "said", "field"),
    [
        (b'{"weight": 1, "weight": 2}', JobSpec, 422, "weight: given twice, first in line 1; keep one", "weight"),
        (b'{"weight": 1, "w\\u0065ight": 2}', JobSpec, 422, "given twice", "weight"),
        (
            REPORT % b'{"iteration": 1, "time": 1}, {"iteration": 1,\n "time": 1, "time": 2}',
            HostReport, 422, "given twice, first in line 2", "jobs.0.points.1.time",
        ),
        (b'{"policy_options": {"a": {"b": 1, "b": 1}}}', Settings, 422, "given twice", "policy_options.a.b"),
        (b'{"policy_options": {"a": [NaN]}}', Settings, 422, "is NaN; it must be a finite", "policy_options.a.0"),
        (b'{"policy_options": {"a": -Infinity}}', Settings, 422, "is -Infinity; it must be", "policy_options.a"),
        (b'{"weight": NaN}', JobSpec, 422, "finite", "weight"),
        (b'{"weight": 1e999}', JobSpec, 422, "finite", "weight"),
        (b'{"weight": 1%s}' % (b"0" * 400), JobSpec, 422, "", "weight"),
        (b'{"weight": 1%s}' % (b"0" * 5000), JobSpec, 400, "number out of range", None),
        (b'{"policy_options": {"a": 1%s}}' % (b"0" * 5000), Settings, 400, "number out of range", None),
        (b'{"policy_options": %s1%s}' % (b'{"a":' * 5000, b"}" * 5000), Settings, 400, "recursion limit", None),
        (b"[" * 100_000, JobSpec, 400, "recursion limit", None),
        (b'{"model": "\\ud800"}', JobSpec, 400, "not valid JSON", None),
        (b'{"policy_options": {"\\udc00": 1}}', Settings, 400, "not valid JSON", None),
        (b'{"model": "\xff"}', JobSpec, 400, "not valid JSON", None),
        (b'{"policy_options": {"\xed\xa0\x80": 1}}', Settings, 400, "not valid JSON", None),
        (b'{"model": "a\x00"}', JobSpec, 400, "not valid JSON", None),
        (b"\xef\xbb\xbf{}", JobSpec, 400, "begins with a byte order mark; send UTF-8 without one", None),
        ("{}".encode("utf-16"), JobSpec, 400, "begins with a byte order mark", None),
        ("{}".encode("utf-16-le"), JobSpec, 400, "not valid JSON", None),
        (b"{} {}", JobSpec, 400, "trailing characters", None),
        (b"{'weight': 1}", JobSpec, 400, "not valid JSON", None),
        (b'{"weight": 01}', JobSpec, 400, "not valid JSON", None),
        (b'{"weight": 1,}', JobSpec, 400, "not valid JSON", None),
        (b"", JobSpec, 400, "not valid JSON", None),
    ],
    ids=lambda value: ascii(value[:40]) if isinstance(value, bytes) else None,
)  # fmt: skip
def test_what_json_leaves_open_is_refused(raw: bytes, model: Any, status: int, said: str, field: str | None) -> None:
    with pytest.raises(HttpError) as caught:
        parse(raw, model)
    assert caught.value.status == status
    assert said in caught.value.detail
    assert [place for place, _ in caught.value.errors][:1] == ([field] if field is not None else [])


def test_what_is_right_is_taken() -> None:
    assert parse(b'\r\n\t {"weight": 2.5e0} ', JobSpec) == JobSpec(weight=2.5)
    assert parse('{"model": "résumé 模型 \\ud83d\\ude00"}'.encode(), JobSpec).model == "résumé 模型 😀"
    nested = {"policy_options": {"a": {"a": {"a": [{"a": 1}, {"a": 2}]}}}}
    assert parse(json.dumps(nested).encode(), Settings).policy_options == nested["policy_options"]


JSON_TEXT = st.recursive(
    st.sampled_from(["1", "-0.5", '"a"', "true", "null", "NaN", "1e999", "01", '"\\ud800"', '"\\u0061"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(['"a"', '"b"', '"\\u0061"', '""']), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)


@given(JSON_TEXT)
def test_a_body_is_taken_if_and_only_if_each_key_stands_once_and_all_is_json(text: str) -> None:
    is_right = "NaN" not in text and "01" not in text and "\\ud800" not in text
    has_twice = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_twice
        has_twice |= len({key for key, _ in pairs}) < len(pairs)
        return dict(pairs)

    if is_right:
        expected = json.loads(text, object_pairs_hook=look)
    if is_right and not has_twice:
        assert parse(text.encode(), Anything).root == expected
    else:
        with pytest.raises(HttpError):
            parse(text.encode(), Anything)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_a_refusal(raw: bytes) -> None:
    for data in (raw, b'{"policy_options": {"' + raw + b'": 1}}'):
        try:
            parse(data, Settings)
        except HttpError as error:
            assert error.status in (400, 422)


def test_a_refusal_comes_back_from_another_process() -> None:
    with pytest.raises(HttpError) as caught:
        parse(b'{"weight": 1, "weight": 2}', JobSpec)
    again = pickle.loads(pickle.dumps(caught.value))
    assert vars(again) == vars(caught.value)
    assert str(again) == str(caught.value)


def test_who_only_parses_loads_neither_the_hub_nor_ryu() -> None:
    look = "import sys, controller.api.bodies.parsing; print(sorted({'eventlet', 'ryu', 'webob'} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
