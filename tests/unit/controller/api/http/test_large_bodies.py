"""Large bodies: another process checks them, what is made of them is the same, and nobody waits meanwhile."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import eventlet
import pytest

from controller.access.caller import ANYBODY, Caller, Role
from controller.api.bodies import work
from controller.api.bodies.body import read_stage
from controller.api.bodies.workers import IN_PLACE_BYTES, Workers
from controller.api.http import Call, HttpError
from controller.declared.batch import Batch
from controller.declared.declared import Declared
from controller.journal.store import Store
from controller.pieces import whole
from controller.wire import HostReport, JobSpec, JobState
from evaluation.bench.support.api_client import Controller
from tests.support.controller.registry.registry_world import HOSTS, Clock, World, job_spec, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, dequeued
from tests.support.rounds import first_that

DEMANDS = 65_536


def large_spec(demands: int = DEMANDS) -> dict[str, Any]:
    pairs = [(f"h{src}", f"h{dst}") for src in range(1, 258) for dst in range(1, 258) if src != dst]
    return {
        "tasks": [{"role": "peer", "host": f"h{n}", "port": 5000 + n} for n in range(1, 258)],
        "flows": [{"src": "h1", "dst": "h2", "dst_port": 7}],
        "demand": [{"src": src, "dst": dst, "bytes": 1e6 + k} for k, (src, dst) in enumerate(pairs[:demands])],
        "weight": 2.0,
        "model": "größer",
    }


def a_report() -> HostReport:
    links = [{"peer": f"h{n % 5 + 1}", "port": 1 + n} for n in range(3000)]
    parts = [{"job": f"j{n}", "as_of": 3.0, "links": links, "peers": [{"peer": "h2", "sent": 1}]} for n in range(3)]
    points = [{"iteration": n, "time": n, "metric": None if n % 2 else 0.5} for n in range(5000)]
    jobs = [{"job": "a", "points": points, "sent_bytes": 3.0, "ended": True}, {"job": "b", "as_of": 2.0}]
    flows = [{"job": "a", "flow": {"src": "h1", "dst": "h2", "src_port": 4}}]
    body = {"session": "s", "seq": 4, "sent_at": 9.0, "jobs": jobs, "flows": flows, "traffic": parts}
    interfaces = [{"interface": f"eth{n}", "kind": "network", "sent": n, "unseen_sent_rate": 1.5} for n in range(3)]
    said = {"marks_acknowledgements": True, "marks": True, "tunnel_ports": [8472, 4789]}
    return HostReport.model_validate(body | said | {"interfaces": interfaces})


@pytest.fixture(scope="module")
def checking() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.stop()


# What goes from one process to the other ----------------------------------------------------------------------------


def test_a_spec_is_the_same_behind_its_frames() -> None:
    for body in (large_spec(3000), {}, large_spec(3000) | {"demand": []}):
        here = Declared.of(JobSpec.model_validate(body))
        frames = list(here.frames())
        there = whole(Declared.from_frames(iter(frames)))
        for name in Declared.__slots__:
            if name != "traffic":
                assert getattr(there, name) == getattr(here, name), name
        assert (there.traffic.flows, there.traffic.listeners) == (here.traffic.flows, here.traffic.listeners)
        assert max(map(len, frames[2:])) < 2**17, "each is read at once"


def test_a_report_is_the_same_behind_its_frames() -> None:
    here = Batch.of(a_report())
    there = whole(Batch.from_frames(here.frames()))
    assert (there.session, there.seq, there.sent_at, there.marks_acknowledgements) == ("s", 4, 9.0, True)
    assert (there.jobs, there.flows, there.traffic) == (here.jobs, here.flows, here.traffic)
    assert there.interfaces == here.interfaces
    assert there.marks is True
    assert there.tunnel_ports == here.tunnel_ports == (4789, 8472)
    assert here.interfaces is not None
    assert here.interfaces[2][:3] == ("eth2", "network", 2.0)
    silent = Batch.of(a_report().model_copy(update={"interfaces": None}))
    assert whole(Batch.from_frames(silent.frames())).interfaces is None
    assert (
        there.brings_news
        and not Batch.of(a_report().model_copy(update={"jobs": (), "flows": (), "traffic": ()})).brings_news
    )


def test_a_jobs_text_is_that_of_its_state() -> None:
    world = World()
    spec = job_spec(model='a "model" größer', demand=[{"src": "h1", "dst": "h2", "bytes": 7}])
    world.registry.put_job("a", spec, 0.0)
    world.tell(jobs=[progress("a", (1, 0.5))])
    state = JobState.model_validate_json(whole(world.registry.job_state("a", 3).to_json({})))
    assert state.spec == spec
    assert (state.id, state.service_class, state.last_metric, state.state) == ("a", 3, 0.5, "running")


# Where it is done ----------------------------------------------------------------------------------------------------


def test_small_bodies_are_checked_on_the_spot_and_large_ones_elsewhere() -> None:
    own = Workers()
    try:
        assert own.make("stage", b'{"jobs": ["a"]}', "c").jobs == ("a",)
        assert own.pid is None
        names = [f"job-{n:05}" for n in range(4096)]
        large = ('{"jobs": ["' + '", "'.join(names) + '"]}').encode()
        assert len(large) > IN_PLACE_BYTES
        assert list(own.make("stage", large, "c").jobs) == names
        assert own.pid not in (None, os.getpid())
    finally:
        own.stop()
    assert own.pid is None


def test_the_process_that_checks_loads_nothing_of_the_network() -> None:
    program = (
        "import sys, controller.api.bodies.worker; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "pydantic" in loaded
    assert not {"ryu", "eventlet", "numpy", "scipy", "networkx"} & set(loaded)


def test_ctrl_c_is_not_for_the_process_that_checks(checking: Workers) -> None:
    checking.start()
    assert checking.pid is not None
    assert os.getsid(checking.pid) == checking.pid != os.getsid(0)


def test_who_is_turned_out_leaves_no_answer_to_the_next(checking: Workers) -> None:
    raw = JobSpec.model_validate(large_spec(2000)).model_dump_json().encode()
    turned_out = eventlet.spawn(checking.make, "job", raw, "c")
    eventlet.sleep(0.001)
    turned_out.kill()
    names = [f"job-{n:05}" for n in range(4096)]
    large = ('{"jobs": ["' + '", "'.join(names) + '"]}').encode()
    assert list(checking.make("stage", large, "c").jobs) == names


def test_places_are_counted_by_who_asks() -> None:
    for caller, client in (
        (ANYBODY, "address 10.0.0.9"),
        (Caller("night-shift", Role.OPERATOR), "operator night-shift"),
        (Caller("h1", Role.HOST, host="h1"), "host h1"),
    ):
        asked: list[str] = []
        services: Any = SimpleNamespace(
            workers=SimpleNamespace(make=lambda _kind, _raw, who, asked=asked: asked.append(who)),
        )
        environ = {"CONTENT_TYPE": "application/json", "wsgi.input": io.BytesIO(b"{}"), "REMOTE_ADDR": "10.0.0.9"}
        read_stage(services, Call(environ, {}, {}, caller, 0.0))
        assert asked == [client]


def test_what_is_wrong_with_a_large_body_is_told_as_of_a_small_one(checking: Workers) -> None:
    for raw in (b'{"demand": [' + b'{"src": 1},' * 5000 + b"{}]}", b'{"demand": [' + b" " * 40_000):
        with pytest.raises(HttpError) as here:
            work.KINDS["job"].here(raw)
        with pytest.raises(HttpError) as there:
            checking.make("job", raw, "c")
        assert (there.value.status, there.value.detail) == (here.value.status, here.value.detail)
        assert there.value.errors == here.value.errors


def test_a_process_that_has_died_is_replaced(checking: Workers) -> None:
    raw = JobSpec.model_validate(large_spec(2000)).model_dump_json().encode()
    first = checking.make("job", raw, "c")
    pid = checking.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert checking.make("job", raw, "c") == first
    assert checking.pid not in (None, pid)


@contextmanager
def paused(process_id: int | None) -> Iterator[None]:
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)


def test_a_process_that_hangs_is_replaced() -> None:
    raw = JobSpec.model_validate(large_spec(2000)).model_dump_json().encode()
    impatient = Workers(answer_seconds=2.0)
    try:
        impatient.start()
        hanging = impatient.pid
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)
        assert impatient.make("job", raw, "c").weight == 2.0
        assert impatient.pid not in (None, hanging)
    finally:
        impatient.stop()


def test_a_request_fails_that_no_process_answers_in_time() -> None:
    raw = JobSpec.model_validate(large_spec()).model_dump_json().encode()
    impatient = Workers(answer_seconds=0.001)
    try:
        with pytest.raises(HttpError, match="has failed on this one") as failed:
            impatient.make("job", raw, "c")
        assert failed.value.status == 500
    finally:
        impatient.stop()


def test_one_client_cannot_have_all_places() -> None:
    raw = JobSpec.model_validate(large_spec(2000)).model_dump_json().encode()
    small = Workers(max_waiting=3, max_waiting_of_client=2)
    try:
        small.start()
        with paused(small.pid):
            under_way = [eventlet.spawn(small.make, "job", raw, client) for client in ("a", "a", "b")]
            eventlet.sleep(0)
            for client in ("a", "c"):
                with pytest.raises(HttpError) as refused:
                    small.make("job", raw, client)
                assert refused.value.status == 503 and refused.value.headers == {"Retry-After": "1"}
        assert {thread.wait().weight for thread in under_way} == {2.0}
        assert small.make("job", raw, "a").weight == 2.0, "those places are free again"
    finally:
        small.stop()


def test_nobody_waits_for_a_job_of_65536_demands(tmp_path: Path) -> None:
    hosts = [{"name": f"h{n}", "address": f"10.0.{n // 200}.{n % 200 + 1}"} for n in range(1, 258)]
    controller = Controller(tmp_path, token=False, hosts=hosts, journal=str(tmp_path / "j.db")).start()
    try:
        # Texts are written before and read after: both hold up this process's own threads, who asks among them.
        body = json.dumps(large_spec()).encode()
        # Where all of the body is checked in one go, a wait takes nearly as long as the request.
        longest, took = first_that(lambda found: found[0] < found[1] / 3, lambda: waits_beside(controller, body))
        assert longest < took / 3, (longest, took)
    finally:
        controller.stop()


def waits_beside(controller: Controller, body: bytes) -> tuple[float, float]:
    """Returns how long others wait at most while a job is registered, and how long that takes, in seconds."""
    waits: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with controller.session.__class__() as session:
            session.trust_env = False
            while not done.is_set():
                began = time.monotonic()
                assert session.get(controller.url + "/healthz", timeout=30).ok
                waits.append(time.monotonic() - began)
                time.sleep(0.002)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        began = time.monotonic()
        headers = {"Content-Type": "application/json"}
        reply = controller.session.put(controller.url + "/v1/jobs/a", data=body, headers=headers, timeout=60)
        took = time.monotonic() - began
        assert reply.status_code == 201, reply.text[:500]
        again = controller.session.get(controller.url + "/v1/jobs/a", timeout=60)
    finally:
        done.set()
        asking.join()
    assert len(again.json()["spec"]["demand"]) == DEMANDS
    assert controller.call("DELETE", "/v1/jobs/a").ok
    return max(waits), took


# Steps ---------------------------------------------------------------------------------------------------------------


def test_what_is_large_is_done_in_many_steps() -> None:
    world = World()
    for n in range(300):
        world.put(f"j{n}", tasks=[{"role": "worker", "host": "h1"}])
    world.put("a")
    registry = world.registry
    points = [{"iteration": n, "time": n} for n in range(5000)]
    body = {"session": "s", "seq": 1, "sent_at": 1000.0, "jobs": [{"job": "a", "points": points}]}
    batch = Batch.of(HostReport.model_validate(body))
    assert sum(1 for _ in registry.report_in_steps("h1", batch, 0.0)) > 20
    assert sum(1 for _ in registry.snapshot_in_steps(0.0, classes=7, period=5.0)) == 301
    assert sum(1 for _ in registry.expire_in_steps()) == 301
    whole_stage = registry.put_stage_in_steps("s", work.KINDS["stage"].here(b'{"jobs": ["j1", "j2", "j3"]}'), 0.0)
    next(whole_stage)
    assert registry.stage_jobs("s") == ("j1", "j2", "j3"), "all of it before others go on"


def test_what_is_removed_while_a_report_is_merged_is_not_brought_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    registry = UnpausedRegistry(HOSTS, store, Clock())
    registry.put_job("a", job_spec(), 0.0)
    points = [{"iteration": n, "time": 1000.0} for n in range(2000)]
    body = {"session": "s", "seq": 1, "sent_at": 1000.0, "jobs": [{"job": "a", "points": points, "ended": True}]}
    merging = registry.report_in_steps("h1", Batch.of(HostReport.model_validate(body)), 0.0)
    for _ in range(3):
        next(merging)
    registry.delete_job("a", 0.0)
    assert whole(merging).status == "taken"
    assert store.write(dequeued(store)) is None
    store.close()
    again = Store(tmp_path / "j.db")
    assert set(again.contents().records) == {"grave", "host"}
    assert not again.contents().points
    again.close()


def test_a_batch_is_in_the_journal_only_after_what_it_brought() -> None:
    store = Store(None)
    registry = UnpausedRegistry(HOSTS, store, Clock())
    registry.put_job("a", job_spec(), 0.0)
    noted: list[str] = []
    store.put = lambda kind, _id, _body: noted.append(kind)  # type: ignore[method-assign]  # what is noted, in order
    body = {"session": "s", "seq": 1, "sent_at": 1000.0, "jobs": [progress("a", (1, 0.5))]}
    registry.report("h1", HostReport.model_validate(body), 0.0)
    assert noted == ["tally", "host"]
