"""Trainers whose workers wait for each other at barriers, by staleness, or not at all."""

from __future__ import annotations

import itertools
import json
import re
import signal

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.trainer.processes import job
from topologies.trainer.__main__ import load_experiment
from topologies.trainer.barriers import files
from topologies.trainer.barriers.waits import waits
from topologies.trainer.runner import InputError


def test_workers_tell_when_they_came_to_each_barrier_where_they_are_asked(lab):
    jobs = [job("server", "ps", ("h1", "h2", "h3")), job("ring", "ring", ("h1", "h2", "h3"), port=5002)]
    run = lab(jobs)
    document = json.loads(run.file.read_text()) | {"barriers": True}
    run.file.write_text(json.dumps(document))
    run.start("h1", "h2", "h3")
    assert {run.wait(host)[0] for host in run.trainers} == {0}
    server, workers = files.read(run.folder, "server", 2)
    for worker in workers:
        assert (len(worker.ready), len(worker.entered)) == (9, 8)
        assert all(later - earlier >= 0.005 for earlier, later in itertools.pairwise(worker.entered))
    barrier_wait = waits(workers, server, 0.005)
    assert barrier_wait.barriers == 7
    spread = [abs(a - b) for a, b in zip(workers[0].entered, workers[1].entered, strict=True)][1:]
    assert barrier_wait.mean_seconds == pytest.approx(sum(spread) / 14, abs=1e-5), "of two workers one waits"
    assert barrier_wait.at_server.mean_seconds >= 0.0
    assert barrier_wait.causes.fan_out_seconds > 0.0
    assert sorted(path.name for path in (run.folder / "barriers").iterdir()) == ["server"], (
        "only parameter servers have"
    )


SYNCS = ("bsp+overlap", "bsp+sasp", "ssp:2", "ssp:2+overlap", "ssp:2+sasp", "asp", "asp+overlap", "asp+sasp:1")


def test_workers_that_run_apart_or_overlap_train_to_the_end_with_all_bytes(lab):
    run = lab([
        job(f"job{n}", "ps", ("h1", "h2", "h3"), port=5001 + n, sync=sync, arrival=0.1 * n)
        for n, sync in enumerate(SYNCS)
    ])  # fmt: skip
    run.start("h1", "h2", "h3")
    output = {host: run.wait(host) for host in run.trainers}
    assert {status for status, _ in output.values()} == {0}, output
    for n, sync in enumerate(SYNCS):
        result = run.result(f"job{n}")
        assert [i for _, i, _ in result.history] == list(range(1, 9)), sync
        seconds = [point[0] for point in result.history]
        assert seconds == sorted(seconds)
        assert seconds[-1] >= 8 * 0.005
        assert (result.failed, result.censored) == (None, False)
        sent, received = map(
            int, re.search(rf"job job{n}: done on h2, (\d+) bytes sent, (\d+) rec", output["h2"][1]).groups()
        )
        assert sent == 8 * 30_001
        # A newer answer may stand for one that was still waiting.
        assert received <= 8 * 30_001
        if sync in {"bsp+overlap", "bsp+sasp", "ssp:2", "asp"}:
            assert received == 8 * 30_001


def test_a_job_with_sasp_that_is_stopped_or_loses_a_peer_ends_as_any_other(lab):
    run = lab([
        job("doomed", "ps", ("h1", "h3"), compute_seconds=0.1, iterations=400, sync="ssp:2+sasp"),
        job("stopped", "ps", ("h1", "h2"), port=5002, compute_seconds=0.1, iterations=400, sync="asp+sasp:2"),
    ])  # fmt: skip
    run.start("h1", "h2", "h3")
    wait_until(lambda: run.iterations_logged("doomed") >= 2 and run.iterations_logged("stopped") >= 2)
    run.trainers["h3"].kill()
    wait_until((run.folder / "done" / "doomed.json").exists)
    for host in ("h2", "h1"):
        run.trainers[host].send_signal(signal.SIGTERM)
    assert (run.wait("h1")[0], run.wait("h2")[0]) == (1, 0)
    doomed, stopped = run.result("doomed"), run.result("stopped")
    assert "h3" in doomed.failed
    assert (stopped.failed, stopped.censored) == (None, True)
    assert 2 <= len(stopped.history) < 400


def test_a_sync_that_cannot_be_is_refused_with_what_would_be_right(lab):
    for changes, why in (
        ({"sync": "sap"}, "it must be bsp, ssp:S"),
        ({"sync": "ssp:0"}, "with 0 it is bsp"),
        ({"sync": "bsp+sasp", "architecture": "ring"}, "needs a parameter server"),
    ):
        run = lab([job("a", "ps", ("h1", "h2")) | changes])
        with pytest.raises(InputError, match=re.escape(why)):
            load_experiment(run.file)
