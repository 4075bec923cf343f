"""What fails in a lab is one LabError with its cause: a tool, a file, the controller, the launcher, a lab in a box."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evaluation import demo
from evaluation.jpas import claim
from tests.support.fake_kernel import FakeKernel
from topologies import checkout
from topologies.errors import LabError, LabInputError, one_line_errors
from topologies.experiments.declaration import Declaration
from topologies.experiments.workload import LIGHT, generate
from topologies.fork_server import ForkServer, ForkServerError
from topologies.lab import arm, lab
from topologies.lab.agents import Agents
from topologies.lab.controller_process import ControllerProcess, ControllerSilentError
from topologies.lab.results import LabRequest, PolicyChoice, save
from topologies.lab.use import watch
from topologies.studies.process import TunerProcess
from topologies.trainer.results import write_failure


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (subprocess.CalledProcessError(2, ["ip", "link"], b"", b"first\nRTNETLINK: no\n"), "ip link: RTNETLINK: no"),
        (subprocess.CalledProcessError(2, ["tc"], "said here", None), "tc: said here"),
        (subprocess.CalledProcessError(7, "tc"), "tc: ended with status 7"),
        (subprocess.TimeoutExpired(["ping", "h1"], 5.0), "ping h1 did not end within 5 s"),
        (PermissionError(13, "Permission denied", "/x"), "/x: Permission denied"),
        (OSError("odd"), "odd"),
    ],
)
def test_tools_and_files_fail_in_one_line(error: Exception, line: str) -> None:
    with pytest.raises(LabError) as raised, one_line_errors():
        raise error
    assert str(raised.value) == line
    assert raised.value.__cause__ is error


def test_every_failure_of_a_part_is_an_expected_one() -> None:
    for kind in (ForkServerError, ControllerSilentError, LabInputError):
        assert issubclass(kind, lab.EXPECTED_ERRORS)


class Network:
    """As much of an emulation as a controller's settings need; "starts" a command of the test's own."""

    hosts = bridges = ()
    own_queues = False
    dscp = "pool-2"

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder = folder
        self.command = command
        self.fork_server = fork_server("pass")
        self.fork_server.close()

    def plugs(self):
        return ()

    cables = plugs

    def popen(self, _host, _command, **options):
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL, **options)


def fork_server(script: str) -> ForkServer:
    """A launcher that does what the script says."""
    return ForkServer(subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE))


@contextmanager
def controller(folder: Path, url: str, *command: str, **options: float):
    process = ControllerProcess(
        Network(folder, list(command)), folder / "controller", "fifo", classes=7, period_seconds=1, url=url, **options
    )
    process.start()
    try:
        yield process
    finally:
        process.kill()


@pytest.fixture
def nobody() -> str:
    """The URL of an API whose port is closed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_a_dead_controller_is_told_with_its_last_words(nobody: str, tmp_path: Path) -> None:
    with controller(tmp_path, nobody, "sh", "-c", "echo what a pity; exit 3") as dead:
        dead._process.wait()
        calls = []
        for attempt in (
            dead.wait_ready,
            dead.status,
            dead.metrics,
            lambda: dead.wait(lambda: bool(calls.append(1)), 5),
            lambda: arm.wait_for_hosts(dead, Agents(dead._emulation, tmp_path)),
        ):
            with pytest.raises(LabError, match="the controller does not run; its log ends: what a pity"):
                attempt()
        assert not calls, "a dead controller is not asked anything"


def test_a_controller_that_is_silent_is_told_and_may_come_yet(nobody: str, tmp_path: Path) -> None:
    with controller(tmp_path, nobody, "sleep", "100") as silent:
        with pytest.raises(ControllerSilentError, match="GET /v1/status: the controller does not answer"):
            silent.status()
        with pytest.raises(ControllerSilentError):
            silent.metrics()
        assert silent.try_status() is None
        with pytest.raises(LabError, match=r"not ready after 0\.1 s: the API does not answer"):
            silent.wait_ready(seconds=0.1)


