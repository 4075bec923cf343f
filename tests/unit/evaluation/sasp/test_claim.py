"""What ``scripts/evaluate sasp`` measures, and how it adds up. Values only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from evaluation import resume, summary
from evaluation.sasp import bounds, claim, rates
from evaluation.sasp.figures import CROWDED_IDLE_SHARE, MEASURES
from evaluation.sasp.groups import ORDER, PLAIN, RATIOS, SEEDS, Group, names_of, training
from evaluation.sasp.rates import Rates
from evaluation.sasp.study import plan
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS
from evaluation.sasp.testbed import lab
from evaluation.sasp.testbed.request import (
    TASK_NAMES,
    ArmResult,
    SaspRequest,
    SaspResult,
    Training,
    Ways,
    WorkerResult,
    link_bps,
)
from sasp.core.scheme import parse
from tests.support import sasp_rates
from tests.support.sasp_rates import TARGET
from topologies.errors import LabError
from topologies.frameworks import PYTHON_SETTING
from topologies.lab.results import save

RATES = sasp_rates.rates()
DEFAULT = RATES.defaults["server"]


@pytest.fixture(autouse=True)
def known_rates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "rates.json"
    save(path, RATES)
    monkeypatch.setattr(rates, "FILE", path)
    return path


def arm(one: Training, seconds: float, *, iterations: int = 390, learns: bool = True, idle: float = 0.5) -> ArmResult:
    """It ends where a running median of three looks has the target."""
    points = tuple(
        (seconds * done, done, TARGET + 0.1 if learns and done > iterations - 20 else 0.1)
        for done in range(10, iterations + 1, 10)
    )
    workers = tuple(WorkerResult(rank, iterations, seconds * iterations, seconds / 2, 1.0, 1000) for rank in range(4))
    return ArmResult(one, workers, points, idle)


PACE: Mapping[str, float] = {
    PLAIN: 2.0, "bsp+overlap": 1.6, "asp+overlap": 1.7, "ssp-2+overlap": 1.8, ORDER: 1.4, "partial-momentum": 1.0,
}  # fmt: skip
FASTER = {("transformer", "asp+overlap"): 1.5}


def measured(group: Group, *, never: tuple[str, ...] = ()) -> SaspResult:
    """Every arm at its pace, which differs by seed."""
    arms = tuple(
        arm(
            one,
            FASTER.get((group.task, one.name), PACE.get(one.name, 1.2)) * (1 + 0.01 * group.seed),
            learns=one.name not in never,
        )
        for one in group.asked().trainings
    )  # fmt: skip
    return SaspResult("uml", "2.0", 0.5, 1000, 1e6, arms)


def first_setting() -> list[Group]:
    return [group for group in claim.groups() if (group.transport, group.ratio) == ("server", 1.0)]


def test_all_arms_are_measured_over_a_server_where_communication_takes_as_long_as_computing() -> None:
    groups = claim.groups()
    assert len({group.name for group in groups}) == len(groups) == 2 * len(RATIOS) * len(TASK_NAMES) * len(SEEDS)
    assert len(SEEDS) == 4
    assert not set(SEEDS) & {*plan.TUNING_SEEDS, *plan.TEST_SEEDS}
    assert groups[0].name == "server-1-cnn-41"
    for group in groups:
        asked = group.asked()
        assert group.arms == len({one.name for one in asked.trainings})
        if (group.transport, group.ratio) == ("server", 1.0):
            assert set(group.names) == {
                PLAIN,
                ORDER,
                *(name for name, one in ARMS.items() if "server" in one.transports),
            }
        else:
            plain = ("bsp+overlap",) if group.transport == "ranks" else PLAIN_ARMS
            assert set(group.names) == {PLAIN, *plain, RATES.defaults[group.transport]}
    orders = [group.asked().trainings for group in first_setting() if group.task == "cnn"]
    places = [[one.name for one in order].index("bsp+overlap") for order in orders]
    assert max(places) - min(places) > len(orders[0]) / 2, "an arm is not always early or always late"


def test_each_arm_trains_as_it_was_tuned() -> None:
    task = RATES.tasks["cnn"]
    for transport, tuned in task.arms.items():
        for name in (PLAIN, ORDER):
            assert training(task, transport, name) == Training(
                name, name, 1000, Ways(), TARGET, "adamw", tuned["bsp+overlap"].rate
            )
        for name, rates_of in tuned.items():
            one = training(task, transport, name)
            assert one.learning_rate == rates_of.rate
            assert parse(one.scheme) == ARMS[name].scheme
            assert one.ways.partial == (ARMS[name].layers == "needed")
            assert one.ways.delay_compensation == rates_of.strength
    assert training(task, "server", DEFAULT).ways == Ways(partial=True, prediction="momentum")
    assert training(task, "server", "late, gap").ways.rates == "gap"
    assert training(task, "ranks", DEFAULT).learning_rate != training(task, "server", DEFAULT).learning_rate


def test_quick_and_without_others_are_plain_schemes_and_the_default() -> None:
    (quick,) = claim.groups(quick=True)
    assert quick.names == ("bsp+overlap", DEFAULT)
    assert quick.seed not in SEEDS
    assert {one.iterations for one in quick.asked().trainings} == {60}
    for group in claim.groups(others=False):
        assert group.names == names_of(RATES, group.transport, group.ratio, others=False)
        assert len(group.names) == (4 if group.transport == "server" else 2)


def test_links_carry_what_an_iteration_sends_in_its_time() -> None:
    # Four workers' gradients of 1 MB in 0.5 s.
    assert link_bps("server", 4, 1_000_000, 0.5) == pytest.approx(64e6)
    assert link_bps("ranks", 4, 1_000_000, 0.5) == pytest.approx(24e6)
    assert link_bps("ranks", 2, 1_000_000, 0.5) == pytest.approx(16e6)


def test_a_target_is_reached_where_a_median_of_three_looks_has_it() -> None:
    one = arm(Training("x", "bsp", 1000, target=TARGET), 0.5)
    # The look at 380 is the first above, and the median of three has it one look later.
    assert one.reached == (0.5 * 390, 390)
    assert one.seconds_an_iteration == pytest.approx(0.5)
    assert one.length_seconds == pytest.approx(500)
    assert arm(Training("x", "bsp", 1000, target=TARGET), 0.5, learns=False).reached is None
    assert arm(Training("x", "bsp", 1000), 0.5).reached is None, "it has no target"


def test_the_job_that_calibrates_is_the_requests_own_but_short() -> None:
    asked = first_setting()[0].asked()
    short = lab.calibrating(asked)
    assert (short.task, short.workers, short.accelerator_seconds) == (
        asked.task,
        asked.workers,
        asked.accelerator_seconds,
    )
    (one,) = short.trainings
    assert one.target is None
    assert parse(one.scheme).sending == "after"
    result = arm(one, 1.0)
    assert lab.pass_seconds(result) == 0.5


def test_what_is_saved_is_paired_by_seed_and_compared_with_the_best_plain_scheme() -> None:
    fields = claim.add_up([(group, measured(group)) for group in claim.groups()])
    assert [(one["transport"], one["ratio"]) for one in fields["settings"]] == [
        (transport, ratio) for transport in ("server", "ranks") for ratio in RATIOS
    ]
    first = fields["settings"][0]
    for task, base in (("cnn", 1.6), ("mlp", 1.6), ("transformer", 1.5)):
        found = first["tasks"][task]["arms"][DEFAULT]["against_best_plain"]
        for measure in MEASURES:
            assert found[measure]["reduction"] == pytest.approx(1 - 1 / base)
            assert found[measure]["reduction_ci95"] == pytest.approx([1 - 1 / base] * 2)
    together = first["all"][DEFAULT]["target_seconds"]
    assert together["reduction"] == pytest.approx(1 - (2 / 1.6 + 1 / 1.5) / 3)
    assert (together["pairs"], together["own_never"], together["baseline_never"]) == (12, 0, 0)
    cnn = first["tasks"]["cnn"]
    assert cnn["arms"][PLAIN]["iterations"] == 390
    assert cnn["arms"][DEFAULT]["metric_at_the_end_in_the_study"] == 0.9
    assert cnn["arms"][PLAIN]["metric_at_the_end_in_the_study"] is None, "it was not an arm of the study"
    assert cnn["arms"][DEFAULT]["last_metric"] == pytest.approx(TARGET + 0.1)
    # At all-reduce the best plain scheme is bsp+overlap in each task.
    assert fields["settings"][3]["tasks"]["transformer"]["best_plain"] == "bsp+overlap"


def test_the_headlines_of_the_default_are_told_apart_from_all_others() -> None:
    fields = claim.add_up([(group, measured(group)) for group in claim.groups()])
    said = claim.headline(fields)
    chosen = [one for one in said if one["metric"] == "target_seconds" and one["arm"] == "default"]
    assert [one["family"] for one in chosen] == ["all", *TASK_NAMES]
    assert {one["baseline_arm"] for one in said} == {"best plain"}
    assert {(one["transport"], one["ratio"]) for one in chosen} == {("server", 1.0)}
    assert chosen[0]["reduction"] == pytest.approx(1 - (2 / 1.6 + 1 / 1.5) / 3)
    assert any(one["arm"] == "default, all-reduce, communication 2 times computing" for one in said)
    assert len({(one["arm"], one["family"], one["metric"]) for one in said}) == len(said)
    assert not [one for one in said if one["family"] == "cnn" and one["arm"].startswith("bsp+overlap")]


def test_the_best_plain_scheme_is_that_of_the_same_runs() -> None:
    groups = [group for group in claim.groups() if (group.transport, group.task) == ("server", "cnn")]
    fields = claim.add_up([(group, measured(group)) for group in groups])
    assert {one["tasks"]["cnn"]["best_plain"] for one in fields["settings"]} == {"bsp+overlap"}
    # One of four runs never has the target, and counts twice its length in the choice.
    never = [(group, measured(group, never=("bsp+overlap",) if group.seed == SEEDS[0] else ())) for group in groups]
    assert {one["tasks"]["cnn"]["best_plain"] for one in claim.add_up(never)["settings"]} == {"asp+overlap"}


def test_who_never_has_the_target_is_counted_and_gains_nothing() -> None:
    (group, *others) = [one for one in first_setting() if one.task == "cnn"]
    rest = [(one, measured(one)) for one in others]
    lazy = claim.add_up([(group, measured(group, never=("partial-momentum",))), *rest])["settings"][0]["tasks"]["cnn"]
    found = lazy["arms"][DEFAULT]
    assert found["never"] == 1
    # Twice its length, at the seed's own pace.
    assert found["by_seed"][0] == pytest.approx(2 * 1000 * 1.41)
    assert found["iterations"] == 390, "of those that had it"
    all_plain = ("bsp+overlap", "asp+overlap", "ssp-2+overlap")
    base = claim.add_up([(group, measured(group, never=all_plain)), *rest])
    compared = base["settings"][0]["tasks"]["cnn"]["arms"][DEFAULT]["against_best_plain"]["target_seconds"]
    assert compared["baseline_never"] == 1
    assert compared["baseline"] == pytest.approx(1.6 * (1000 * 1.41 + 390 * (1.42 + 1.43 + 1.44)) / 4)
    said = {one["claim"] for one in claim.headline(base) if one["arm"] == "default"}
    assert sum("never there: 0 of 4 runs, of the best plain scheme 1" in one for one in said) == 2


def test_arms_that_waited_for_processors_are_counted() -> None:
    (group,) = claim.groups(quick=True)
    result = measured(group)
    busy = arm(result.arms[0].training, 1.0, idle=CROWDED_IDLE_SHARE / 2)
    fields = claim.add_up([(group, SaspResult("uml", "2.0", 0.5, 1000, 1e6, (busy, *result.arms[1:])))])
    assert (fields["crowded_arms"], fields["arms"]) == (1, 2)
    assert fields["least_cpu_idle_share"] == CROWDED_IDLE_SHARE / 2


def test_one_seed_has_no_interval_and_all_can_be_shown_drawn_and_written(tmp_path: Path) -> None:
    (quick,) = claim.groups(quick=True)
    for results in ([(quick, measured(quick))], [(group, measured(group)) for group in claim.groups()]):
        fields = claim.add_up(results)
        shown = list(claim.tables(fields))
        assert len(shown) == sum(len(setting["tasks"]) + 1 for setting in fields["settings"])
        claim.plot(fields, tmp_path)
        assert (tmp_path / "sasp.png").stat().st_size > 5000
        summary.write(tmp_path / "summary.json", fields | {"headline": claim.headline(fields)})
        assert json.loads((tmp_path / "summary.json").read_text())["defaults"] == dict(RATES.defaults)
    cells = [str(cell) for table in shown for column in table.columns for cell in column.cells]
    assert "+60%" in cells, "so many more iterations a second"


def test_a_part_of_the_claim_can_be_added_up(tmp_path: Path) -> None:
    """As ``--measured`` asks for it."""
    names = ("server-1-cnn-41", "server-1-cnn-42", "server-1-mlp-42", "server-2-cnn-41", "server-2-mlp-43")
    chosen = [group for group in claim.groups() if group.name in names]
    fields = claim.add_up([(group, measured(group)) for group in chosen])
    first, second = fields["settings"]
    assert first["all"][DEFAULT]["target_seconds"]["reduction"] == pytest.approx(1 - 1 / 1.6), "of seed 42 alone"
    assert second["all"] == {}, "no seed has both tasks"
    assert any("2 families" in one["claim"] for one in claim.headline(fields))
    assert list(claim.tables(fields))
    claim.plot(fields, tmp_path)


def test_nothing_is_saved_that_the_bound_forbids() -> None:
    task = RATES.tasks["cnn"]
    for ratio in RATIOS:
        seconds = bounds.iteration_seconds(task, 0.5, ratio)
        assert seconds["bsp+sasp:1"] == pytest.approx(0.5 * max(1, ratio), rel=0.05)
        assert seconds["bsp+sasp:1"] <= seconds["bsp+sasp"] <= seconds["bsp+overlap"] <= seconds["bsp"]
        assert seconds["bsp"] == pytest.approx(0.5 * (1 + ratio))
    found = bounds.bound(task, 0.5, 2.0, [(100, 150.0), (200, 300.0)])
    assert found["target_seconds"] == pytest.approx(150.0)
    assert found["reduction"] == pytest.approx(1 - 150 / 225)
    assert found["reduction_computing_alone"] == pytest.approx(1 - 75 / 225)


def test_a_result_is_read_as_it_was_written_and_has_a_small_form(tmp_path: Path) -> None:
    (group,) = claim.groups(quick=True)
    result = measured(group)
    save(tmp_path / lab.RESULT, result)
    assert group.read(tmp_path) == result
    assert isinstance(group.asked(), SaspRequest)
    resume.save_small(tmp_path / "small.json", group.asked(), "abc", group.small(result))
    found = resume.load_small(tmp_path / "small.json", group.asked(), "uml", group.answer)
    assert found is not None
    assert found.commit == "abc"
    assert all(len(one.points) == 3 for one in found.result.arms)
    # As text, because one seed has no interval, and what is no number equals nothing.
    assert str(claim.add_up([(group, found.result)])) == str(claim.add_up([(group, result)]))
    assert resume.load_small(tmp_path / "small.json", claim.groups()[0].asked(), "uml", group.answer) is None
    assert resume.load_small(tmp_path / "small.json", group.asked(), "kernel", group.answer) is None


def test_without_the_studys_rates_it_is_said_what_is_missing(known_rates: Path) -> None:
    assert TypeAdapter(Rates).validate_json(known_rates.read_bytes()) == rates.load() == RATES
    known_rates.write_text("{}")
    with pytest.raises(LabError, match="no rates of the study"):
        claim.groups()
    known_rates.unlink()
    with pytest.raises(LabError, match=r"is not there: .* the study, which is not finished; `python -m .*study rates`"):
        claim.groups()


def test_without_pytorch_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PYTHON_SETTING, str(tmp_path / "nothing"))
    with pytest.raises(LabError, match="scripts/setup --frameworks"):
        lab.LAB.run(first_setting()[0].asked(), "auto", tmp_path)
