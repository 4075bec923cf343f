"""What the agent makes of a job for TensorLights, and of the options that ask for it."""

from __future__ import annotations

import importlib.util
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from controller.model import Role
from controller.wire import DemandSpec, JobSpec, TaskSpec
from host_reporter.nic.errors import NicError, foreign
from host_reporter.nic.tensorlights.bands import Server, band_queues, server_of
from host_reporter.nic.tensorlights.thread import TensorLights
from host_reporter.notices import Notices
from host_reporter.options import OptionsError, read_options

NIC = ["--interface", "eth0", "--rate-bps", "1e9"]


def spec(*tasks: TaskSpec, demand: tuple[DemandSpec, ...] = (), arrival: float | None = None) -> JobSpec:
    return JobSpec(tasks=tasks, demand=demand, arrival=arrival)


def ps(port: int | None, host: str = "h1") -> TaskSpec:
    return TaskSpec(role=Role.PS, host=host, port=port)


def test_a_server_is_a_ps_task_here_with_a_port() -> None:
    worker = TaskSpec(role=Role.WORKER, host="h1", port=5)
    demand = (
        DemandSpec(src="h1", dst="h2", bytes=300.0),
        DemandSpec(src="h1", dst="h3", bytes=200.0),
        DemandSpec(src="h2", dst="h1", bytes=900.0),
    )
    assert server_of("a", spec(ps(7), worker, demand=demand, arrival=3.0), "h1", 9.0) == Server("a", (7,), 300.0, 3.0)
    assert server_of("a", spec(ps(8), ps(7), ps(7)), "h1", 9.0) == Server("a", (7, 8), 0.0, 9.0)
    for none in (None, spec(), spec(worker), spec(ps(None)), spec(ps(7, "h2"))):
        assert server_of("a", none, "h1", 9.0) is None


def test_one_job_with_two_servers_is_ordered_against_nobody() -> None:
    assert band_queues([Server("a", (7, 8), 1.0, 0.0)], 3) == {}


def test_a_pair_changes_places_at_every_turn_and_models_that_differ_never_do() -> None:
    pair = [Server("a", (1,), 1.0, 0.0), Server("b", (2,), 1.0, 1.0)]
    assert [band_queues(pair, turn)["a"].band for turn in range(4)] == [0, 1, 0, 1]
    mixed = [Server("a", (1,), 2.0, 0.0), Server("b", (2,), 1.0, 1.0)]
    assert [band_queues(mixed, turn)["a"].band for turn in range(4)] == [1, 1, 1, 1]


def test_the_agent_does_without_a_controller_unless_one_is_named() -> None:
    assert not read_options([], {}).is_alone
    assert not read_options(NIC, {}).is_alone
    assert read_options([*NIC, "--nic", "tls-rr"], {}).is_alone
    assert read_options([*NIC, "--nic", "tls-one"], {}).is_alone
    assert not read_options([*NIC, "--nic", "tls-rr", "--controller", "http://10.0.0.5:8080"], {}).is_alone


def test_jobs_share_bands_unless_each_is_to_have_one(tmp_path: Path) -> None:
    assert read_options([*NIC, "--nic", "tls-rr"], {}).nic_bands == "shared"
    assert read_options([*NIC, "--nic", "tls-rr", "--nic-bands", "each"], {}).nic_bands == "each"
    path = tmp_path / "agent.yaml"
    path.write_text("interface: eth0\nrate_bps: 1.0e+9\nnic_bands: each\n")
    assert read_options(["--config", str(path), "--nic", "tls-one"], {}).nic_bands == "each"


