"""All can be done without a mouse: by Tab, Enter, Space, Escape and the arrows."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.support.browser.cluster import Cluster
from tests.support.browser.pages import part, rows

MOST_STOPS = 60
_FOCUSED = """() => {
  const focused = document.activeElement;
  return focused.getAttribute("aria-label") ?? focused.labels?.[0]?.textContent ?? focused.textContent;
}"""


def test_the_first_stop_skips_the_menu(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("jobs", "Jobs")
    expect(rows(page, "jobs").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox", name="filter jobs")).to_be_focused()


def test_the_token_is_given_by_the_keyboard(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster)
    token, visit.token = visit.token, None
    page = visit.go()
    expect(page.get_by_role("textbox", name="Token")).to_be_focused()
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    expect(page.get_by_text("night, operator")).to_be_visible()
    visit.token = token


def test_from_the_menu_to_a_job_that_waits(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("", "Overview")
    _tab_to(page, "Jobs")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()
    expect(rows(page, "jobs").first).to_be_visible()
    _tab_to(page, "filter jobs")
    page.keyboard.type("vision")
    expect(rows(page, "jobs")).to_have_count(2)
    _tab_to(page, "Job")
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="Job")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Space")
    expect(page.get_by_role("columnheader", name="Job")).to_have_attribute("aria-sort", "descending")
    assert _focused(page).startswith("Job"), "it stays where it was"
    _tab_to(page, "vision-large")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Job vision-large", level=1)).to_be_visible()
    expect(part(page, "Why it waits").get_by_role("status")).to_contain_text("vision-large waits at")
    _tab_to(page, "speech-night")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Job speech-night", level=1)).to_be_visible()


def test_what_would_help_is_asked_by_enter(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("jobs/vision-large", "Job vision-large")
    expect(part(page, "What would help")).to_be_visible()
    _tab_to(page, "Weight: more counts more")
    page.keyboard.type("100")
    page.keyboard.press("Enter")
    expect(part(page, "What would help").get_by_role("status")).to_contain_text("With weight 100")
    assert _focused(page) == "Weight: more counts more"


def test_a_policy_is_chosen_by_its_letters_and_arrows(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("plan", "Plan")
    expect(part(page, "In force")).to_be_visible()
    _tab_to(page, "Compare with the plan of")
    page.keyboard.type("fifo")
    expect(part(page, "Dry run, not applied: fifo")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(part(page, "Dry run, not applied: fifo-lm")).to_be_visible()


def test_a_dialog_is_opened_and_left(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("settings", "Settings")
    expect(part(page, "Off switch")).to_be_visible()
    _tab_to(page, "Pause")
    for leave in ("Escape", "Enter"):
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Pause?")
        expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
        page.keyboard.press(leave)
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("button", name="Pause")).to_be_focused()
    assert cluster.call("GET", "/v1/status").json()["paused"] is False


def test_events_are_hidden_by_space_and_scrolled_by_arrows(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("events", "Events and audit")
    audit = page.get_by_role("group", name="audit, the newest first")
    expect(audit).to_be_visible()
    _tab_to(page, "plan")
    page.keyboard.press("Space")
    expect(page.get_by_role("checkbox", name="plan")).not_to_be_checked()
    _tab_to(page, "audit, the newest first")
    expect(audit).to_be_focused()


def _focused(page: Page) -> str:
    return str(page.evaluate(_FOCUSED)).strip()


def _tab_to(page: Page, name: str) -> None:
    """Press Tab until what has this name is focused. It must show that it is."""
    stops = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        stops.append(_focused(page).removesuffix(" ▴").removesuffix(" ▾"))
        if stops[-1] == name:
            outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"{name} does not show that it is focused"
            return
    raise AssertionError(f"Tab does not lead to {name}, but to {stops}")
