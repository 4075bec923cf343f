"""Everybody can read the pages: with a screen reader, in the dark, and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Visits
from tests.support.browser.axe import findings
from tests.support.browser.cluster import Cluster
from tests.support.browser.pages import PAGES
from tests.support.browser.visit import PHONE, WIDE
from tests.support.controller.api.cases import spec

SIZES = {"wide": WIDE, "phone": PHONE}


def test_axe_would_find_something(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("", "Overview")
    page.evaluate("() => document.body.append(document.createElement('img'))")
    assert "critical: image-alt" in [text.partition(" at ")[0] for text in findings(page)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_on_any_page(visits: Visits, cluster: Cluster, size: str, scheme: str) -> None:
    visit = visits(cluster, size=SIZES[size], scheme=scheme)
    found = {}
    for address, heading in PAGES.items():
        page = visit.go(address, heading)
        _settled(page)
        found[address] = findings(page)
    assert {address: texts for address, texts in found.items() if texts} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_is_opened(visits: Visits, cluster: Cluster, scheme: str) -> None:
    visit = visits(cluster, scheme=scheme)
    token, visit.token = visit.token, None
    page = visit.go("settings")
    expect(page.get_by_role("dialog", name="Token")).to_be_visible()
    found = findings(page)
    visit.sign_in(token)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog", name="Pause?")).to_be_visible()
    found += findings(page)
    page.keyboard.press("Escape")
    visit.go("plan", "Plan")
    page.get_by_label("Compare with the plan of").select_option("fifo")
    expect(page.get_by_role("heading", name="Dry run, not applied: fifo")).to_be_visible()
    found += findings(page)
    visit.go("jobs/vision-large", "Job vision-large")
    page.get_by_label("Weight").fill("100")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="With weight 100")).to_be_visible()
    found += findings(page)
    assert found == []


@pytest.mark.parametrize("size", [PHONE, ViewportSize(width=320, height=640)], ids=["phone", "small phone"])
def test_no_page_is_wider_than_a_phone(visits: Visits, cluster: Cluster, size: ViewportSize) -> None:
    visit = visits(cluster, size=size)
    wide = {}
    for address, heading in PAGES.items():
        page = visit.go(address, heading)
        _settled(page)
        width = page.evaluate("() => document.scrollingElement.scrollWidth")
        if width > size["width"]:
            wide[address] = width
    assert wide == {}


def test_the_longest_name_has_room_on_a_phone_and_in_the_audit(visits: Visits, cluster: Cluster) -> None:
    name = "x" * 63
    try:
        assert cluster.call("PUT", f"/v1/jobs/{name}", spec(5100)).ok
        visit = visits(cluster, size=PHONE)
        for address, heading in {"": "Overview", "plan": "Plan", f"jobs/{name}": f"Job {name}"}.items():
            page = visit.go(address, heading)
            expect(page.get_by_text(name).first).to_be_visible()
            _settled(page)
            assert page.evaluate("() => document.scrollingElement.scrollWidth") <= PHONE["width"], heading
        audit = visits(cluster).go("events", "Events and audit").get_by_role("group", name="audit, the newest first")
        expect(audit).to_contain_text(name)
        assert audit.evaluate("(box) => box.scrollWidth - box.clientWidth") == 0
    finally:
        cluster.call("DELETE", f"/v1/jobs/{name}")


@pytest.mark.parametrize("width", [340, 390, 560, 760, 900, 1280])
def test_the_names_in_the_graph_can_be_read(visits: Visits, cluster: Cluster, width: int) -> None:
    page = visits(cluster, size=ViewportSize(width=width, height=800)).go("network", "Network")
    expect(page.locator("svg.graph")).to_be_visible()
    _settled(page)
    assert 0.7 <= page.locator("svg.graph").evaluate("(graph) => graph.getScreenCTM().a") <= 1.4


def test_the_theme_is_that_of_the_system_until_another_is_chosen(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster, scheme="dark").go("", "Overview")
    theme = page.get_by_role("button", name="Theme")
    expect(theme).to_have_text("Theme: system")
    assert _brightness(page) < 64
    theme.click()
    expect(theme).to_have_text("Theme: light")
    assert _brightness(page) > 192
    page.emulate_media(color_scheme="light")
    theme.click()
    expect(theme).to_have_text("Theme: dark")
    assert _brightness(page) < 64
    theme.click()
    expect(theme).to_have_text("Theme: system")
    assert _brightness(page) > 192


def _settled(page: Page) -> None:
    expect(page.get_by_text("Connecting.")).to_have_count(0)
    expect(page.get_by_text("Asking the controller.")).to_have_count(0)


def _brightness(page: Page) -> float:
    """Returns how bright the page is, from 0 to 255."""
    colour: str = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    parts = [float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(parts) / 3