def test_an_answer_that_comes_too_late_or_is_not_json(tmp_path: Path) -> None:
    may_answer = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/v1/jobs":
                may_answer.wait(60)
                return
            self.send_response(200 if self.path == "/v1/status" else 500)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_arguments) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        with controller(tmp_path, url, "sleep", "100") as odd:
            with pytest.raises(LabError, match="not JSON"):
                odd.status()
            with pytest.raises(LabError, match=r"GET /metrics: 500 <html>"):
                odd.metrics()
        hasty = controller(tmp_path, url, "sleep", "100", answer_seconds=0.2)
        with hasty as odd, pytest.raises(ControllerSilentError, match="ReadTimeout"):
            odd.call("GET", "/v1/jobs")
    finally:
        may_answer.set()
        server.shutdown()
        server.server_close()


def start(team: ForkServer, folder: Path):
    return team.start("trainer", [], namespaces_of=1, log=folder / "log", folder=folder)


def test_a_launcher_that_is_dead_or_dies_is_told_at_once(tmp_path: Path) -> None:
    dead = fork_server("pass")
    dead._launcher.wait()
    with pytest.raises(ForkServerError, match="has ended"):
        start(dead, tmp_path)
    with pytest.raises(ForkServerError, match="has ended"):
        dead.check()
    dead.close()
    dying = fork_server("import sys; sys.stdin.readline()")
    with pytest.raises(ForkServerError, match="has ended"):
        start(dying, tmp_path)
    dying.close()


def test_the_members_of_a_dead_launcher_count_as_killed(tmp_path: Path) -> None:
    lone = fork_server(
        'import sys; sys.stdin.readline(); print(\'{"number": 0, "pid": 999999999}\', flush=True); input()'
    )
    member = start(lone, tmp_path)
    assert (member.pid, member.poll()) == (999999999, None)
    member.send_signal(9)  # The fork server has not reported its end yet.
    lone._launcher.kill()
    assert member.wait(30) == -9
    lone.close()


def test_a_dead_launcher_ends_an_arm(nobody: str, tmp_path: Path) -> None:
    experiment = generate(LIGHT, 1)
    with controller(tmp_path, nobody, "sleep", "100") as living:
        agents = Agents(living._emulation, tmp_path)
        with pytest.raises(ForkServerError):
            arm.wait_for_hosts(living, agents)
        with pytest.raises(ForkServerError):
            tuner = TunerProcess(tmp_path, experiment)
            watch.wait_for_jobs(
                living, experiment, trainers={}, agents=agents, tuner=tuner, start=9e12, tick=lambda *_: None
            )


def test_a_job_that_fails_on_any_host_ends_an_arm(nobody: str, tmp_path: Path) -> None:
    """Its server may wait for the rest of the arm for the worker that failed."""
    experiment = generate(LIGHT, 1)
    with controller(tmp_path, nobody, "sleep", "100") as living:
        living._emulation.fork_server = fork_server("input()")
        agents, tuner = Agents(living._emulation, tmp_path), TunerProcess(tmp_path, experiment)
        write_failure(tmp_path, "job1", "h2", "cannot send to h1: Connection reset by peer")
        try:
            with pytest.raises(LabError, match=r"^job job1 on h2: cannot send to h1: Connection reset by peer$"):
                watch.wait_for_jobs(
                    living, experiment, trainers={}, agents=agents, tuner=tuner, start=9e12, tick=lambda *_: None
                )
        finally:
            living._emulation.fork_server.close()


