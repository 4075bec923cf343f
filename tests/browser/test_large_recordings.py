"""A large recording is read in parts: any moment is there soon, and neither side holds the whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.support.browser.large_recording import write_events
from tests.support.controller.cli.console_process import Console

SIZE = 20_000_000
SHARES = (1.0, 0.02, 0.5, 0.47, 0.9, 0.0, 0.73)
SOON_MS = 2000.0
"""On a busy machine; on a quiet one a jump takes a fraction of this."""
STATES = """async (time) => {
  const { Api } = await import("/console/js/data/api.js");
  const { Recorded } = await import("/console/js/data/recorded.js");
  const { apply, emptyState } = await import("/console/js/data/state.js");
  const api = new Api();
  const [recorded] = await Recorded.readAll(api, () => {});
  const reach = async (moment) => {
    recorded.seek(moment);
    while (recorded.isBehind) await new Promise((done) => setTimeout(done, 5));
  };
  const { recordings: [{ parts }] } = await api.get("/recordings");
  const whole = emptyState();
  for (let number = 0; number < parts.length; number += 1) {
    const text = await (await api.open(`/recordings/0/part/${number}`)).text();
    for (const line of text.split("\\n").filter(Boolean)) {
      const event = JSON.parse(line);
      if (event.time <= time) apply(whole, event);
    }
  }
  whole.time = time;
  const told = (state) =>
    JSON.stringify(state, (_name, value) =>
      value instanceof Map
        ? [...value]
        : value && typeof value === "object" && !Array.isArray(value)
          ? Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined).sort())
          : value,
    );
  await reach(time);
  const jumped = told(recorded.state);
  await reach(time / 3);
  await reach(time);
  return [told(whole), jumped, told(recorded.state)];
}"""
JUMP = """async (time) => {
  const newest = () => document.querySelector("tbody tr .time")?.textContent;
  const bar = document.querySelector(".timebar input[type=range]");
  const before = newest();
  const began = performance.now();
  bar.value = String(time);
  bar.dispatchEvent(new Event("input", { bubbles: true }));
  while (newest() === before) await new Promise((done) => requestAnimationFrame(done));
  return performance.now() - began;
}"""


@pytest.fixture(scope="module")
def length(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("large")
    return folder, write_events(folder / "events.jsonl", SIZE)


@pytest.fixture(scope="module")
def console(length: tuple[Path, float]) -> Iterator[Console]:
    console = Console(length[0], "--no-browser")
    yield console
    console.end()


@pytest.mark.parametrize("share", [0.31, 0.66, 1.0])
def test_a_moment_that_is_jumped_to_is_as_if_all_had_been_played(
    visits: Visits, console: Console, length: tuple[Path, float], share: float
) -> None:
    page = _paused(visits(console).go("settings"))
    played, jumped, back = page.evaluate(STATES, round(length[1] * share, 1))
    assert len(played) > 100_000
    assert jumped == played
    assert back == played


def test_a_jump_reads_little_and_takes_little_time(
    visits: Visits, console: Console, length: tuple[Path, float]
) -> None:
    page = _paused(visits(console).go("events", "Events and audit"))
    read: list[int] = []
    page.on("response", lambda response: read.append(int(response.headers.get("content-length", 0))))
    times, most = [], 0
    for share in SHARES:
        read.clear()
        times.append(page.evaluate(JUMP, length[1] * share))
        page.wait_for_load_state("networkidle")
        most = max(most, sum(read))
    assert most < SIZE / 3, "the state, its part and the next one"
    assert median(times) < SOON_MS


def test_neither_side_holds_the_whole_recording(visits: Visits, console: Console, length: tuple[Path, float]) -> None:
    page = _paused(visits(console).go("events", "Events and audit"))
    for share in SHARES:
        page.evaluate(JUMP, length[1] * share)
    assert _heap(page) < 3 * SIZE, "a part takes some times as much memory as it has bytes"
    assert _resident(console.process.pid) < 100e6


def test_what_cannot_be_read_is_said_and_comes_back(visits: Visits, tmp_path: Path) -> None:
    seconds = write_events(tmp_path / "events.jsonl", 4_000_000)
    console = Console(tmp_path, "--no-browser")
    page = _paused(visits(console, expected=["ERR_CONNECTION_REFUSED"]).go("events", "Events and audit"))
    page.get_by_role("slider").fill("0")
    console.end()
    page.get_by_role("slider").fill(str(int(seconds)))
    expect(page.get_by_text("The recorded run cannot be read")).to_be_visible()
    page.get_by_role("slider").fill("0")
    expect(page.get_by_text("The recorded run cannot be read")).to_be_hidden()


def _heap(page: Page) -> float:
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    found: dict[str, Any] = client.send("Runtime.getHeapUsage")
    client.detach()
    return float(found["usedSize"])


def _paused(page: Page) -> Page:
    page.locator(".timebar button.main", has_text="Pause").click()
    return page


def _resident(pid: int) -> float:
    """Returns the bytes of memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(status.partition("VmRSS:")[2].split()[0]) * 1024
