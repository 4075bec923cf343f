"""Hosts that ask to be added, on the hosts page: what an operator sees and decides, and what others are not offered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visits
from tests.support.browser.axe import findings
from tests.support.browser.pages import part, rows
from tests.support.browser.visit import PHONE
from tests.support.controller.api.roles_yard import RolesYard

TABLE = "hosts that ask to be added"
MANY_ADDRESSES = ["10.0.0.9", "10.0.1.9", "10.0.2.9", "10.0.3.9"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    yard = RolesYard(tmp_path_factory.mktemp("enrolments"), enrolment={})
    try:
        yield yard.start()
    finally:
        yard.stop()


@pytest.fixture
def yard(shared: RolesYard) -> Iterator[RolesYard]:
    yield shared
    for host in hosts(shared):
        if host["state"] != "listed":
            assert shared.call("DELETE", f"/v1/hosts/{host['name']}").ok


def hosts(yard: RolesYard) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yard.call("GET", "/v1/hosts").json()["hosts"]
    return found


def ask(yard: RolesYard, number: int, **changed: Any) -> None:
    told = {"addresses": [f"10.0.0.{number}"], "token_sha256": f"{number:064x}", "mac": f"02:00:00:00:00:{number:02x}"}
    reply = yard.by("rack", "PUT", f"/v1/hosts/h{number}", {"request": told | changed})
    assert reply.ok, reply.text


def row(page: Page, host: str) -> Locator:
    return rows(page, TABLE).filter(has_text=re.compile(f"^{host}"))


def test_an_operator_sees_every_interface_of_a_host_that_asks(visits: Visits, yard: RolesYard) -> None:
    page = visits(yard).go("hosts", "Hosts")
    links = [
        {"interface": f"eth{n}", "addresses": [f"10.{n}.0.7", f"fd00:{n + 1}::7"], "mac": f"02:00:00:00:0{n}:07"}
        for n in (0, 1)
    ]
    ask(yard, 7, interface="eth0", links=links)
    expect(row(page, "h7")).to_contain_text("10.0.0.7, 2 interfaces")
    row(page, "h7").get_by_role("button", name="Approve h7").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("10.1.0.7, fd00:2::7; MAC address 02:00:00:00:01:07")
    dialog.get_by_role("button", name="Approve").click()
    expect(part(page, "Ask to be added")).to_contain_text("h7 is approved.")
    expect(rows(page, "hosts").filter(has_text=re.compile("^h7"))).to_contain_text("10.0.0.7, 2 interfaces")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_operator_sees_who_asks_and_approves(visits: Visits, yard: RolesYard, scheme: str) -> None:
    visit = visits(yard, scheme=scheme)
    page = visit.go("hosts", "Hosts")
    expect(part(page, "Ask to be added")).to_have_count(0)
    ask(yard, 7, egress_bps=25e9, ingress_bps=25e9)
    expect(row(page, "h7")).to_contain_text("10.0.0.7")
    expect(row(page, "h7")).to_contain_text("25 Gbit/s")
    assert findings(page) == []
    page.get_by_role("button", name="Approve h7").click()
    dialog = page.get_by_role("dialog", name="Approve h7?")
    expect(dialog).to_contain_text("02:00:00:00:00:07")
    expect(dialog).to_contain_text("127.0.0.1")
    dialog.get_by_role("button", name="Cancel").click()
    assert {host["name"]: host["state"] for host in hosts(yard)}["h7"] == "pending"
    page.get_by_role("button", name="Approve h7").click()
    dialog.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status").filter(has_text="h7 is approved.")).to_be_visible()
    expect(row(page, "h7")).to_have_count(0)
    expect(rows(page, "hosts").filter(has_text="h7")).to_contain_text("silent")


def test_an_operator_refuses_and_forgets(visits: Visits, yard: RolesYard) -> None:
    ask(yard, 7)
    page = visits(yard).go("hosts", "Hosts")
    page.get_by_role("button", name="Refuse h7").click()
    expect(row(page, "h7")).to_contain_text("refused")
    expect(page.get_by_role("button", name="Refuse h7")).to_have_count(0)
    page.get_by_role("button", name="Forget h7").click()
    page.get_by_role("dialog", name="Forget h7?").get_by_role("button", name="Forget").click()
    expect(row(page, "h7")).to_have_count(0)
    assert "h7" not in {host["name"] for host in hosts(yard)}


def test_two_that_ask_for_the_same_are_shown_so_and_only_one_is_approved(visits: Visits, yard: RolesYard) -> None:
    ask(yard, 7)
    ask(yard, 8, addresses=["10.0.0.7"])
    page = visits(yard, expected=["status of 409 .*/v1/hosts/h8"]).go("hosts", "Hosts")
    expect(row(page, "h8")).to_contain_text("the address 10.0.0.7 is that of h7, which waits too")
    for name in ("h7", "h8"):
        page.get_by_role("button", name=f"Approve {name}").click()
        page.get_by_role("dialog", name=f"Approve {name}?").get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status").filter(has_text=name)).to_be_visible()
    expect(page.locator(".bad-news")).to_have_text("h8 cannot be approved: the address 10.0.0.7 is that of h7")


def test_a_viewer_sees_who_asks_and_is_offered_no_decision(visits: Visits, yard: RolesYard) -> None:
    ask(yard, 7)
    page = visits(yard, "board").go("hosts", "Hosts")
    expect(row(page, "h7")).to_contain_text("waits")
    expect(page.get_by_role("button", name="Approve h7")).to_have_count(0)
    expect(page.get_by_role("button", name="Refuse h7")).to_have_count(0)


def test_on_a_phone_the_decision_is_there(visits: Visits, yard: RolesYard) -> None:
    ask(yard, 9, addresses=MANY_ADDRESSES)
    page = visits(yard, size=PHONE).go("hosts", "Hosts")
    expect(page.get_by_role("button", name="Approve h9")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
