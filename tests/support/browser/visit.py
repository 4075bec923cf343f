"""A visit to the console in a browser of its own, which fails at its end if the page did what it must never do."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, expect

WIDE = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)
_KEPT = """async () => ({
  local: {...localStorage}, session: {...sessionStorage}, cookie: document.cookie, name: window.name,
  databases: (await indexedDB.databases()).map((one) => one.name), caches: await caches.keys(), state: history.state,
})"""
_NOTHING = {"local": {}, "session": {}, "cookie": "", "name": "", "databases": [], "caches": [], "state": None}


class Visit:
    """One page, with nothing of earlier ones. ``expected``: what its console may say, because the test causes it."""

    def __init__(
        self,
        browser: Browser,
        url: str,
        *,
        token: str | None = None,
        size: ViewportSize = WIDE,
        scheme: str = "light",
        expected: Sequence[str] = (),
    ) -> None:
        self.url = url
        self.token = token
        self.faults: list[str] = []
        self._expected = [re.compile(text) for text in expected]
        colours: Any = scheme
        self.context = browser.new_context(viewport=size, color_scheme=colours, reduced_motion="reduce")
        self.page: Page = self.context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.faults.append(f"error of the page: {error}"))
        self.context.on("request", self._see)

    def go(self, address: str = "", heading: str | None = None) -> Page:
        """Show a page of the console by its address, such as ``jobs/a``. Returns it when its heading is there."""
        is_first = self.page.url == "about:blank"
        self.page.goto(f"{self.url}/#/{address}")
        if is_first and self.token is not None:
            self.sign_in(self.token)
        if heading is not None:
            expect(self.page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        return self.page

    def sign_in(self, token: str) -> None:
        """Answer the dialog that asks for a token."""
        self.page.get_by_role("textbox", name="Token").fill(token)
        self.page.get_by_role("button", name="Continue").click()

    def end(self) -> list[str]:
        """Close the page. Returns what was wrong with it."""
        kept = self.page.evaluate(_KEPT)
        if kept != _NOTHING or self.context.cookies():
            self.faults.append(f"the page keeps {json.dumps(kept)} and the cookies {self.context.cookies()}")
        if self.token is not None and self.token in self.page.url + self.page.content():
            self.faults.append(f"the token is in the address or in the page: {self.page.url}")
        self.context.close()
        return self.faults

    def _hear(self, message: ConsoleMessage) -> None:
        text = f"{message.text} {message.location.get('url', '')}"
        if message.type in ("error", "warning") and not any(one.search(text) for one in self._expected):
            self.faults.append(f"{message.type} in the browser's console: {text}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:")):
            self.faults.append(f"a request to elsewhere: {request.url}")
        if self.token is not None and self.token in request.url:
            self.faults.append(f"the token is in the address of a request: {request.url}")
