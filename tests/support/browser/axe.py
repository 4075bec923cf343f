"""What hinders people who cannot see or use a mouse, as axe-core finds it."""

from __future__ import annotations

from importlib.resources import files

from playwright.sync_api import Page

_SOURCE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.flatMap((one) =>
  one.nodes.map((node) => `${one.impact}: ${one.id} at ${node.target.join(" ")}: ${node.failureSummary}`))"""


def findings(page: Page) -> list[str]:
    """Returns what axe-core finds on a page, a text each, which begins with its impact."""
    if not page.evaluate("() => 'axe' in globalThis"):
        page.evaluate(_SOURCE)
    found: list[str] = page.evaluate(_RUN)
    return found
