"""With 1,000 jobs a page draws what is on the screen, and stays usable."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.loads.busy_cluster import busy_cluster
from evaluation.bench.support.openflow.bare_switch_process import SETTINGS, bare_switch
from evaluation.bench.support.waiting import wait_until
from tests.browser.conftest import Visits
from tests.support.browser.axe import findings
from tests.support.browser.pages import part, rows

JOBS, HOSTS = 1000, 100
MOST_ROWS = 60


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    places = [(number % HOSTS, (number + 1 + number // HOSTS) % HOSTS) for number in range(JOBS)]
    folder = tmp_path_factory.mktemp("busy") / "controller"
    with (
        busy_cluster(folder, hosts=HOSTS, places=places, table_budget=10_000, **SETTINGS) as controller,
        bare_switch(controller, HOSTS),
    ):
        yield controller


def test_the_table_draws_few_rows_and_finds_each_job(visits: Visits, busy: Controller) -> None:
    page = visits(busy).go("jobs", "Jobs")
    drawn = rows(page, "jobs")
    expect(page.get_by_role("table", name="jobs")).to_have_attribute("aria-rowcount", str(JOBS + 1))
    expect(drawn.first).to_be_visible()
    assert drawn.count() < MOST_ROWS
    page.get_by_role("button", name="Job", exact=True).click()
    expect(drawn.first).to_contain_text("j0")
    table = page.get_by_role("group", name="jobs")
    table.evaluate("(table) => table.scrollTo(0, table.scrollHeight)")
    expect(drawn.last).to_contain_text(f"j{JOBS - 1}")
    expect(drawn.last).to_have_attribute("aria-rowindex", str(JOBS + 1))
    assert drawn.count() < MOST_ROWS
    page.get_by_role("searchbox", name="filter jobs").fill("j777")
    expect(drawn).to_have_count(1)
    expect(page.get_by_text(f"1 of {JOBS:,}", exact=True)).to_be_visible()
    page.get_by_role("searchbox", name="filter jobs").fill("")
    expect(drawn.nth(5)).to_be_visible()
    assert drawn.count() < MOST_ROWS


def test_the_table_is_scrolled_by_the_keyboard(visits: Visits, busy: Controller) -> None:
    page = visits(busy).go("jobs", "Jobs")
    page.get_by_role("button", name="Job", exact=True).click()
    table = page.get_by_role("group", name="jobs")
    table.focus()
    page.keyboard.press("End")
    expect(rows(page, "jobs").last).to_contain_text(f"j{JOBS - 1}")
    expect(table).to_be_focused()

    def goes_home() -> bool:
        # A busy browser may still scroll to the end.
        page.keyboard.press("Home")
        page.wait_for_timeout(500)
        return "j0" in rows(page, "jobs").first.inner_text()

    wait_until(goes_home, 20, what="the scroll to the first job", sleep=lambda _seconds: None)


def test_pages_name_the_first_and_count_the_others(visits: Visits, busy: Controller) -> None:
    visit = visits(busy)
    page = visit.go("", "Overview")
    expect(part(page, "Jobs in their order").get_by_role("link", name="all 1,000 jobs")).to_be_visible()
    visit.go("plan", "Plan")
    expect(part(page, "In force")).to_be_visible()
    assert part(page, "In force").get_by_role("link").count() < JOBS
    visit.go("jobs/j999", "Job j999")
    expect(part(page, "Why it waits").get_by_role("status")).to_contain_text(
        re.compile(r"j999 waits at h\d+ (in|e)gress")
    )


def test_the_past_of_many_jobs_is_read_minute_by_minute(visits: Visits, busy: Controller) -> None:
    visit = visits(busy)
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.go("jobs", "Jobs")
    expect(rows(visit.page, "jobs").first).to_be_visible()
    assert [url for url in asked if "/v1/history" in url] == [f"{busy.url}/v1/history?ports=&step=60"]


def test_many_hosts_are_squares_in_the_colour_of_their_class(visits: Visits, busy: Controller) -> None:
    page = visits(busy).go("network", "Network")
    graph = page.get_by_role("img", name=f"{HOSTS} hosts, 1 switch, {HOSTS} links")
    expect(graph.locator("path[class*='stroke-']").first).to_be_attached()
    corners = "".join(path.get_attribute("d") or "" for path in graph.locator("path").all())
    assert corners.count("M") == HOSTS, "a square a host"
    assert graph.locator("*").count() < HOSTS
    assert findings(page) == []
