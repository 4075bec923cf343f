"""Changes by an operator, which are shown before they are made; and what happens meanwhile, which appears by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from evaluation.bench.support.waiting import wait_until
from tests.browser.conftest import Visits
from tests.support.browser.axe import findings
from tests.support.browser.cluster import Cluster, running_cluster
from tests.support.browser.pages import fact, part, rows
from tests.support.controller.api.cases import spec

REFRESH_MS = 6000
"""Longer than the pages' pause between two looks."""


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("changing")) as cluster:
        yield cluster


def moves_under(cluster: Cluster, policy: str) -> list[str]:
    """Returns which jobs would wait less or longer under a policy, as the API says."""
    there = cluster.call("GET", f"/v1/plan?policy={policy}").json()
    waits = [{job: wait["seconds_before"] + wait["seconds_beside"] for job, wait in plan["waits"].items()}
             for plan in (there, there["in_force"])]  # fmt: skip
    changes = {job: seconds - waits[1][job] for job, seconds in waits[0].items()}
    assert max(changes.values()) > 0, "who went first shares now, and waits longer"
    return [f"{job} waits {'less' if by < 0 else 'longer'}" for job, by in changes.items() if abs(by) > 0.05]


def test_what_another_policy_would_change_is_shown_before_it_does(visits: Visits, changing: Cluster) -> None:
    page = visits(changing).go("settings", "Settings")
    moves = moves_under(changing, "fair")
    page.get_by_label("Policy").select_option("fair")
    page.get_by_label("Period in seconds").fill("2")
    dialog = _press(page, "Show what would change", "Change the settings?")
    expect(dialog).to_contain_text("policy: sincronia → fair")
    expect(dialog).to_contain_text("period: 1 s → 2 s")
    expect(dialog).to_contain_text(f"{len(moves)} jobs would wait less or longer")
    assert sorted(dialog.get_by_role("listitem").all_inner_texts()[2:]) == sorted(moves)
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert changing.call("GET", "/v1/settings").json()["policy"] == "sincronia"
    dialog = _press(page, "Show what would change", "Change the settings?")
    dialog.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status").filter(has_text="Done.")).to_be_visible()
    settings = changing.call("GET", "/v1/settings").json()
    assert (settings["policy"], settings["period_seconds"]) == ("fair", 2.0)
    expect(fact(part(page, "In force"), "Policy")).to_contain_text("fair")
    expect(page.locator(".signs")).to_contain_text("fair")
    changing.call("PATCH", "/v1/settings", {"policy": "sincronia", "period_seconds": 1.0})


def test_a_setting_that_cannot_be_is_refused_with_the_reason(visits: Visits, changing: Cluster) -> None:
    page = visits(changing, expected=["status of 422 .*/v1/settings"]).go("settings", "Settings")
    page.get_by_label("Period in seconds").fill("3000")
    _press(page, "Show what would change", "Change the settings?").get_by_role("button", name="Change").click()
    expect(page.get_by_role("status").filter(has_text="period_seconds: ")).to_be_visible()
    assert changing.call("GET", "/v1/settings").json()["period_seconds"] == 1.0


def test_pause_and_resume_are_asked_before_they_happen(visits: Visits, changing: Cluster) -> None:
    page = visits(changing).go("settings", "Settings")
    _press(page, "Pause", "Pause?").get_by_role("button", name="Cancel").click()
    assert changing.call("GET", "/v1/status").json()["paused"] is False
    dialog = _press(page, "Pause", "Pause?")
    expect(dialog).to_contain_text("nothing is enforced")
    dialog.get_by_role("button", name="Pause").click()
    expect(fact(part(page, "In force"), "Enforcement")).to_contain_text("paused")
    expect(page.locator(".signs")).to_contain_text("paused")
    wait_until(lambda: changing.call("GET", "/v1/status").json()["paused"], what="the pause")
    _press(page, "Resume", "Resume?").get_by_role("button", name="Resume").click()
    expect(fact(part(page, "In force"), "Enforcement")).to_contain_text("on")
    expect(page.locator(".signs")).not_to_contain_text("paused")
    wait_until(lambda: not changing.call("GET", "/v1/status").json()["paused"], what="the end of the pause")


def test_what_happens_appears_by_itself(visits: Visits, changing: Cluster) -> None:
    visit = visits(changing)
    page = visit.go("events", "Events and audit")
    expect(page.get_by_text("Nothing has happened.")).to_be_visible()
    changing.call("PUT", "/v1/jobs/newcomer", spec(5100))
    lines = page.get_by_role("group", name="events, the newest first").locator("tbody tr")
    waiting = lines.filter(has_text="newcomer is waiting")
    expect(waiting).to_have_count(1)
    expect(lines.filter(has_text=re.compile(r"sincronia put plan \d+ in force"))).not_to_have_count(0)
    changing.report(1, "newcomer")
    expect(lines.filter(has_text="newcomer is running")).to_have_count(1)
    page.get_by_role("checkbox", name="job").uncheck()
    expect(waiting).to_have_count(0)
    visit.go("jobs", "Jobs")
    row = page.get_by_role("row").filter(has_text="newcomer")
    expect(row).to_contain_text("running")
    for step in range(2, 4):
        changing.report(step, "newcomer")
        expect(row.get_by_role("meter", name="progress of newcomer")).to_have_attribute("aria-valuenow", str(2 * step))
    expect(row.get_by_role("img", name=re.compile("^accuracy: 0.57"))).to_be_visible()
    changing.call("DELETE", "/v1/jobs/newcomer")
    expect(row).to_have_count(0)


