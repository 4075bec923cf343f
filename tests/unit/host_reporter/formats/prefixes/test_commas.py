"""Commas in the numbers of a file: what one number leaves open, another one shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.formats import registry
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.prefixes.commas import Comma, Commas
from host_reporter.formats.recognition import Recognition
from tests.support.agent.logs import interpreted


def lines(*losses: str) -> list[str]:
    return [f"step {number} loss: {loss}" for number, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    ("losses", "metrics"),
    [
        (("2,990", "1,500", "0,998", "1,001"), [None, None, 0.998, 1.001]),
        (("12,5", "2,990"), [12.5, 2.99]),
        (("1.234,5", "2,990"), [1234.5, 2.99]),
        (("2,990", "999.5", "1,001"), [None, 999.5, 1001]),
        (("1,234,567", "2,990"), [1234567, 2990]),
        (("1,234.5", "2,990"), [1234.5, 2990]),
        (("2,990", "2,980"), [None, None]),
        (("0.5", "0.4"), [0.5, 0.4]),
    ],
)
def test_one_number_shows_what_the_others_are(losses: tuple[str, ...], metrics: list[float | None]) -> None:
    assert [metric for _, metric in interpreted(lines(*losses)).points] == metrics


def test_counters_have_thousands_in_any_case() -> None:
    found = interpreted([f"step {number},000/9,000 loss: {1 / number:.3f}" for number in (1, 2, 3)])
    assert [iteration for iteration, _ in found.points] == [1000, 2000, 3000]


def test_what_is_not_known_is_said_until_it_is() -> None:
    reader = Interpreter(Recognition(registry.available()))
    interpreted(lines("2,990", "2,980", "2,970"), reader)
    assert "2,970 is 2.970 or 2970 is not known" in str(reader.problem())
    interpreted(lines("0,998"), reader)
    assert "is not known" not in str(reader.problem())


@pytest.mark.parametrize("line", ["gpus: 0,1", "shape 3,224,224", "[1,2000] loss: 2.5", "lr 1,5e-3 loss", "loss,acc"])
def test_what_is_no_metric_shows_nothing(line: str) -> None:
    commas = Commas()
    assert commas.feed(line)[1] == frozenset()
    assert commas.kind is not Comma.DECIMAL


@given(st.text(alphabet="loss acc:=0123456789.,-+ \"'", max_size=200))
def test_no_line_raises(line: str) -> None:
    commas = Commas()
    for _ in range(2):
        text, unsure = commas.feed(line)
        assert len(text) <= len(line) and all(value >= 0 or "-" in line for value in unsure)