def request() -> LabRequest:
    return claim.groups(quick=True)[0].request()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ForkServerError("the launcher has ended"), "the launcher has ended"),
        (subprocess.CalledProcessError(1, ["tc"], "", "no such device"), "tc: no such device"),
        (OSError(28, "No space left on device", "/x"), "/x: No space left on device"),
    ],
)
def test_the_cause_comes_back_from_the_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, error: Exception, line: str
) -> None:
    @contextmanager
    def fails(*_arguments, **_options):
        raise error
        yield

    save(tmp_path / "request.json", request())
    monkeypatch.setenv("TRAINYARD_BOX", "1")
    monkeypatch.setattr(lab, "emulate", fails)
    assert lab.main([str(tmp_path)]) == 1
    events = [json.loads(text)["event"] for text in capsys.readouterr().out.splitlines()]
    assert events[-1] == {"failure": line}


def test_a_failure_in_the_box_is_raised_outside(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.order(fail=("all",))
    with pytest.raises(LabError, match="out went wrong"):
        lab.run_lab(request(), "uml", results_dir=tmp_path / "out")
    assert not (tmp_path / "out" / "request.json").exists()


def test_a_request_that_makes_no_sense_starts_nothing(kernel: FakeKernel, tmp_path: Path) -> None:
    experiment = generate(LIGHT, 1)
    for policies in (["fair", "fair"], []):
        with pytest.raises(LabInputError):
            lab.run_arms(experiment, policies, "uml", results_dir=tmp_path / "out")
    fabric = experiment.model_copy(update={"topology": "leaf_spine", "hosts": 14, "leaves": 2, "seed": 2})
    fair = (PolicyChoice("fair"),)
    for wrong, words in (
        (LabRequest((experiment, fabric), fair), "must agree on topology, leaves, spines"),
        (
            LabRequest((experiment, experiment.model_copy(update={"dscp": "dcb"})), fair),
            "dscp, segments, port_packets and rto_min_seconds",
        ),
        (
            LabRequest((experiment, experiment.model_copy(update={"segments": 2})), fair),
            "segments, port_packets and rto_min_seconds",
        ),
        (LabRequest((fabric,), fair, alone_iterations=5), "alone on the testbed only"),
        (LabRequest((experiment, experiment.model_copy(update={"rails": 2, "seed": 2})), fair), "uplink_bps, rails"),
        (
            LabRequest((experiment.model_copy(update={"rails": 2}),), (PolicyChoice("fair", nic="tls-rr"),)),
            "policy fair: nic tls-rr orders one interface of a host; set rails to 1",
        ),
    ):
        with pytest.raises(LabInputError, match=words):
            lab.run_lab(wrong, "uml", results_dir=tmp_path / "out")
    assert kernel.runs() == []
    assert not (tmp_path / "out").exists()


def test_an_arm_that_declares_or_finds_what_there_is_not_starts_nothing(kernel: FakeKernel, tmp_path: Path) -> None:
    experiment = generate(LIGHT, 1)
    for choice, words in (
        (
            PolicyChoice("jpas", declares={"nobody": Declaration(target=0.9)}),
            "declares for jobs that there are not: nob",
        ),
        (PolicyChoice("jpas", plugins=str(tmp_path / "absent")), "policy jpas: plugins: there is no folder .*/absent"),
        (PolicyChoice("jpas", plugins="/proc/self"), "is not visible in the box, which has its own /proc"),
    ):
        with pytest.raises(LabInputError, match=words):
            lab.run_arms(experiment, [choice], "uml", results_dir=tmp_path / "out")
    assert kernel.runs() == []
    assert not (tmp_path / "out").exists()


def test_switches_that_serve_by_dscp_in_every_arm_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lab, "choose", lambda _wanted: "user")
    choice = PolicyChoice("jpas", enforce=("hosts",), served="plain")
    with pytest.raises(LabInputError, match="serve by DSCP in every arm"):
        lab.run_arms(generate(LIGHT, 1), [choice], "user", results_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_results_that_cannot_be_written_are_one_line(kernel: FakeKernel, capsys, monkeypatch) -> None:
    assert demo.main(["--datapath", "uml", "--results", "/proc/nope"]) == 1
    assert "demo: /proc/nope: No such file or directory" in " ".join(capsys.readouterr().err.split())
    assert kernel.runs() == []
    assert checkout.ROOT.is_dir()
