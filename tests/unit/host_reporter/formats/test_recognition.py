"""Which preset a log is of: proven, guessed, or replaced by one that is built on it."""

from __future__ import annotations

import pytest

from host_reporter.formats import recognition
from host_reporter.formats.events import Described, Ended, Point
from host_reporter.formats.matching import Matcher
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.preset import Fields, Kind, Pattern, Preset
from host_reporter.formats.presets.general import PRESET as GENERAL
from host_reporter.formats.recognition import Recognition
from tests.support.agent.logs import Parsed, interpreted


def preset(name: str, **values: object) -> Preset:
    return Preset(name=name, title=name, source="recorded", **values)  # type: ignore[arg-type]


BASE = preset("base", marks=r"^base", patterns=(Pattern(regex=r"\bn (?P<iteration>\d+) q (?P<loss>\S+)"),))
BUILT = preset("built", marks=r"^built", beats=("base",), patterns=(Pattern(regex=r"\bm (?P<iteration>\d+)"),))
OTHER = preset("other", patterns=(Pattern(regex=r"^other (?P<iteration>\d+)"),))


def read(*lines: str, presets: tuple[Preset, ...] = (BASE, BUILT, OTHER, GENERAL)) -> Parsed:
    matchers = {one.name: Matcher(one) for one in presets}
    return interpreted(lines, Interpreter(Recognition(matchers)))


def test_a_proven_preset_reads_the_lines_before_its_proof_too() -> None:
    found = read("n 1 q 0.5", "n 2 q 0.4", "base 1.0", "n 3 q 0.3")
    assert (found.preset, found.is_guess) == ("base", False)
    assert found.points == [(1, 0.5), (2, 0.4), (3, 0.3)]


def test_without_a_proof_the_preset_that_reads_most_is_a_guess() -> None:
    found = read("n 1 q 0.5", "n 2 q 0.4", "n 3 q 0.3", "n 4 q 0.2")
    assert (found.preset, found.is_guess) == ("base", True)
    assert [i for i, _ in found.points] == [1, 2, 3, 4]


def test_behind_all_a_general_guess_which_a_proof_replaces() -> None:
    lines = [f"step {i} loss 0.{i}" for i in range(1, 6)]
    found = read(*lines)
    assert (found.preset, found.is_guess) == ("general", True)
    assert found.described.is_guess
    found = read(*lines, "other 7", "other 8", "step 9 loss 0.9")
    assert (found.preset, found.is_guess) == ("other", False)
    assert [i for i, _ in found.points] == [1, 2, 3, 4, 5, 7, 8]
    assert not found.described.is_guess
    assert found.ends == 0


def test_a_proof_whose_iterations_are_lower_than_the_guess_begins_a_run() -> None:
    found = read(*[f"step {i} loss 0.5" for i in (100, 200, 300)], "other 1", "other 2")
    assert [e for e in found.events if not isinstance(e, Described)][-3:] == [Ended(), Point(1), Point(2)]


def test_a_guess_that_is_proven_goes_on_and_the_proven_preset_reads_the_lines_before() -> None:
    lines = [f"n {i} q 0.5" for i in range(1, 6)]
    found = read(*lines, "base", "n 6 q 0.5")
    assert (found.preset, found.is_guess, found.ends) == ("base", False, 0)
    assert [i for i, _ in found.points] == [1, 2, 3, 4, 5, 6]
    epochs = [f"other epoch {e} step {s}/100 loss 0.5" for e in (0, 1, 2) for s in (50, 100)]
    other = preset(
        "epochs", marks="^proof", patterns=(Pattern(regex=r"epoch (?P<epoch>\d+) step (?P<step>\d+)/(?P<of>\d+)"),)
    )
    found = read(*epochs, "proof", "other epoch 3 step 50/100 loss 0.5", presets=(other, GENERAL))
    assert (found.preset, found.is_guess, found.ends) == ("epochs", False, 0)
    assert [i for i, _ in found.points] == [50, 100, 150, 200, 250, 300, 350]


def test_after_thousands_of_lines_that_say_nothing_some_are_looked_at() -> None:
    found = read(*["noise"] * 10_000, *[f"step {i} loss 0.5" for i in range(1, 101)])
    assert found.preset == "general"
    assert found.points[-1] == (100, 0.5)


def test_a_program_that_is_built_on_another_replaces_it_and_not_the_other_way_round() -> None:
    assert read("base", "n 1 q 0.5", "built", "m 2").preset == "built"
    assert read("built", "m 1", "base", "m 2").preset == "built"
    assert read("built base", "m 1").preset == "built"


def test_few_lines_are_guessed_when_no_more_come() -> None:
    assert read("step 1 loss 0.5").points == [(1, 0.5)]
    assert read("step 1", "step 2").points == [(1, None), (2, None)]
    assert read("hello").preset is None
    assert read("we take a step 12 times").preset is None, "one number is no progress"


def test_of_records_the_preset_that_needs_most_of_their_fields() -> None:
    few = Matcher(preset("few", kind=Kind.CSV, fields=Fields(needs=("a",), iteration="a")))
    most = Matcher(preset("most", kind=Kind.CSV, fields=Fields(needs=("a", "b"), iteration="a")))
    matchers = {"few": few, "most": most}
    assert recognition.of_fields(matchers, Kind.CSV, ("a", "b", "c")) is most
    assert recognition.of_fields(matchers, Kind.CSV, ("a", "c")) is few
    assert recognition.of_fields(matchers, Kind.CSV, ("c",)) is None
    assert recognition.of_fields(matchers, Kind.JSONL, ("a", "b")) is None


def test_the_rank_that_prints_the_progress_is_followed() -> None:
    lines = ["[rank0]: hello", "[rank7]: step 1 loss 0.5", "[rank3]: warning", "[rank7]: step 2 loss 0.4"]
    assert read(*lines).points == [(1, 0.5), (2, 0.4)]
    lines = [f"[rank{r}]: step {i} loss 0.{r}" for i in (1, 2, 3) for r in (1, 0, 2)]
    assert [m for _, m in read(*lines).points][-2:] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["", "[1,0]<stdout>:", "(pid=7) "])
def test_labels_do_not_hinder(name: str) -> None:
    assert read(*[f"{name}base n {i} q 0.5" for i in (1, 2)]).points == [(1, 0.5), (2, 0.5)]
