"""A page that stays open holds no more after a while: what has come is forgotten, and what was drawn is let go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from playwright.sync_api import CDPSession

from tests.browser.conftest import Visits
from tests.support.browser.cluster import TRIALS, Cluster, running_cluster
from tests.support.browser.pages import PAGES
from tests.support.controller.api.cases import spec

ROUNDS = 3
SHOWN_MS = 700
MOST_GROWTH = 1.5e6
"""In bytes for each round. The log grows by as much as events come, up to its bound, and is far below that."""
MANY_PLANS = """async () => {
  const { apply, emptyState } = await import("/console/js/data/state.js");
  globalThis.kept = emptyState();
  const jobs = Array.from({ length: 500 }, (_none, i) => `a-job-with-a-name-${i}`);
  for (let epoch = 0; epoch < 3000; epoch += 1) {
    const classes = JSON.stringify(Object.fromEntries(jobs.map((job, i) => [job, (i + epoch) % 2])));
    const data = { epoch, policy: "jpas", order: [JSON.parse(JSON.stringify(jobs))], classes: JSON.parse(classes) };
    apply(globalThis.kept, { id: epoch, event: "plan", time: epoch, data });
  }
  return globalThis.kept.log.length;
}"""


@pytest.fixture
def lively(tmp_path: Path) -> Iterator[Cluster]:
    """Jobs report, come and go all the time. Some are gone when the page asks for them."""
    with running_cluster(tmp_path / "cluster") as cluster:
        ended = Event()
        thread = Thread(target=_feed, args=(cluster, ended))
        thread.start()
        try:
            yield cluster
        finally:
            ended.set()
            thread.join()


def test_a_page_that_stays_open_and_is_fed_does_not_grow(lively: Cluster, visits: Visits) -> None:
    visit = visits(lively, expected=[r"404 .*/v1/jobs/guest-\d+$"])
    session = visit.go("", "Overview").context.new_cdp_session(visit.page)
    found = []
    for _ in range(ROUNDS):
        for address in PAGES:
            visit.go(address)
            visit.page.wait_for_timeout(SHOWN_MS)
        visit.go("settings", "Settings")
        visit.page.wait_for_timeout(SHOWN_MS)
        found.append(_held(session))
    (_, *_), second, last = found
    assert last["bytes"] - second["bytes"] < MOST_GROWTH, found
    assert last["nodes"] < 1.5 * second["nodes"] + 100, found
    assert last["listeners"] < 1.5 * second["listeners"] + 20, found


def test_the_log_of_many_plans_of_many_jobs_is_small(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("settings", "Settings")
    session = page.context.new_cdp_session(page)
    before = _held(session)["bytes"]
    assert page.evaluate(MANY_PLANS) == 2000, "the log is full"
    # The changes of class of each job are its bulk: 500 jobs, 500 changes each.
    assert _held(session)["bytes"] - before < 30e6


def _held(session: CDPSession) -> dict[str, float]:
    """Returns what a page holds after its garbage has been collected."""
    session.send("HeapProfiler.collectGarbage")
    counts: dict[str, Any] = session.send("Memory.getDOMCounters")
    heap: dict[str, Any] = session.send("Runtime.getHeapUsage")
    return {"bytes": heap["usedSize"], "nodes": counts["nodes"], "listeners": counts["jsEventListeners"]}


def _feed(cluster: Cluster, ended: Event) -> None:
    for number in count(4):
        if ended.wait(0.2):
            return
        cluster.report(float(number), "vision-small", "speech-night", "vision-large", *TRIALS)
        cluster.call("PUT", f"/v1/jobs/guest-{number}", spec(6000 + number, demand=[]))
        cluster.call("DELETE", f"/v1/jobs/guest-{number}")
