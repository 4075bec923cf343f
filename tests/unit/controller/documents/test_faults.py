"""Each kind of refusal is a sentence for people: what the value is, and what would be right, in words of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, AwareDatetime, Field, ValidationError
from pydantic_core._pydantic_core import list_all_errors

from controller import wire
from controller.documents.faults import _PATTERNS, described, in_lines, kind_of, wanted
from controller.documents.mapping_file import ConfigError
from controller.model import Role
from controller.wire import NAME_PATTERN, JobSpec, Message
from controller.wire.base import PRINTABLE_PATTERN
from host_reporter.jobs.job_file import JobFileError, read_job_file
from host_reporter.options import Options
from topologies.experiments.experiment_file import read_experiment


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("it must be odd, as 1 is")
    return value


class Cat(Message):
    """One of two."""

    kind: Literal["cat"]
    lives: int


class Dog(Message):
    """The other."""

    kind: Literal["dog"]


class Every(Message):
    """A field of each kind that our models have."""

    whole: Annotated[int, Field(ge=1, le=7, multiple_of=1)] = 1
    number: Annotated[float, Field(gt=0, lt=10)] = 1.0
    text: Annotated[str, Field(min_length=2, max_length=3)] = "ab"
    name: Annotated[str, Field(pattern=NAME_PATTERN)] = "a"
    printable: Annotated[str, Field(pattern=PRINTABLE_PATTERN)] = "a"
    other: Annotated[str, Field(pattern="^x$")] = "x"
    truth: bool = True
    choice: Literal["a", "b, c"] = "a"
    role: Annotated[Role, Field(strict=False)] = Role.PS
    items: Annotated[tuple[int, ...], Field(min_length=1, max_length=2, strict=False)] = (1,)
    pair: Annotated[tuple[int, int], Field(strict=False)] = (1, 2)
    several: list[int] = Field(default=[1], max_length=2)
    names: frozenset[str] = frozenset()
    inner: JobSpec = JobSpec()
    mapping: dict[str, int] = Field(default={}, min_length=0, max_length=1)
    path: Annotated[Path, Field(strict=False)] = Path()
    when: AwareDatetime | None = None
    either: int | dict[str, int] = 1
    animal: Annotated[Cat | Dog | None, Field(discriminator="kind")] = None
    checked: Annotated[int, AfterValidator(odd)] = 1
    token: Annotated[str, Field(min_length=8)] = "12345678"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"whole": 0}, "whole: is the number 0; it should be greater than or equal to 1"),
        ({"whole": 8}, "whole: is the number 8; it should be less than or equal to 7"),
        ({"whole": 1.5}, "whole: is the number 1.5; it should be a valid integer"),
        ({"whole": "1"}, "whole: is the text '1'; it should be a valid integer"),
        ({"whole": True}, "whole: is the truth value true; it should be a valid integer"),
        ({"whole": None}, "whole: is empty; it should be a valid integer"),
        ({"whole": 10**30}, "whole: is a number of more than 20 digits; it should be less than or equal to 7"),
        ({"number": 0}, "number: is the number 0; it should be greater than 0"),
        ({"number": 10.5}, "number: is the number 10.5; it should be less than 10"),
        ({"number": float("nan")}, "number: is the number nan; it should be a finite number"),
        ({"number": []}, "number: is an empty list; it should be a valid number"),
        ({"text": "a"}, "text: is the text 'a'; it should have at least 2 characters"),
        ({"text": "abcd"}, "text: is the text 'abcd'; it should have at most 3 characters"),
        ({"text": 7}, "text: is the number 7; it should be a valid string"),
        ({"name": "-x"}, "name: is the text '-x'; it should be 1 to 63 letters, digits, dots, dashes and underscores, "
                         "and begin with a letter or a digit"),
        ({"printable": "a\x1b"}, "printable: is the text 'a\\x1b'; it should hold no control characters and none that "
                                 "turn the direction of the text"),
        ({"other": "y"}, "other: is the text 'y'; it should match the regular expression ^x$"),
        ({"truth": "yes"}, "truth: is the text 'yes'; it should be a valid boolean"),
        ({"choice": "c"}, "choice: is the text 'c'; it should be 'a' or 'b, c'"),
        ({"role": "boss"}, "role: is the text 'boss'; it should be "),
        ({"items": []}, "items: is an empty list; it should have at least 1 item"),
        ({"items": [1, 2, 3]}, "items: is a list; it should have at most 2 items"),
        ({"items": {}}, "items: is an empty mapping; it should be a valid list"),
        ({"items": [1, "x"]}, "items.1: is the text 'x'; it should be a valid integer"),
        ({"pair": [1]}, "pair.1: is missing; it must be given"),
        ({"pair": [1, 2, 3]}, "pair: is a list; it should have at most 2 items"),
        ({"several": [1, 2, 3]}, "several: is a list; it should have at most 2 items"),
        ({"several": "x"}, "several: is the text 'x'; it should be a valid list"),
        ({"names": 1}, "names: is the number 1; it should be a valid list"),
        ({"inner": 3}, "inner: is the number 3; it should be a mapping"),
        ({"inner": {"wieght": 3}}, "inner.wieght: unknown key; did you mean weight?"),
        ({"inner": {"xyz": 3}}, "inner.xyz: unknown key; there are: arrival, "),
        ({"inner": {"flows": [{}]}}, "inner.flows.0.src: is missing; it must be given"),
        ({"mapping": {"a": 1, "b": 2}}, "mapping: is a mapping; it should have at most 1 item"),
        ({"mapping": {"a": "x"}}, "mapping.a: is the text 'x'; it should be a valid integer"),
        ({"mapping": {1: 1}}, "mapping.1: is the number 1; it should be a valid string"),
        ({"mapping": [1]}, "mapping: is a list; it should be a mapping"),
        ({"path": 3}, "path: is the number 3; it should be a path"),
        ({"when": "soon"}, "when: is the text 'soon'; it should be a valid datetime"),
        ({"either": "x"}, "either: is the text 'x'; it should be a valid integer or be a mapping"),
        ({"either": {"a": "x"}}, "either: is a mapping; it should be a valid integer"),
        ({"animal": {"kind": "cow"}}, "animal: is a mapping; it should have as 'kind' one of 'cat', 'dog'"),
        ({"animal": {}}, "animal: is an empty mapping; it should have 'kind', which says what it is"),
        ({"animal": {"kind": "cat"}}, "animal.lives: is missing; it must be given"),
        ({"checked": 2}, "checked: it must be odd, as 1 is"),
        ({"token": "secret"}, "token: is not usable; it should have at least 8 characters (in quotes)"),
        ({"nmae": 1}, "nmae: unknown key; did you mean name?"),
        ([], "is an empty list; it should be a mapping"),
        (None, "is empty; it should be a mapping"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_it_is_and_what_would_be_right(given: Any, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Every.model_validate(given)
    lines = in_lines(described(refused.value, given, Every))
    assert lines[0].startswith(said)
    assert "secret" not in lines[0]


def test_every_fault_that_the_library_knows_ends_in_words_of_ours() -> None:
    for known in list_all_errors():
        if "argument" in known["type"]:
            continue  # of a call's arguments, which no model has
        context = known["example_context"]
        message = known["message_template_python"]
        for key, value in (context or {}).items():
            message = message.replace(f"{{{key}}}", str(value))
        fault = {"type": known["type"], "msg": message.replace("{expected_plural}", ""), "ctx": context or {}}
        words = wanted(fault)
        assert words.split(" ", 1)[0] in ("be", "have", "not", "match", "contain", "hold"), (known["type"], words)
        assert not {"Input", "tuple", "Tuple", "dictionary", "validation,"} & set(words.split()), words


def patterns_of(schema: Any) -> Iterator[str]:
    """Yields the regular expressions of a JSON schema."""
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from patterns_of(part)


def test_regular_expressions_of_the_wire_have_words() -> None:
    messages = [one for one in vars(wire).values() if isinstance(one, type) and issubclass(one, Message)]
    patterns = {pattern for model in (*messages, Options) for pattern in patterns_of(model.model_json_schema())}
    assert {NAME_PATTERN, PRINTABLE_PATTERN} < patterns <= set(_PATTERNS)
    with pytest.raises(ValidationError) as refused:
        Options(interface="no such name")
    assert (
        "it should be the name of an interface"
        in described(refused.value, {"interface": "no such name"}, Options)[0][1]
    )


def test_without_the_data_places_are_as_the_library_has_them() -> None:
    text = '{"compute_seconds": -1, "flows": 3, "metric": 1}'
    with pytest.raises(ValidationError) as refused:
        JobSpec.model_validate_json(text)
    assert in_lines(described(refused.value, None, JobSpec)) == [
        "flows: is the number 3; it should be a valid list",
        "metric: is the number 1; it should be a mapping",
        "compute_seconds: is the number -1; it should be greater than or equal to 0",
    ]
    with pytest.raises(ValidationError) as refused:
        JobSpec.model_validate_json("{")
    assert in_lines(described(refused.value, None, JobSpec))[0].startswith("is not valid JSON: EOF while parsing")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ((), "an empty list"),
        ({}, "an empty mapping"),
        ("x" * 99, f"the text '{'x' * 40}'"),
        (1e300, "the number 1e+300"),
    ],
)
def test_a_value_is_called_in_a_few_words(value: object, said: str) -> None:
    assert kind_of(value) == said


def test_an_experiment_without_jobs_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\njobs: []\n")
    with pytest.raises(ConfigError) as refused:
        read_experiment(path)
    assert str(refused.value) == f"{path}:2: jobs: is an empty list; it should have at least 1 item"


def test_a_job_file_with_a_mistyped_key_names_the_right_one() -> None:
    with pytest.raises(JobFileError, match=r"^spec.wieght: unknown key; did you mean weight\?$"):
        read_job_file(Path("/jobs/a.json"), json.dumps({"id": "a", "spec": {"wieght": 2}}), Path("/progress"))