def test_what_a_job_declares_anew_is_shown_and_its_page_says_when_it_has_ended(
    visits: Visits, changing: Cluster
) -> None:
    # The page may ask why the job waits, or for its history, before it hears that it has ended.
    visit = visits(changing, expected=[r"status of 40[49] .*[/=]anew"])
    page = visit.go("jobs", "Jobs")
    row = page.get_by_role("row").filter(has_text="anew")
    for user in ("ann", "cem"):
        changing.call("PUT", "/v1/jobs/anew", spec(5102, user=user))
        expect(row).to_contain_text(user)
    changing.report(1, "anew")
    visit.go("jobs/anew", "Job anew")
    expect(part(page, "Why it waits").get_by_role("status")).to_be_visible()
    changing.report(2, "anew", ended=True)
    expect(part(page, "It waits no more")).to_contain_text("The job is ended: it is not in the plan.")
    changing.call("DELETE", "/v1/jobs/anew")
    expect(page.get_by_text("There is no job anew now.")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(REFRESH_MS)
    assert [url for url in asked if "anew" in url] == []


def test_what_is_tried_is_renewed_with_the_answer_above_it(visits: Visits, changing: Cluster) -> None:
    page = visits(changing).go("jobs/vision-large", "Job vision-large")
    helps = part(page, "What would help")
    helps.get_by_role("button", name="Try weights 2 and 4").click()
    outcome = helps.get_by_role("status")
    expect(outcome).to_contain_text("as the answer above. Both are renewed")
    before = outcome.inner_text()
    changing.call("PUT", "/v1/jobs/newcomer", spec(5103, demand=[{"src": "h2", "dst": "h1", "bytes": 2e6}]))
    longer = re.compile(r"As it is .weight 1.: it waits 2\.3\ss at most")
    expect(outcome.get_by_role("listitem").first).to_contain_text(longer, timeout=3 * REFRESH_MS)
    assert _plan_of(outcome.inner_text()) > _plan_of(before)
    # Both are read in one turn of the browser.
    above, tried = page.evaluate("() => ['.answer', '.outcome'].map((one) => document.querySelector(one).innerText)")
    (until,) = re.findall(r"so all is served after ([\d.]+)\ss at most", above)
    assert f"Served after {until}\u00a0s at most." in tried
    changing.call("DELETE", "/v1/jobs/newcomer")
    helps.get_by_role("button", name="Close").click()
    expect(outcome).to_have_count(0)
    expect(part(page, "Why it waits").get_by_role("status")).not_to_contain_text("newcomer")


def _plan_of(text: str) -> int:
    """Returns the number of the plan that an outcome is of."""
    (number,) = re.findall(r"Of plan (\d+), made at", text)
    return int(number)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_metric_of_a_job_is_drawn_as_it_comes(visits: Visits, changing: Cluster, scheme: str) -> None:
    page = visits(changing, scheme=scheme).go("jobs/vision-small", "Job vision-small")
    before = changing.call("GET", "/v1/jobs/vision-small").json()["iterations_done"]
    expect(part(page, "Why it waits").get_by_role("status")).to_be_visible()
    for step in (1, 2):
        changing.report(before + step, "vision-small")
        progress = fact(part(page, "State"), "Progress")
        expect(progress).to_contain_text(f"iteration {before + step:.0f} of 50")
    chart = page.get_by_role("img", name="accuracy by iteration, now 0.")
    expect(chart.locator("svg.main-svg").first).to_be_visible()
    expect(chart.locator(".scatterlayer path.js-line")).to_have_count(1)
    assert findings(page) == []


def test_what_was_unfolded_stays_so_when_something_happens(visits: Visits, changing: Cluster) -> None:
    page = visits(changing).go("events", "Events and audit")
    record = page.get_by_role("row").filter(has_text="PUT /v1/jobs/lonely")
    expect(record.locator("pre")).to_be_hidden()
    record.get_by_text("before and after").click()
    expect(record.locator("pre")).to_be_visible()
    changing.report(4, "vision-small")
    changing.call("PUT", "/v1/jobs/passer-by", spec(5101))
    expect(page.get_by_role("cell", name="passer-by is waiting")).to_be_visible()
    expect(record.locator("pre")).to_be_visible()
    changing.call("DELETE", "/v1/jobs/passer-by")


def test_a_problem_appears_and_goes_by_itself(visits: Visits, changing: Cluster) -> None:
    page = visits(changing).go("", "Overview")
    problems = part(page, "Problems").get_by_role("listitem")
    expect(problems).to_have_count(1)
    changing.call("PATCH", "/v1/settings", {"pause": True})
    expect(problems.filter(has_text="an operator has paused")).to_have_count(1)
    changing.call("PATCH", "/v1/settings", {"pause": False})
    expect(problems).to_have_count(1)


def test_after_a_restart_of_the_controller_the_page_goes_on(visits: Visits, changing: Cluster) -> None:
    expected = [r"net::ERR_\w+ ", r"status of 503 "]
    page = visits(changing, expected=expected).go("jobs", "Jobs")
    expect(rows(page, "jobs")).to_have_count(7)
    changing.stop()
    expect(page.get_by_role("status").filter(has_text="No connection since")).to_contain_text("Trying again.")
    expect(rows(page, "jobs")).to_have_count(7)
    changing.start()
    expect(page.get_by_text("No connection since")).to_have_count(0, timeout=30_000)
    expect(rows(page, "jobs")).to_have_count(0)
    changing.call("PUT", "/v1/jobs/afterwards", spec(5100))
    expect(rows(page, "jobs")).to_have_count(1)
    expect(rows(page, "jobs").first).to_contain_text("afterwards")
    page.get_by_role("link", name="Events and audit").click()
    expect(page.get_by_role("cell", name="afterwards is waiting")).to_be_visible()


def _press(page: Page, button: str, dialog: str) -> Locator:
    page.get_by_role("button", name=button, exact=True).click()
    return page.get_by_role("dialog", name=dialog)
