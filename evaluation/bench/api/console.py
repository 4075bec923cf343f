"""The console in a browser: how long its scripts hold up a frame, and what memory it needs, with 1,000 jobs.

A real controller under JPAS with 1,000 hosts at one switch, which counts traffic at each port, and 1,000 jobs of which
ten meet at each of 100 ports. Each job reports once in 5 s, and fifty are the trials of a stage. While the page of the
events is shown, jobs come and go all the time. Chromium shows eight pages of the console for 20 s each, and a trace
says how long scripts ran in each frame: all that ran from one frame's begin to the next one's, nested calls counted
once. Frames without a script are left out, because they would only flatter the result. So is the load of the page.
Beside them is the page of the settings, which shows no jobs and has the same events to follow.

The aims, which were set before the first measurement:

- the 95th percentile of a frame's script time is less than 50 ms on each page;
- after 60 s the page's JavaScript holds less than 100 MB.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from playwright.sync_api import Browser, CDPSession, Page

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.browser.chromium import chromium
from evaluation.bench.support.browser.frames import CATEGORIES, PROCESSOR, TASKS, frame_ms
from evaluation.bench.support.loads.busy_cluster import busy_cluster, register
from evaluation.bench.support.openflow.bare_switch_process import SETTINGS, bare_switch

HOSTS = JOBS = 1000
MEETING = 10
"""So many jobs send from the same host."""
TRIALS = 50
"""So many jobs are the trials of a stage."""
FLOOR = "settings"
EVENTS = "events"
COME_AND_GO_SECONDS = 0.1
"""While the page of the events is shown, another job comes or goes after so many seconds."""
PAGES: Mapping[str, str] = {
    "": "Overview",
    "jobs": "Jobs",
    "network": "Network",
    "plan": "Plan",
    "hosts": "Hosts",
    "jobs/j500": "Job j500",
    "studies": "Studies",
    EVENTS: "Events and audit",
    FLOOR: "Settings",
}
"""Maps the address of each page to its heading."""
PAGE_SECONDS = 20.0
LOAD_SECONDS = 5.0
SETTLE_SECONDS = 30.0
HEAP_SECONDS = 60.0
SWITCH_SECONDS = 120.0
LIMIT_FRAME_MS = 50.0
LIMIT_HEAP_MB = 100.0
_NONE = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class Frames:
    """Of a page: milliseconds of script in each frame that had some, by the clock and of the processor alone.

    ``task_ms`` has all tasks of the main thread: also styles, layout and painting.
    """

    script_ms: tuple[float, ...]
    processor_ms: tuple[float, ...]
    task_ms: tuple[float, ...]


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the controller or the page does not do what it is asked."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            pages, heap_mb = _measure(Path(scratch))
        except AssertionError as error:  # what the processes and the waiting raise
            raise RuntimeError(str(error)) from error
    floor = _p95(pages.pop(FLOOR).script_ms)
    frames = tuple(
        Figure(
            f"Script time of a frame of the console's page {PAGES[address]} with {JOBS} jobs, 95th percentile",
            metric=f"console_frame_p95_{PAGES[address].split()[0].lower()}",
            unit="ms",
            value=_p95(page.script_ms),
            baseline=floor,
            baseline_name=f"the page {PAGES[FLOOR]}",
            ci95=_NONE,
            limit=LIMIT_FRAME_MS,
        )
        for address, page in pages.items()
    )
    heap = Figure(
        f"Memory of the console's JavaScript after {HEAP_SECONDS:.0f} s",
        metric="console_heap",
        unit="MB",
        value=heap_mb["later"],
        baseline=heap_mb["loaded"],
        baseline_name="when the page had loaded",
        ci95=_NONE,
        limit=LIMIT_HEAP_MB,
    )
    details = {PAGES[address]: asdict(page, dict_factory=_digests) for address, page in pages.items()}
    return Bench((*frames, heap), details={"pages": details, "heap_mb": heap_mb})


def _p95(values: tuple[float, ...]) -> float:
    return float(np.quantile(values, 0.95))


def _digests(fields: list[tuple[str, tuple[float, ...]]]) -> dict[str, dict[str, float]]:
    """Returns of each field how many numbers it has, and some of their quantiles."""
    shares = (50, 95, 99, 100)
    return {
        name: {"count": len(values)}
        | {f"p{share}": round(float(np.quantile(values, share / 100)), 3) for share in shares}
        for name, values in fields
    }


def _measure(scratch: Path) -> tuple[dict[str, Frames], dict[str, float]]:
    """Returns the frames of each page by its address, and the memory when all had loaded, later, and at the end."""
    groups = JOBS // MEETING
    places = [(n % groups * MEETING, n % groups * MEETING + 1 + n // groups % (MEETING - 1)) for n in range(JOBS)]
    settings: dict[str, Any] = SETTINGS | {"policy": "jpas", "table_budget": 100_000, "lease_seconds": 3600.0}
    with (
        busy_cluster(scratch / "controller", hosts=HOSTS, places=places, trials=TRIALS, **settings) as controller,
        bare_switch(controller, HOSTS, SWITCH_SECONDS),
        chromium() as browser,
    ):
        _greet(controller)
        time.sleep(SETTLE_SECONDS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        found: dict[str, Frames] = {}
        heap_mb: dict[str, float] = {}
        began = None
        for address, heading in PAGES.items():
            page.goto(f"{controller.url}/#/{address}")
            page.get_by_role("heading", name=heading, level=1).wait_for()
            page.get_by_text("Connecting.").wait_for(state="detached")
            with _coming_and_going(controller) if address == EVENTS else nullcontext():
                page.wait_for_timeout(1e3 * LOAD_SECONDS)
                session = page.context.new_cdp_session(page)
                if began is None:
                    began = time.monotonic()
                    heap_mb["loaded"] = _heap_mb(session)
                elif "later" not in heap_mb and time.monotonic() - began >= HEAP_SECONDS:
                    heap_mb["later"] = _heap_mb(session)
                found[address] = _trace(browser, page)
            sys.stderr.write(f"bench console: {heading}: {asdict(found[address], dict_factory=_digests)}\n")
        heap_mb["end"] = _heap_mb(page.context.new_cdp_session(page))
        assert faults == [], faults
        assert page.get_by_text("No connection for").count() == 0, "the page has lost the controller"
    return found, heap_mb


def _greet(controller: Controller) -> None:
    """Let each host report once, so that all are alive."""
    for number in range(HOSTS):
        body = {"session": "first", "seq": 1, "sent_at": time.time()}
        answer = controller.call("POST", f"/v1/hosts/h{number}/reports", body)
        assert answer.ok, answer.text


@contextmanager
def _coming_and_going(controller: Controller) -> Iterator[None]:
    """Let jobs come and go, one after the other, each of which changes the plan."""
    ended = Event()

    def change() -> None:
        for number in count():
            register(controller, f"guest-{number}", 20_000 + number, ("h0", "h1"))
            if ended.wait(COME_AND_GO_SECONDS):
                return
            controller.call("DELETE", f"/v1/jobs/guest-{number}")

    thread = Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _trace(browser: Browser, page: Page) -> Frames:
    browser.start_tracing(page=page, categories=list(CATEGORIES))
    page.wait_for_timeout(1e3 * PAGE_SECONDS)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return Frames(frame_ms(events), frame_ms(events, length=PROCESSOR), frame_ms(events, TASKS))


def _heap_mb(session: CDPSession) -> float:
    """Returns what JavaScript holds after its garbage has been collected."""
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 2**20
