"""A real controller as the lab starts it, on hosts without a switch: what it knows from its start on."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from controller.wire import EventDocument
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.registry.family_runs import rising
from tests.support.lab import curious
from topologies.errors import LabError, LabInputError
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import JobPlan
from topologies.lab import earlier_jobs
from topologies.lab.controller_process import ControllerProcess, chosen_token
from topologies.lab.recording.events import EventRecorder
from topologies.trainer.specs import job_spec

CURVES = [tuple(rising(end=0.94 + 0.005 * i, scale=10.0 + i / 2)) for i in range(3)]
EARLIER = tuple(
    EarlierJob(id=f"earlier-{i}", family="resnet", iterations=100, curve=curve) for i, curve in enumerate(CURVES)
)
JOB = JobPlan(
    id="next", arrival=0.0, architecture="ps", hosts=("h1", "h2"), port=5000, model="m", model_bytes=1000,
    compute_seconds=0.1, iterations=100, curve=tuple(rising(end=0.95)), family="resnet",
)  # fmt: skip


class Network:
    """As much of an emulation as a controller needs that has no switch."""

    hosts = ("h1", "h2")
    bridges = ()
    own_queues = False
    dscp = "class-selectors"

    def plugs(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(host=host, addresses=(f"10.0.0.{n}",), rate_bps=1e8, switch=None, port=None)
            for n, host in enumerate(self.hosts, start=1)
        ]

    def cables(self) -> tuple[()]:
        return ()

    def popen(self, _host: None, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)


Start = Callable[..., ControllerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """``start(policy, earlier)``: a controller that answers."""
    with ExitStack() as stack:

        def started(policy: str, earlier: tuple[EarlierJob, ...] = (), **more: Any) -> ControllerProcess:
            port = free_port()
            process = ControllerProcess(
                Network(), tmp_path / f"controller-{port}", policy, classes=7, period_seconds=0.5,  # type: ignore[arg-type]
                url=f"http://127.0.0.1:{port}", api={"host": "127.0.0.1", "port": port},
                openflow={"host": "127.0.0.1", "port": free_port()}, ovsdb=f"unix:{tmp_path}/none.sock", **more,
            )  # fmt: skip
            earlier_jobs.note(process.journal, earlier, time.time())
            process.start()
            stack.callback(process.stop)
            assert process.wait(lambda: process.try_status() is not None, 60.0), process.last_words()
            return process

        yield started


def explained(controller: ControllerProcess) -> Any:
    """The explanation of ``JOB``, once a plan was made with it."""
    controller.call("PUT", f"/v1/jobs/{JOB.id}", job_spec(JOB, time.time()).model_dump(mode="json", exclude_none=True))

    def answer() -> Any:
        try:
            return controller.call("GET", f"/v1/jobs/{JOB.id}/explain")
        except LabError:
            return None

    return wait_until(answer, what="a plan")


def test_jobs_that_ended_before_explain_those_of_their_family(start: Start) -> None:
    begun = time.time()
    controller = start("jpas", EARLIER)
    (family,) = controller.call("GET", "/v1/families")["families"]
    assert (family["name"], family["user"], family["kept"], family["reliable"]) == ("resnet", "lab", 3, True)
    (shown,) = controller.call("GET", "/v1/families/resnet")["families"]
    assert [run["converged"] for run in shown["runs"]] == sorted(run["converged"] for run in shown["runs"])
    ended = [run["ended_at"] for run in shown["runs"]]
    assert ended == sorted(set(ended))
    assert ended[-1] < begun
    why = explained(controller)
    assert why["family"] == "resnet"
    assert why["earlier_runs"] == "3 earlier runs of resnet: 0.9399 to 0.9498, 90 % at 25 to 27 % of the run"


def test_a_policy_of_another_folder_is_found_beside_those_that_are_installed(start: Start, tmp_path: Path) -> None:
    controller = start("curious", EARLIER, plugins=str(curious.install(tmp_path / "plugins")))
    assert explained(controller)["reason"] == "resnet, 3 before, target None"
    assert controller.call("PATCH", "/v1/settings", {"policy": "jpas"})["policy"] == "jpas"


def test_where_hosts_alone_enforce_it_is_ready_when_one_marks(start: Start) -> None:
    controller = start("fifo", enforce=("hosts",))
    with pytest.raises(LabError, match="not ready after 1 s: no agent reports"):
        controller.wait_ready(seconds=1.0)
    for seq, (marks, said) in enumerate(((False, "no agent marks packets"), (True, "")), start=1):
        report = {"session": "s", "seq": seq, "sent_at": time.time(), "marks": marks}
        headers = {"Authorization": f"Bearer {controller.host_token('h1')}"}
        with requests.Session() as session:
            session.trust_env = False
            sent = session.post(f"{controller.url}/v1/hosts/h1/reports", json=report, headers=headers, timeout=10)
        assert sent.ok, sent.text
        if said:
            with pytest.raises(LabError, match=said):
                controller.wait_ready(seconds=1.0)
    status = controller.wait_ready()
    assert (status.enforce, [host.marks for host in status.hosts]) == (("hosts",), [True, None])


def test_who_only_observes_is_ready_with_a_plan(start: Start) -> None:
    assert start("fifo", enforce=()).wait_ready().enforce == ()


def test_who_chooses_a_token_can_watch_a_run(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def status() -> int:
        headers = {"Authorization": "Bearer look-at-the-lab"}
        with requests.Session() as session:
            session.trust_env = False
            return session.get(f"{start('fifo').url}/v1/jobs", headers=headers, timeout=10).status_code

    assert status() == 401
    monkeypatch.setenv("TRAINYARD_LAB_TOKEN", "look-at-the-lab")
    assert status() == 200
    monkeypatch.setenv("TRAINYARD_LAB_TOKEN", "look")
    with pytest.raises(LabInputError, match="TRAINYARD_LAB_TOKEN has 4 characters; a token has 8 at least"):
        chosen_token()


def test_events_are_recorded_over_a_restart_with_times_from_the_start_of_the_experiment(
    start: Start, tmp_path: Path
) -> None:
    controller = start("fifo")
    recorder = EventRecorder(controller.events, tmp_path)
    recorder.start()
    zero = time.time()
    explained(controller)
    part = tmp_path / "events.jsonl.part"
    wait_until(lambda: part.exists() and '"event":"plan"' in part.read_text(), what="the recorder follows")
    controller.stop()
    wait_until(lambda: f'"id":"{JOB.id}"' in part.read_text(), what="the job's event")
    controller.start()
    assert controller.wait(lambda: controller.try_status() is not None, 60.0), controller.last_words()
    assert controller.call("PATCH", "/v1/settings", {"policy": "las"})["policy"] == "las"
    time.sleep(0.5)
    controller.stop()
    recorder.stop(zero)
    documents = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    for document in documents:
        EventDocument.model_validate(document)
        assert list(document) == ["id", "event", "time", "data"]
    ids = [document["id"] for document in documents]
    assert ids == sorted(set(ids))
    kinds = [document["event"] for document in documents]
    assert kinds.count("gap") == 1, "at the restart"
    assert kinds.index("job") < kinds.index("gap")
    assert [d["data"]["policy"] for d in documents if d["event"] == "plan"][-1] == "las"
    assert all(-60 < document["time"] < time.time() - zero for document in documents)
    assert not part.exists()


def test_a_journal_that_cannot_be_written_is_an_error_of_the_lab(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"the journal cannot be written: .*its folder"):
        earlier_jobs.note(tmp_path / "absent" / "journal.sqlite", EARLIER, time.time())