def test_the_options_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("nic: tls-rr\ninterface: eth0\nrate_bps: 1.0e+9\nrotate_seconds: 5\n")
    options = read_options(["--config", str(path)], {})
    assert (options.nic, options.rotate_seconds, options.is_alone) == ("tls-rr", 5.0, True)
    path.write_text("nic: tls-two\n")
    with pytest.raises(OptionsError, match=r"agent.yaml:1: nic: .*'tls-one'"):
        read_options(["--config", str(path)], {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nic", "tls-rr"], "--nic: tls-rr needs --interface, and --rate-bps"),
        (["--nic", "tls-one", "--interface", "eth0"], "--nic: tls-one needs --interface, and --rate-bps"),
        (["--nic", "fifo", *NIC], "--nic: is the text 'fifo'; it should be 'plan', 'tls-one' or 'tls-rr'"),
        (["--nic", "tls-one", *NIC, "--rotate-seconds", "5"], "--rotate-seconds: it needs --nic tls-rr"),
        (["--rotate-seconds", "5"], "--rotate-seconds: it needs --nic tls-rr"),
        (["--nic", "tls-rr", *NIC, "--rotate-seconds", "0"], "--rotate-seconds: "),
        ([*NIC, "--nic-bands", "each"], "--nic-bands: it needs --nic tls-one or tls-rr"),
        (
            ["--nic", "tls-one", *NIC, "--nic-bands", "own"],
            "--nic-bands: is the text 'own'; it should be 'shared' or 'each'",
        ),
        (
            ["--nic", "tls-one", "--interface", "eth0", "--rate-bps", "1000"],
            "--rate-bps: tls-one orders links of 100,000 bit/s and more, and 1000 is less",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(OptionsError) as refused:
        read_options(arguments, {})
    assert str(refused.value).startswith(words)


def test_without_pyroute2_the_option_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "host_reporter.options.find_spec", lambda name: None if name == "pyroute2" else real_find_spec(name)
    )
    with pytest.raises(OptionsError, match=r"--nic: tls-rr needs the Python package pyroute2: pip install"):
        read_options([*NIC, "--nic", "tls-rr"], {})
    assert read_options(NIC, {}).nic == "plan"


class Interface:
    """What ``TensorLightsNic`` does, without a kernel: it remembers what it was asked, and may refuse it."""

    interface = "nosuch0"
    obstacles: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.asked: list[tuple[frozenset[str], int | None]] = []
        self.removed = 0
        self.problem: Exception | None = None
        self.news = threading.Condition()
        self.was: tuple[str, ...] = ()
        self.looks = 0

    def changed(self) -> tuple[str, ...]:
        with self.news:
            self.looks += 1
            self.news.notify_all()
        return self.was

    def put_back(self) -> None:
        self.was = ()

    def serve(self, servers: tuple[Server, ...], turn: int | None) -> bool:
        with self.news:
            self.asked.append((frozenset(server.job for server in servers), turn))
            self.news.notify_all()
        if self.problem is not None:
            raise self.problem
        return len(servers) > 1

    def remove(self) -> None:
        self.removed += 1

    def wait_for(self, condition) -> None:
        with self.news:
            assert self.news.wait_for(lambda: condition(self.asked), 10.0), self.asked


def kept(nic: Interface, rotate_seconds: float | None, faults: list[Exception]) -> TensorLights:
    stand_in: Any = nic
    return TensorLights(
        stand_in, "h1", rotate_seconds, Notices(logging.getLogger("test")), faults.append, period=lambda: 0.2
    )


def test_jobs_that_come_and_go_are_put_in_place_at_once(caplog: pytest.LogCaptureFixture) -> None:
    nic, faults = Interface(), list[Exception]()
    lights = kept(nic, None, faults)
    lights.declare("a", spec(ps(1)))
    lights.start()
    nic.wait_for(lambda asked: asked[-1:] == [({"a"}, None)])
    lights.declare("b", spec(ps(2)))
    lights.declare("elsewhere", spec(ps(3, "h2")))
    lights.add("b", [])
    nic.wait_for(lambda asked: asked[-1] == ({"a", "b"}, None))
    nic.problem = foreign("eth0", "fq", "8001:")
    lights.end("a")
    lights.end_earlier("z", 3.0)
    nic.wait_for(lambda asked: asked[-1] == ({"b"}, None))
    nic.problem = NicError("it was refused")
    lights.declare("b", None)
    nic.wait_for(lambda asked: asked[-1] == (frozenset(), None))
    lights.stop()
    assert nic.removed == 3, "after each refusal, and in the end"
    assert "already has a fq qdisc (8001:) that is not ours: left alone" in caplog.text
    assert not faults


def test_more_ports_than_the_kernel_tells_apart_are_other_traffic(caplog: pytest.LogCaptureFixture) -> None:
    nic, faults = Interface(), list[Exception]()
    lights = kept(nic, None, faults)
    each = 1000
    for number in range(6):
        ports = range(10_000 + number * each, 10_000 + (number + 1) * each)
        lights.declare(f"j{number}", spec(*map(ps, ports), arrival=float(number)))
    lights.start()
    nic.wait_for(lambda asked: asked[-1:] == [({"j0", "j1", "j2", "j3"}, None)])
    assert "2 jobs' parameter servers are other traffic at nosuch0" in caplog.text
    lights.end("j0")
    nic.wait_for(lambda asked: asked[-1] == ({"j1", "j2", "j3", "j4"}, None))
    lights.stop()
    assert not faults


def test_the_bands_are_looked_at_each_period_and_served_anew_only_for_news(caplog: pytest.LogCaptureFixture) -> None:
    nic, faults = Interface(), list[Exception]()
    lights = kept(nic, None, faults)
    lights.declare("a", spec(ps(1)))
    lights.start()
    nic.wait_for(lambda _: nic.looks >= 3)
    assert nic.asked == [({"a"}, None)]
    nic.was = ("the filter for port 1 was gone",)
    nic.wait_for(lambda _: nic.looks >= 6)
    lights.stop()
    assert caplog.text.count("the traffic control of nosuch0: the filter for port 1 was gone; it is put back") == 1
    assert nic.asked == [({"a"}, None)]
    assert not faults


def test_turns_come_by_the_clock() -> None:
    nic, faults = Interface(), list[Exception]()
    lights = kept(nic, 0.2, faults)
    lights.start()
    nic.wait_for(lambda asked: len({turn for _, turn in asked}) >= 4)
    lights.stop()
    turns = [turn for _, turn in nic.asked if turn is not None]
    assert turns == sorted(turns)
    assert turns[-1] - turns[0] == len(set(turns)) - 1, "none was left out"


def test_a_fault_of_its_own_is_told_and_all_is_taken_away() -> None:
    nic, faults = Interface(), list[Exception]()
    nic.problem = ZeroDivisionError("a fault")
    lights = kept(nic, None, faults)
    lights.start()
    nic.wait_for(bool)
    lights.stop()
    assert [type(fault) for fault in faults] == [ZeroDivisionError]
    assert nic.removed == 1
