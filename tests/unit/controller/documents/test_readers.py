"""The readers of YAML and JSON: the same values, the line of each, and the same words for the same fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.documents.document import Document, DocumentError
from controller.documents.json_lines import read_json
from controller.documents.yaml_lines import read_yaml

TEXT = '{"hosts": [\n{"name": "h1"},\n{"name": "h2",\n "rates": [1e9,\n 2.5]}],\n"empty": {}}'
READERS = (read_yaml, read_json)


@pytest.mark.parametrize("read", READERS)
def test_a_value_has_the_line_of_itself_or_of_the_nearest_around_it(read: Callable[[str], Document]) -> None:
    document = read(TEXT)
    assert document.data == {"hosts": [{"name": "h1"}, {"name": "h2", "rates": [1e9, 2.5]}], "empty": {}}
    paths = [("hosts", 1, "rates", 1), ("hosts", 1, "rates", 7), ("hosts", 1, "nme"), ("empty", "x"), ("x",), ()]
    assert document.lines(paths) == [5, 4, 3, 6, 1, 1]
    assert document.line(("hosts", 0, "name")) == 2


@pytest.mark.parametrize("read", READERS)
def test_a_key_that_is_given_twice_is_refused_in_the_same_words(read: Callable[[str], Document]) -> None:
    with pytest.raises(DocumentError) as refused:
        read('{"jobs": [{"id": 1,\n"id": 2}]}')
    assert str(refused.value) == "jobs[0].id: given twice, first in line 1; keep one"
    assert (refused.value.line, refused.value.path) == (2, ("jobs", 0, "id"))


def test_an_alias_has_the_lines_of_its_anchor() -> None:
    document = read_yaml("a: &x\n  b: 1\nc: *x\n")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert document.lines([("c",), ("c", "b")]) == [3, 2]


def test_a_forbidden_character_has_its_line_after_characters_of_several_bytes() -> None:
    with pytest.raises(DocumentError, match="character 0x1 may not be in it; this is no valid YAML") as refused:
        read_yaml("a: \u00e4\U0001f600\n" * 3 + "b: \x01\n\n\n")
    assert refused.value.line == 4


def test_an_empty_text_is_no_value_in_yaml_and_a_fault_in_json() -> None:
    document = read_yaml("# nothing\n")
    assert (document.data, document.line(("x",))) == (None, 1)
    with pytest.raises(DocumentError, match="the end of the text where a value should be"):
        read_json("")
