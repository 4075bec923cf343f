"""Recorded runs are played: two side by side, in step, at any moment."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visits
from tests.support.browser.axe import findings
from tests.support.browser.pages import PAGES, fact, part, rows
from tests.support.browser.recorded_run import JOBS, record
from tests.support.browser.visit import PHONE
from tests.support.controller.cli.console_process import Console

RUNS = {"fair": "fair sharing", "sincronia": "Sincronia"}
RECORDED_PAGES = {address: heading for address, heading in PAGES.items() if "/" not in address}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor(len(RUNS)) as threads:
        list(threads.map(lambda run: record(folder / run[0], *run), RUNS.items()))
    return folder


@pytest.fixture(scope="module")
def console(runs: Path) -> Iterator[Console]:
    console = Console(*(runs / name for name in RUNS), "--no-browser")
    yield console
    console.end()


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Console]]:
    """Serves the runs in a folder until all visits have ended."""
    with ExitStack() as stack:

        def served(folder: Path) -> Console:
            console = Console(folder, "--no-browser")
            stack.callback(console.end)
            return console

        yield served


def test_two_runs_are_played_side_by_side_and_in_step(visits: Visits, console: Console) -> None:
    page = visits(console).go("", "Overview")
    for name, title in RUNS.items():
        expect(fact(_run(page, title), "Policy")).to_contain_text(name)
    _paused(page)
    stopped = _moment(page)
    page.wait_for_timeout(300)
    assert _moment(page) == stopped
    page.get_by_role("combobox", name="speed").select_option("10 ×")
    page.get_by_role("button", name="Play").click()
    bar = page.get_by_role("slider", name="moment of the run")
    expect(bar).to_have_value(_text(_length(page)))
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    for title in RUNS.values():
        over_time = _part_of(page, title, "Jobs over time")
        expect(over_time).to_contain_text("2 of 2 jobs reached 90 % of convergence")
        meters = _part_of(page, title, "Jobs in their order").get_by_role("meter")
        assert [meter.get_attribute("aria-valuenow") for meter in meters.all()] == ["50", "50"]
    page.get_by_role("combobox", name="speed").select_option("0.5 ×")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert _moment(page) < _length(page), "it begins anew"


def test_any_moment_is_reached_by_the_keyboard(visits: Visits, console: Console) -> None:
    page = _paused(visits(console).go("", "Overview"))
    bar = page.get_by_role("slider", name="moment of the run")
    bar.focus()
    page.keyboard.press("Home")
    assert _moment(page) == 0.0
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(bar).to_have_attribute("aria-valuetext", re.compile("^0:00.3 of 0:"))
    page.get_by_role("button", name="one second on").press("Enter")
    expect(bar).to_have_attribute("aria-valuetext", re.compile("^0:01.3 of 0:"))
    page.get_by_role("button", name="one second back").press("Space")
    expect(bar).to_have_attribute("aria-valuetext", re.compile("^0:00.3 of 0:"))
    bar.focus()
    page.keyboard.press("End")
    assert _moment(page) == _length(page)
    expect(_part_of(page, "Sincronia", "Jobs in their order").get_by_role("link")).to_have_text(list(JOBS))
    page.keyboard.press("Home")
    expect(_part_of(page, "Sincronia", "Jobs in their order")).to_contain_text("No job is running.")
    _until(page, "End")
    page.get_by_role("link", name="Jobs", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    expect(_run(page, "Sincronia").get_by_role("row").filter(has_text="large")).to_contain_text("50 %")


def test_a_job_of_a_recorded_run_says_why_it_waited(visits: Visits, console: Console) -> None:
    page = _paused(visits(console).go("jobs/large", "Job large"))
    _until(page, "End")
    sincronia = _part_of(page, "Sincronia", "Why it waits")
    expect(sincronia).to_contain_text(re.compile(r"large waits at h\d (in|e)gress for small"))
    expect(_part_of(page, "fair sharing", "Why it waits")).to_contain_text(
        re.compile(r"large shares h\d (in|e)gress with small: it waits for them .* at most. Nobody is before it.")
    )
    expect(page.get_by_text("What would help")).to_have_count(0)
    # A recording has the use of some ports alone; nobody can tell from it whether a switch counted the others.
    said = re.compile(r"h\d (in|e)gress \(.*\)( is \d+\s% full|: the recording does not say how full it is)")
    expect(sincronia).to_contain_text(said)
    expect(page.get_by_text("no switch counts")).to_have_count(0)


def test_side_by_side_the_table_of_ports_is_not_cut(visits: Visits, console: Console) -> None:
    page = _paused(visits(console).go("jobs/large", "Job large"))
    _until(page, "End")
    by_port = _part_of(page, "Sincronia", "Before it, by port").get_by_role("table")
    assert by_port.evaluate("(table) => table.scrollWidth - table.parentElement.clientWidth") <= 0


@pytest.mark.parametrize(("address", "heading"), [("jobs", "Jobs"), ("hosts", "Hosts"), ("network", "Network")])
def test_side_by_side_no_column_of_a_table_is_cut(visits: Visits, console: Console, address: str, heading: str) -> None:
    page = _paused(visits(console).go(address, heading))
    _until(page, "End")
    if address == "jobs":
        for choice in page.get_by_label("which jobs").all():
            choice.select_option("all")
    tables = page.locator(".table .scroll")
    expect(tables).to_have_count(2)
    cut = "(all) => all.map((one) => one.scrollWidth - one.clientWidth)"
    assert tables.evaluate_all(cut) == [0, 0]


def test_nothing_of_a_recorded_run_can_be_changed(visits: Visits, console: Console) -> None:
    visit = visits(console)
    for address, heading in RECORDED_PAGES.items():
        page = _paused(visit.go(address, heading))
        for button in page.get_by_role("main").get_by_role("button").all():
            assert button.get_attribute("class") == "sort", button.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_no_page_is_wider_than_a_phone(visits: Visits, console: Console, scheme: str) -> None:
    visit = visits(console, size=PHONE, scheme=scheme)
    found = {}
    for address, heading in RECORDED_PAGES.items():
        page = visit.go(address, heading)
        _until(_paused(page), "End")
        width = page.evaluate("() => document.scrollingElement.scrollWidth")
        found[address] = findings(page) + ([f"{width} px wide"] if width > PHONE["width"] else [])
    assert {address: texts for address, texts in found.items() if texts} == {}


def test_a_run_of_events_alone_is_shown_as_far_as_it_goes(
    serve: Callable[[Path], Console], visits: Visits, runs: Path, tmp_path: Path
) -> None:
    shutil.copy(runs / "sincronia" / "events.jsonl", tmp_path)
    visit = visits(serve(tmp_path))
    for address, heading in (RECORDED_PAGES | {"jobs/large": "Job large"}).items():
        page = visit.go(address, heading)
        _until(_paused(page), "End")
    expect(page.get_by_text("nothing was recorded of why this job has its place at this moment")).to_be_visible()
    visit.go("jobs", "Jobs")
    expect(rows(page, "jobs").get_by_role("link")).to_have_text(list(JOBS))
    visit.go("plan", "Plan")
    expect(part(page, "In force: sincronia").get_by_role("link")).to_have_text(list(JOBS))
    visit.go("events", "Events and audit")
    expect(page.get_by_role("cell", name="large is running")).to_be_visible()


def test_of_many_runs_two_are_chosen(
    serve: Callable[[Path], Console], visits: Visits, runs: Path, tmp_path: Path
) -> None:
    for number in range(3):
        shutil.copytree(runs / "fair", tmp_path / f"run-{number}", ignore=shutil.ignore_patterns("facts.json"))
    page = _paused(visits(serve(tmp_path)).go("", "Overview"))
    left, right = (page.get_by_role("combobox", name=f"run on the {side}") for side in ("left", "right"))
    expect(left.locator("option")).to_have_text([f"run-{number}" for number in range(3)])
    expect(_run(page, "run-0")).to_be_visible()
    right.select_option("run-2")
    expect(_run(page, "run-2")).to_be_visible()
    expect(_run(page, "run-1")).to_have_count(0)


def _run(page: Page, title: str) -> Locator:
    return page.get_by_role("group", name=title)


def _part_of(page: Page, title: str, heading: str) -> Locator:
    return _run(page, title).locator("section", has=page.get_by_role("heading", name=heading, level=2))


def _paused(page: Page) -> Page:
    """Pause, unless it has been done before, or the run is over."""
    button = page.locator(".timebar button.main")
    if button.inner_text() == "Pause":
        button.click()  # if the run ends right now it is played once more, to its end
    expect(button).to_have_text("Play")
    return page


def _until(page: Page, key: str) -> None:
    """Go to the begin or the end of the runs."""
    bar = page.get_by_role("slider", name="moment of the run")
    bar.press(key)
    length = _length(page)
    expect(bar).to_have_value(_text({"Home": 0.0, "End": length}[key]))


def _text(seconds: float) -> str:
    return str(seconds).removesuffix(".0")


def _moment(page: Page) -> float:
    return float(page.get_by_role("slider", name="moment of the run").input_value())


def _length(page: Page) -> float:
    return round(float(page.get_by_role("slider", name="moment of the run").get_attribute("max") or "nan"), 1)
