"""Debian's Chromium without a window, driven by Playwright. It reaches nothing but this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAM = "chromium"
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
"""Keep Chromium from calling anybody by itself. The last one resolves no name and no address but the loopback's."""


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A running Chromium, with more flags. Raises RuntimeError where there is none.

    Its sandbox does not work for root, for whom alone it is switched off.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise RuntimeError(f"{PROGRAM} is not installed; scripts/setup installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=[*FLAGS, *flags], chromium_sandbox=os.geteuid() != 0
        )
        try:
            yield browser
        finally:
            browser.close()
