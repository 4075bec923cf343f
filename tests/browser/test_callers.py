"""Who may see and change what: the token is asked for, and what a role may not do is not offered."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visits
from tests.support.browser.cluster import Cluster
from tests.support.browser.pages import part, rows

WRONG = "no-token-of-anybody"


def test_a_wrong_token_is_refused_with_the_reason_and_a_reload_asks_again(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster, expected=[r"status of 401 .*/v1/caller$"])
    token, visit.token = visit.token, None
    page = visit.go()
    dialog = page.get_by_role("dialog", name="Token")
    expect(dialog).to_contain_text("This controller asks for a token")
    expect(dialog.get_by_role("textbox", name="Token")).to_be_focused()
    expect(dialog.get_by_role("alert")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("OverviewConnecting.")
    expect(page.locator("main .bad-news")).to_have_count(0)
    visit.sign_in(WRONG)
    refused = cluster.call("GET", "/v1/caller", token=WRONG).json()["detail"]
    expect(dialog.get_by_role("alert")).to_have_text(f"It was refused: {refused}")
    visit.sign_in(token)
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("night, operator")).to_be_visible()
    page.reload()
    expect(dialog).to_contain_text("This controller asks for a token")
    expect(page.get_by_text("night, operator")).to_have_count(0)
    visit.token = token


def test_a_dialog_that_is_left_asks_again(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster)
    token, visit.token = visit.token, None
    page = visit.go("jobs")
    page.get_by_role("textbox", name="Token").press("Escape")
    expect(page.get_by_role("dialog", name="Token")).to_be_visible()
    visit.sign_in(token)
    expect(rows(page, "jobs").first).to_be_visible()


def test_a_viewer_sees_all_and_is_offered_no_change(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster, "board")
    page = visit.go("settings", "Settings")
    expect(part(page, "In force")).to_contain_text("sincronia")
    expect(page.get_by_text("board, viewer")).to_be_visible()
    expect(page.locator("main").get_by_role("button")).to_have_count(0)
    expect(page.locator("main").get_by_role("combobox")).to_have_count(0)
    visit.go("events", "Events and audit")
    expect(page.get_by_role("heading", name="Audit", exact=True)).to_have_count(0)
    visit.go("jobs", "Jobs")
    expect(rows(page, "jobs")).to_have_count(len(cluster.plan()["classes"]))
    visit.go("jobs/vision-large", "Job vision-large")
    expect(part(page, "What would help").get_by_role("button", name="Show what it would do")).to_be_visible()


def test_a_tenant_sees_its_own_jobs_and_pages_alone(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster, "vision")
    page = visit.go("jobs", "Jobs")
    expect(rows(page, "jobs").get_by_role("link")).to_have_text(["vision-small", "vision-large"])
    menu = page.get_by_role("navigation", name="pages")
    expect(menu.get_by_role("link")).to_have_text(["Overview", "Jobs", "Studies", "Events and audit"])
    rows(page, "jobs").get_by_role("link", name="vision-large").click()
    why = part(page, "Why it waits")
    expect(why.get_by_role("status")).to_contain_text("for another job and vision-small: ")
    expect(page.get_by_text("speech-night")).to_have_count(0)
    expect(part(page, "What would help")).to_have_count(0)
    visit.go("", "Overview")
    expect(part(page, "Jobs in their order").get_by_role("link")).to_have_count(2)
    for what_it_cannot_know in (
        "Ordering cannot help",
        "No switch counts",
        "the order is enforced",
        "null",
        "waits at",
        "what would help",
    ):
        expect(page.locator("main")).not_to_contain_text(what_it_cannot_know)
    for address, heading in (("plan", "Plan"), ("settings", "Settings"), ("network", "Network")):
        visit.go(address, heading)
        expect(page.locator("main")).not_to_contain_text("speech-night")
        expect(page.locator("main").get_by_role("button")).to_have_count(0)
