"""TensorLights at a real (virtual) interface: the bands, their turns under load, and that all of it goes away again."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.waiting import wait_until
from evaluation.tensorlights.groups import TOGETHER, Group
from host_reporter.nic.tree import HANDLE, htb_tree
from simulator.workloads import curves
from tests.support.host.tensorlights_agent import HOST, RATE_BPS, Agent, leaves, tc, whole
from tests.support.host.tensorlights_traffic import FanOut, fan_out, measured
from tests.support.host.two_hosts import TwoHosts
from tests.support.rounds import first_that
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab import nic_queues
from topologies.limits import OTHER_FLOOR
from topologies.trainer.barriers import files
from topologies.trainer.barriers.waits import waits
from topologies.trainer.results import done_file, read_result

TURN_SECONDS = 1.5
"""Measure for so long within a turn."""

Turn = tuple[dict[int, str], dict[int, int]]
"""The leaves of ports, and the bytes that came from them meanwhile."""


def differ(hosts: TwoHosts, before: dict[int, str]) -> bool:
    return leaves(hosts) != before


def turn_of(hosts: TwoHosts, traffic: FanOut) -> Turn:
    """Measure from the begin of a turn on. Where the next one has begun meanwhile, that is measured."""

    def within_one() -> Turn | None:
        wait_until(functools.partial(differ, hosts, leaves(hosts)))
        now = leaves(hosts)
        # What waits in a leaf still goes from there, so the first moment is not looked at.
        time.sleep(0.7)
        traffic.bytes_since()
        time.sleep(TURN_SECONDS)
        got = traffic.bytes_since()
        return (now, got) if leaves(hosts) == now else None

    return wait_until(within_one, 60.0, what="a turn in which nobody looks away")


def turn_is_in_order(turn: Turn) -> bool:
    """Whether the port in the first leaf had the link, which was full."""
    now, got = turn
    first, second = sorted(got, key=now.__getitem__)
    return got[first] > 10 * got[second] and 8 * sum(got.values()) / TURN_SECONDS > 0.7 * RATE_BPS


def test_bands_come_with_the_second_server_and_go_with_it(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    agent.start(nic="tls-one")
    agent.job("a", 7101, size=3e6)
    wait_until(lambda: agent.says("job a: following"))
    time.sleep(1.0)
    assert whole(hosts) == before, "nothing is installed on a host with one server"
    agent.job("elsewhere", 7102, host="h2")
    agent.job("b", 7103, size=1e6, arrival=2.0)
    agent.job("c", 7104, size=1e6, arrival=1.0)
    wait_until(lambda: len(leaves(hosts)) == 3)
    assert leaves(hosts) == {7104: "1000", 7103: "1100", 7101: "1200"}, "smaller models first, then by launch"
    shown = tc(hosts, "class", "show", "dev", hosts.interface)
    assert "class htb 7473:1 root rate 5Mbit ceil 5Mbit" in shown
    bands = dict(re.findall(r"7473:(1[0-9a-f]{3}) .*?prio (\d) rate 1Kbit ceil 5Mbit", shown))
    assert bands == {"1000": "0", "1100": "1", "1200": "2"}
    assert re.search(r"7473:1f .*prio 7 ", shown), "the last band is for all else"
    agent.end_job("a")
    agent.end_job("c")
    wait_until(lambda: whole(hosts) == before)
    wait_until(lambda: not agent.children(), what="the guard's end")
    agent.job("d", 7105)
    wait_until(lambda: leaves(hosts))
    agent.stop()
    assert whole(hosts) == before
    assert "controller" not in agent.log.read_text().replace("has no controller", "")


def test_a_rotation_acts_at_once_on_backlogged_leaves_and_drops_nothing(hosts: TwoHosts, agent: Agent) -> None:
    agent.start("--rotate-seconds", "5")
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: len(leaves(hosts)) == 2)
    with fan_out(hosts, 7101, 7102) as traffic:
        firsts = []
        for _ in range(3):
            now, got = first_that(turn_is_in_order, lambda: turn_of(hosts, traffic))
            assert turn_is_in_order((now, got)), f"{got} at {now}"
            first = min(got, key=now.__getitem__)
            shown = json.loads(tc(hosts, "-s", "-j", "qdisc", "show", "dev", hosts.interface))
            assert next(q["backlog"] for q in shown if q.get("parent") == "7473:1100") > 0, (
                "nothing waits in the last leaf"
            )
            assert {q["handle"]: q["drops"] for q in shown if q["drops"]} == {}
            firsts.append(first)
    # A slow machine may look away for a whole turn, not for two.
    assert set(firsts) == {7101, 7102}
    agent.stop()


def test_all_else_has_the_last_band(hosts: TwoHosts, agent: Agent) -> None:
    agent.start(nic="tls-one")
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: len(leaves(hosts)) == 2)
    got = first_that(
        lambda got: got[7102] > 5 * got[7109] > 0, lambda: measured(hosts, 7102, 7109, settle=1.0, seconds=2.0)
    )
    assert got[7102] > 5 * got[7109] > 0, "a server before what is none, which keeps its floor"
    agent.stop()


def test_a_killed_agents_bands_are_taken_away_by_its_guard(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    agent.start()
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: leaves(hosts))
    agent.process.kill()
    wait_until(lambda: whole(hosts) == before)
    wait_until(lambda: agent.says("the agent was killed; its bands are taken away"))


@pytest.mark.parametrize("then", ["no servers", "servers", "plan", "by hand"])
def test_what_a_killed_agent_and_guard_have_left_is_gone_with_the_next_start(
    hosts: TwoHosts, agent: Agent, then: str
) -> None:
    before = whole(hosts)
    agent.start()
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: len(leaves(hosts)) == 2)
    (guard,) = wait_until(agent.children)
    os.kill(guard, signal.SIGKILL)
    agent.process.kill()
    agent.process.wait()
    assert len(leaves(hosts)) == 2
    if then == "plan":
        program = "from controller.code_points import POOL_2; from host_reporter.nic.interface import Nic; "
        program += f"nic = Nic({hosts.interface!r}, None); "
        program += "nic.apply(5e6, POOL_2, 0.01, 0.1); assert nic._look().root.major == 0x7472; nic.remove()"
        done = hosts.run(hosts.sender, sys.executable, "-c", program)
        assert done.returncode == 0, done.stderr
        assert whole(hosts) == before
        return
    if then == "by hand":
        for said in ("its bands are taken away from", ""):
            done = hosts.run(hosts.sender, sys.executable, "-m", "host_reporter.nic.guard", hosts.interface)
            assert done.returncode == 0
            assert said in done.stderr if said else not done.stderr
            assert whole(hosts) == before
        return
    agent.end_job("b")
    if then == "servers":
        agent.job("c", 7103)
    agent.start()
    wait_until(lambda: sorted(leaves(hosts)) == ([7101, 7103] if then == "servers" else []))
    agent.stop()
    assert whole(hosts) == before


def test_a_guard_that_is_killed_is_there_again(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    agent.start("--rotate-seconds", "1")
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: leaves(hosts))
    (guard,) = wait_until(agent.children)
    os.kill(guard, signal.SIGKILL)
    wait_until(lambda: agent.children() not in ([], [guard]))
    agent.process.kill()
    wait_until(lambda: whole(hosts) == before)


def test_it_needs_no_answer_of_a_controller_that_is_named(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    agent.start("--controller", "http://127.0.0.1:9", "--no-marking")
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: len(leaves(hosts)) == 2)
    wait_until(lambda: agent.says("the last one stays in force for now"))
    agent.stop()
    assert whole(hosts) == before


def test_somebody_elses_qdisc_is_left_alone_and_said_once(hosts: TwoHosts, agent: Agent) -> None:
    tc(hosts, "qdisc", "add", "dev", hosts.interface, "root", "handle", "9:", "htb")
    before = whole(hosts)
    agent.start("--rotate-seconds", "1")
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: agent.says("already has a htb qdisc (9:) that is not ours: left alone; remove it"))
    time.sleep(2.5)
    assert whole(hosts) == before
    assert agent.log.read_text().count("that is not ours") == 1
    tc(hosts, "qdisc", "del", "dev", hosts.interface, "root")
    wait_until(lambda: len(leaves(hosts)) == 2)
    wait_until(lambda: agent.says("orders this host's parameter servers"))
    tc(hosts, "qdisc", "replace", "dev", hosts.interface, "root", "handle", "9:", "htb")
    wait_until(lambda: agent.log.read_text().count("that is not ours") == 2)
    agent.stop()
    assert whole(hosts) == before, "what came while it ran is not its own to take away"


def test_in_the_agents_own_tree_it_is_a_guest(hosts: TwoHosts, agent: Agent) -> None:
    """As on the testbed, where a tree by DSCP limits each interface."""
    tree = "\n".join(htb_tree(hosts.interface, RATE_BPS, POOL_2, 0.01, 0.1)) + "\n"
    assert hosts.run(hosts.sender, "tc", "-batch", "-", text=tree).returncode == 0
    before = whole(hosts)
    agent.start(nic="tls-one")
    agent.job("a", 7101)
    agent.job("b", 7102, arrival=2.0)
    wait_until(lambda: len(leaves(hosts)) == 2)
    assert f"qdisc htb {HANDLE}: root" in tc(hosts, "qdisc", "show", "dev", hosts.interface)
    got = first_that(
        lambda got: got[7101] > 10 * got[7102], lambda: measured(hosts, 7101, 7102, settle=1.0, seconds=1.5)
    )
    assert got[7101] > 10 * got[7102]
    agent.stop()
    assert whole(hosts) == before
    agent.start()
    wait_until(lambda: len(leaves(hosts)) == 2)
    agent.process.kill()
    wait_until(lambda: whole(hosts) == before)


def test_the_testbeds_trainers_get_their_bands_by_their_own_job_files(hosts: TwoHosts, agent: Agent) -> None:
    curve = next(curve.name for curve in curves.index() if curve.iterations >= 10)
    jobs = tuple(
        JobPlan(id=name, arrival=arrival, architecture="ps", hosts=("h1", "h2"), port=port, model="equal",
                model_bytes=60_000, compute_seconds=0.6, iterations=10, curve=curve)
        for name, port, arrival in (("late", 7201, 0.2), ("early", 7202, 0.0))
    )  # fmt: skip
    trained = agent.folder / "trained"
    file = agent.folder / "experiment.json"
    file.write_text(Experiment(name="pair", hosts=2, link_bps=RATE_BPS, jobs=jobs, barriers=True).model_dump_json())
    (trained / "jobs.d" / HOST).mkdir(parents=True)
    before = whole(hosts)
    agent.start("--jobs-dir", str(trained / "jobs.d" / HOST), nic="tls-one")
    command = [sys.executable, "-m", "topologies.trainer", "--experiment", str(file), "--dir", str(trained)]
    command += ["--start", repr(time.time() + 2.0), "--address-base", "10.77.0.0"]
    with contextlib.ExitStack() as stack:
        trainers = [
            subprocess.Popen(hosts.command(where, *command, "--host", host), stderr=subprocess.PIPE)
            for where, host in ((hosts.sender, "h1"), (hosts.receiver, "h2"))
        ]
        for trainer in trainers:
            stack.callback(trainer.communicate)
            stack.callback(trainer.kill)
        wait_until(lambda: leaves(hosts) == {7202: "1000", 7201: "1100"})
        for trainer in trainers:
            assert trainer.wait(60) == 0
    wait_until(lambda: whole(hosts) == before)
    for name in ("early", "late"):
        assert read_result(done_file(trained, name)).jct is not None
        moments = files.read(trained, name, 1)
        assert moments is not None
        found = waits(moments.workers, moments.server, 0.6)
        assert found is not None
        assert found.mean_seconds == 0.0, "one worker waits for nobody"
    agent.stop()


def test_an_experiments_own_queues_are_there_for_an_arm(hosts: TwoHosts) -> None:
    for words in (
        f"link set {hosts.interface} down",
        f"link set {hosts.interface} name h1-eth0",
        "link set h1-eth0 up",
    ):
        assert hosts.run(hosts.sender, "ip", *words.split()).returncode == 0
    tree = "\n".join(htb_tree("h1-eth0", RATE_BPS, POOL_2, 0.01, OTHER_FLOOR)) + "\n"
    assert hosts.run(hosts.sender, "tc", "-batch", "-", text=tree).returncode == 0

    class Emulated:
        def plugs(self) -> list[SimpleNamespace]:
            return [SimpleNamespace(host="h1", interface="h1-eth0")]

        def run(self, _host: str, command: list[str], *, timeout: float = 60.0) -> str:
            done = hosts.run(hosts.sender, *command)
            assert done.returncode == 0, done.stderr
            return done.stdout

    shown = functools.partial(tc, hosts, "qdisc", "show", "dev", "h1-eth0")
    before = shown()
    wanted = Group(TOGETHER, 1).experiment().model_copy(update={"link_bps": RATE_BPS})
    with nic_queues.as_wanted(Emulated(), wanted):
        limits = re.findall(r"bfifo (\w+): parent \S+ limit (\w+)", shown())
        assert {handle for handle, limit in limits if limit == "16Mb"} == {"7510", "751f"}
    assert shown() == before


def test_where_tc_refuses_the_agent_says_so_and_goes_on(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    agent.start(through=("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"))
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: agent.says("tc may not be used; the agent needs CAP_NET_ADMIN"))
    assert agent.process.poll() is None
    agent.stop()
    assert whole(hosts) == before
    assert "Traceback" not in agent.log.read_text()


def test_an_interface_that_is_not_there_or_goes_is_said(hosts: TwoHosts, agent: Agent) -> None:
    agent.start("--rotate-seconds", "1", interface="nosuch0")
    agent.job("a", 7101)
    agent.job("b", 7102)
    wait_until(lambda: agent.says("there is no interface nosuch0"))
    assert (
        hosts.run(hosts.sender, "ip", "link", "add", "nosuch0", "type", "veth", "peer", "name", "nosuch1").returncode
        == 0
    )
    wait_until(lambda: agent.says("nosuch0 orders this host's parameter servers"))
    assert hosts.run(hosts.sender, "ip", "link", "del", "nosuch0").returncode == 0
    wait_until(lambda: agent.log.read_text().count("there is no interface nosuch0") == 2)
    agent.stop()
