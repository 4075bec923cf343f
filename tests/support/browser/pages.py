"""The pages of the console, and parts of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from playwright.sync_api import Locator, Page

PAGES: Mapping[str, str] = {
    "": "Overview",
    "jobs": "Jobs",
    "jobs/vision-large": "Job vision-large",
    "plan": "Plan",
    "studies": "Studies",
    "network": "Network",
    "hosts": "Hosts",
    "events": "Events and audit",
    "settings": "Settings",
}
"""Maps the address of each page to its heading."""


def part(page: Page, title: str) -> Locator:
    """Returns the part of a page below a heading."""
    heading = page.get_by_role("heading", name=re.compile(f"^{re.escape(title)}"), level=2)
    return page.locator("section", has=heading)


def fact(within: Locator, name: str) -> Locator:
    """Returns a fact: its value, and what is said of it."""
    return within.locator("div.fact", has=within.page.locator("dt", has_text=re.compile(f"^{re.escape(name)}$")))


def rows(page: Page, table: str) -> Locator:
    """Returns the rows of a table, without its head and without the room of rows that are not drawn."""
    return page.get_by_role("table", name=table).locator("tbody tr:not(.gap)")
