"""``python -m docs.pictures RESULTS``: the pictures of the console in the docs, from the runs of ``scripts/demo``.

``RESULTS`` is the folder of the demo's results. A browser shows the console of its runs, and pages of it become the
files ``docs/figures/console*``. It takes Debian's Chromium, which ``scripts/setup`` installs for the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from evaluation.bench.support.browser.chromium import chromium

FIGURES = Path(__file__).parent / "figures"
WIDTH, HEIGHT = 1280, 800
FRAMES = 36
FRAME_MS = 180
LAST_FRAME_MS = 3000
MOVING_WIDTH = 960
QUALITY = 82
STILL = 0.4
"""The other pages are shown at this share of the runs."""
PAGES = ("Plan", "Network")
JOB = "job05-gpt2-small"
SETTLE_MS = 1500


@contextmanager
def served(results: Path) -> Iterator[str]:
    """Serve the console of the recorded runs in ``results``. Yields its address."""
    command = [str(Path(sys.executable).with_name("trainyard")), "console", str(results), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
        finally:
            server.terminate()


def go(page: Page, share: float) -> None:
    """Show the moment at this share of the runs."""
    bar = page.get_by_label("moment of the run")
    most = float(bar.get_attribute("max") or 0)
    bar.evaluate(
        "(bar, time) => { bar.value = time; bar.dispatchEvent(new Event('input', {bubbles: true})); }",
        round(share * most, 1),
    )
    page.wait_for_timeout(FRAME_MS)


def moving(page: Page) -> None:
    """Write the run of the first page as a moving picture."""
    frames = []
    for number in range(1, FRAMES + 1):
        go(page, number / FRAMES)
        frame = Image.open(BytesIO(page.screenshot())).convert("RGB")
        size = (MOVING_WIDTH, round(frame.height * MOVING_WIDTH / frame.width))
        frames.append(frame.resize(size, Image.Resampling.LANCZOS))
    times = [FRAME_MS] * (FRAMES - 1) + [LAST_FRAME_MS]
    frames[0].save(
        FIGURES / "console.webp",
        save_all=True,
        append_images=frames[1:],
        duration=times,
        loop=0,
        quality=QUALITY,
        method=6,
    )


def still(page: Page, name: str) -> None:
    """Write the page as it is."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.save(FIGURES / f"console-{name}.webp", quality=QUALITY, method=6)


def main(results: Path) -> None:
    """Write the pictures."""
    with served(results) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(url)
        page.get_by_role("button", name="Pause").click()
        moving(page)
        go(page, STILL)
        for name in PAGES:
            page.get_by_role("link", name=name, exact=True).click()
            page.wait_for_timeout(SETTLE_MS)
            still(page, name.lower())
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_role("link", name=JOB).last.click()
        page.wait_for_timeout(SETTLE_MS)
        still(page, "job")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
