"""One host whole: real cgroups, namespaces and iptables, the agent as a process, and the real controller.

All in a network namespace of the test's own: h1 and h2 are two addresses of its loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.hosts.job_process import JobProcess, in_group, second_hierarchy
from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.hosts.sniffer import Sniffer
from evaluation.bench.support.waiting import wait_until

H1, H2 = "10.77.0.1", "10.77.0.2"
SPEC = {"tasks": [{"role": "worker", "host": "h1"}, {"role": "worker", "host": "h2"}]}
DSCPS = (59, 51)


@pytest.fixture(scope="module", autouse=True)
def namespace() -> Iterator[None]:
    with own_namespace(H1, H2):
        yield


@pytest.fixture(scope="module")
def controller(namespace: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    hosts = [{"name": "h1", "address": H1}, {"name": "h2", "address": H2}]
    made = Controller(tmp_path_factory.mktemp("controller"), hosts=hosts).start()
    yield made
    made.stop()


@pytest.fixture
def groups() -> Iterator[Path]:
    """A folder for jobs' cgroups, in the second version's hierarchy."""
    second = second_hierarchy()
    assert second is not None, "no cgroup2 hierarchy is mounted; run these tests as: scripts/test lab"
    place = second / f"ty-discovery-{secrets.token_hex(4)}"
    place.mkdir()
    yield place
    for folder in sorted(place.rglob("*/"), key=lambda folder: -len(folder.parts)):
        if folder.is_dir():
            folder.rmdir()
    place.rmdir()


def saved() -> str:
    """Returns the packet filter's rules, whichever variant of iptables the agent uses here."""
    command = "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; :"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


def tunnel_ports(controller: Controller) -> list[int]:
    """Returns the UDP ports of h1's tunnels, as the controller knows them."""
    hosts = controller.call("GET", "/v1/status").json()["hosts"]
    ports: list[int] = next(host for host in hosts if host["name"] == "h1")["tunnel_ports"]
    return ports


def job_in(group: Path) -> JobProcess:
    """A job's process that is in a cgroup from its beginning."""
    group.mkdir(parents=True, exist_ok=True)
    return JobProcess(*in_group(group))


class Agent:
    """A host-reporter for h1."""

    def __init__(self, folder: Path, url: str, *, prefix: Sequence[str] = ()) -> None:
        self.jobs, self._output = folder / "jobs.d", folder / "agent.log"
        self.jobs.mkdir()
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(f"{HOST}\n")
        command = [*prefix, sys.executable, "-m", "host_reporter.agent", "--controller", url, "--host", "h1"]
        command += ["--token-file", str(token), "--jobs-dir", str(self.jobs), "--progress-dir", str(folder)]
        command += ["--discover", ""]
        with self._output.open("ab") as output:
            self.process = subprocess.Popen([*command, "--period", "0.3"], stdout=output, stderr=output)

    def job(self, name: str, **place: Any) -> Path:
        path = self.jobs / f"{name}.json"
        path.with_suffix(".new").write_text(json.dumps({"id": name, "spec": SPEC, **place}))
        return path.with_suffix(".new").rename(path)

    @property
    def said(self) -> str:
        return self._output.read_text()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)


@pytest.fixture
def agent(controller: Controller, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, controller.url)
    yield made
    made.process.kill()
    made.process.wait()
    for job in controller.call("GET", "/v1/jobs").json()["jobs"]:
        controller.call("DELETE", f"/v1/jobs/{job['id']}")
    # For who looks at a failure.
    sys.stdout.write(made.said)
    assert "Traceback" not in made.said


class Peer:
    """What is at h2: takes connections, and all that comes."""

    def __init__(self) -> None:
        self.server = socket.create_server((H2, 0), backlog=200)
        self.port = int(self.server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._drain, args=(self.server.accept()[0],), daemon=True).start()

    @staticmethod
    def _drain(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while connection.recv(65536):
                pass

    def close(self) -> None:
        # To close it alone does not end who waits for it.
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


@pytest.fixture
def sniffer() -> Iterator[Sniffer]:
    made = Sniffer()
    yield made
    made.close()


def plan_marks(controller: Controller, host: str) -> list[dict[str, Any]]:
    marks: list[dict[str, Any]] = controller.call("GET", f"/v1/hosts/{host}/plan").json()["marks"]
    return marks


def whole_marks(controller: Controller) -> set[str]:
    return {mark["job"] for mark in plan_marks(controller, "h1") if mark["remote"] is None}


def peer_marks(controller: Controller, job: str) -> list[tuple[int | None, int | None]]:
    return sorted(
        (mark["local_port"], mark["remote_port"]) for mark in plan_marks(controller, "h2") if mark["job"] == job
    )


def dscps(controller: Controller) -> dict[str, int]:
    return {mark["job"]: mark["dscp"] for mark in plan_marks(controller, "h1")}


def rules() -> str:
    """The rules in place, whichever of the two kinds of iptables the agent uses here."""
    command = "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; :"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


def state(controller: Controller, job: str) -> dict[str, Any]:
    answer = controller.call("GET", f"/v1/jobs/{job}")
    return answer.json() if answer.ok else {"connections": -1}


@pytest.mark.parametrize("place", ["cgroup", "pid"])
def test_undeclared_ports_are_found_ordered_marked_and_forgotten(
    controller: Controller, agent: Agent, peer: Peer, sniffer: Sniffer, groups: Path, place: str
) -> None:
    with job_in(groups / "one") as one, job_in(groups / "two" / "deeper") as two, job_in(groups / "no") as none:
        files = {}
        for name, job in (("one", one), ("two", two)):
            where = {"cgroup": f"/{groups.name}/{name}"} if place == "cgroup" else {"pid": job.pid}
            files[name] = agent.job(name, **where)
            wait_until(lambda name=name: name in whole_marks(controller), what="a mark for the job, before it talks")
        local = one.do(f"connect {H2} {peer.port} {H1}")
        wait_until(lambda: peer_marks(controller, "one") == [(peer.port, local)], what="the peer's mark")
        assert peer_marks(controller, "two") == []
        other = two.do(f"connect {H2} {peer.port} {H1}")
        foreign = none.do(f"connect {H2} {peer.port} {H1}")
        wait_until(lambda: peer_marks(controller, "two") == [(peer.port, other)], what="the other job's")
        # fifo: the first that came is first. What is no job's has no class.
        assert dscps(controller) == {"one": DSCPS[0], "two": DSCPS[1]}
        wait_until(lambda: sniffer.dscp_of(one, local) == DSCPS[0], what="the first job's packets are marked")
        wait_until(lambda: sniffer.dscp_of(two, other) == DSCPS[1], what="the second's too")
        assert sniffer.dscp_of(none, foreign) == 0
        # No program takes a class for itself: neither who is no job, nor a job another's.
        for program, port, gets in ((none, foreign, 0), (two, other, DSCPS[1])):
            program.do(f"claim {DSCPS[0]}")
            assert sniffer.dscp_of(program, port) == gets
            program.do("claim 0")
        # A child of a job, and a late connection of it.
        two.do("fork")
        late = two.do(f"connect {H2} {peer.port} {H1}")
        wait_until(
            lambda: len(peer_marks(controller, "two")) >= 1 and state(controller, "two")["connections"] == 2,
            what="late",
        )
        wait_until(lambda: sniffer.dscp_of(two, late) == DSCPS[1], what="the late one is marked")
        assert ("--path" in rules()) == (place == "cgroup")
        files["one"].unlink()
        wait_until(lambda: whole_marks(controller) == {"two"}, what="no mark for what is gone")
        wait_until(lambda: sniffer.dscp_of(one, local) == 0, what="nor on its packets")
        assert peer_marks(controller, "one") == []
        assert agent.stop() == 0
        assert "TRAINYARD" not in rules()
        assert sniffer.dscp_of(two, late) == 0


def test_without_iptables_the_sockets_themselves_are_marked(
    controller: Controller, tmp_path: Path, peer: Peer, sniffer: Sniffer, groups: Path
) -> None:
    """As on a machine that has no iptables: not to be found on the agent's PATH."""
    made = Agent(tmp_path, controller.url, prefix=("env", f"PATH={tmp_path}"))
    try:
        with job_in(groups / "one") as one, job_in(groups / "no") as none:
            made.job("one", cgroup=f"/{groups.name}/one")
            local = one.do(f"connect {H2} {peer.port} {H1}")
            wait_until(lambda: sniffer.dscp_of(one, local) == DSCPS[0], what="its socket is marked")
            foreign = none.do(f"connect {H2} {peer.port} {H1}")
            assert sniffer.dscp_of(none, foreign) == 0
            assert "one by one" in made.said
            assert made.stop() == 0
            assert sniffer.dscp_of(one, local) == 0, "as before"
    finally:
        made.process.kill()
        made.process.wait()
        controller.call("DELETE", "/v1/jobs/one")


def test_a_container_with_a_network_namespace_of_its_own_is_followed_and_marked(
    controller: Controller, agent: Agent, groups: Path
) -> None:
    """Joined by a cable to this namespace, which is the host: its address is the way out."""
    mark = secrets.token_hex(3)
    name, cable = f"ty-c{mark}", f"tyc{mark}"

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    ip("netns", "add", name)
    try:
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("address", "add", "172.30.0.1/24", "dev", cable)
        ip("link", "set", cable, "up")
        for command in (
            ("address", "add", "172.30.0.2/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"), ("route", "add", "default", "via", "172.30.0.1"),
        ):  # fmt: skip
            ip("-n", name, *command)
        group = groups / "boxed"
        group.mkdir()
        with (
            socket.create_server((H2, 0)) as server,
            JobProcess(*in_group(group), "ip", "netns", "exec", name) as job,
        ):
            port = server.getsockname()[1]
            agent.job("boxed", cgroup=str(group))
            local = job.do(f"connect {H2} {port}")
            wait_until(lambda: peer_marks(controller, "boxed") == [(port, local)], what="found inside its namespace")
            wait_until(
                lambda: job.do("tos") == DSCPS[0] << 2, what="marked there, where no filter of the host's sees it"
            )
            # A tunnel that comes gets rules for what the container sends by it, and the controller is told.
            ip("link", "add", f"tun{mark}", "type", "vxlan", "id", "7", "dstport", "4789", "local", H1)
            wait_until(lambda: "0xac1e0002" in saved(), what="a rule for the container's address")
            wait_until(lambda: tunnel_ports(controller) == [4789], what="the tunnel at the controller")
            agent.job("boxed", cgroup=f"/{groups.name}/nowhere")
            wait_until(lambda: job.do("tos") == 0, what="and put back when it is the job's no more")
            wait_until(lambda: "0xac1e0002" not in saved() and not tunnel_ports(controller), what="no rule any more")
    finally:
        subprocess.run(["ip", "link", "del", f"tun{mark}"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=False)


def test_a_process_brings_its_connections_into_a_cgroup(
    controller: Controller, agent: Agent, peer: Peer, sniffer: Sniffer, groups: Path
) -> None:
    """Started by hand, and moved: the kernel keeps the cgroup that a socket was made in."""
    with JobProcess() as job:
        (groups / "late").mkdir()
        agent.job("late", cgroup=f"/{groups.name}/late")
        wait_until(lambda: "late" in whole_marks(controller), what="a mark for the job")
        local = job.do(f"connect {H2} {peer.port} {H1}")
        time.sleep(1.5)
        assert peer_marks(controller, "late") == []
        (groups / "late" / "cgroup.procs").write_text(f"{job.pid}\n")
        wait_until(lambda: peer_marks(controller, "late") == [(peer.port, local)], what="found")
        wait_until(lambda: sniffer.dscp_of(job, local) == DSCPS[0], what="and marked")
        later = job.do(f"connect {H2} {peer.port} {H1}")
        wait_until(lambda: sniffer.dscp_of(job, later) == DSCPS[0], what="like those that it makes there")
        assert agent.stop() == 0
        assert sniffer.dscp_of(job, later) == 0


def test_a_killed_agents_marks_on_sockets_are_gone_with_the_next_one(
    controller: Controller, tmp_path: Path, peer: Peer, sniffer: Sniffer, groups: Path
) -> None:
    """Without iptables, and the job is no longer to be marked when the next one starts."""
    made = [Agent(tmp_path, controller.url, prefix=("env", f"PATH={tmp_path}"))]
    try:
        with job_in(groups / "one") as one:
            file = made[0].job("one", cgroup=f"/{groups.name}/one")
            local = one.do(f"connect {H2} {peer.port} {H1}")
            wait_until(lambda: sniffer.dscp_of(one, local) == DSCPS[0], what="marked")
            made[0].process.kill()
            made[0].process.wait()
            assert sniffer.dscp_of(one, local) == DSCPS[0], "nobody is there to put it back"
            file.unlink()
            (tmp_path / "next").mkdir()
            made.append(Agent(tmp_path / "next", controller.url, prefix=("env", f"PATH={tmp_path}")))
            made[1].job("other", cgroup=f"/{groups.name}/one")
            wait_until(lambda: "other" in whole_marks(controller), what="known")
            wait_until(lambda: sniffer.dscp_of(one, local) == dscps(controller)["other"], what="and marked anew")
            assert made[1].stop() == 0
            assert sniffer.dscp_of(one, local) == 0, "and 0 is what was there before"
    finally:
        for agent in made:
            agent.process.kill()
            agent.process.wait()
        for name in ("one", "other"):
            controller.call("DELETE", f"/v1/jobs/{name}")


def test_a_cgroup_that_comes_late_goes_and_comes_again_is_followed(
    controller: Controller, agent: Agent, groups: Path, sniffer: Sniffer
) -> None:
    agent.job("late", cgroup=f"/{groups.name}/late")
    wait_until(lambda: "there is no cgroup" in agent.said, what="said")
    for _ in range(2):
        # Another port each time: one that had two connections would stand for both.
        with contextlib.closing(Peer()) as peer, job_in(groups / "late") as job:
            local = job.do(f"connect {H2} {peer.port} {H1}")
            both = (peer.port, local)
            wait_until(lambda both=both: peer_marks(controller, "late") == [both], what="found")
            wait_until(lambda job=job, local=local: sniffer.dscp_of(job, local) == DSCPS[0], what="marked")
        wait_until(lambda: peer_marks(controller, "late") == [], what="gone with its process")
        (groups / "late").rmdir()
        time.sleep(1.5)
    # Before the first, between the two, and after.
    assert agent.said.count("there is no cgroup") == 3


def test_measured_bytes_become_the_demand(controller: Controller, agent: Agent, peer: Peer, groups: Path) -> None:
    size = 400_000
    with job_in(groups / "job") as job:
        agent.job("measured", cgroup=f"/{groups.name}/job")
        job.do(f"connect {H2} {peer.port} {H1}")
        with (agent.jobs.parent / "measured.jsonl").open("a", buffering=1) as progress:
            began, iteration = time.monotonic(), 0
            while time.monotonic() - began < 25 and not state(controller, "measured").get("measured_demand"):
                job.do(f"send {size}")
                iteration += 1
                progress.write(json.dumps({"iteration": iteration, "time": time.time()}) + "\n")
                time.sleep(0.3)
            (demand,) = state(controller, "measured")["measured_demand"]
            assert (demand["src"], demand["dst"]) == ("h1", "h2")
            assert 0.75 * size < demand["bytes"] < 1.25 * size
            path = "/v1/jobs/measured/explain"
            wait_until(
                lambda: controller.call("GET", path).json()["bottleneck_seconds_per_iteration"] > 0,
                what="planned with it",
            )


def test_a_host_is_told_the_addresses_and_only_a_host_of_the_settings(controller: Controller) -> None:
    answer = controller.call("GET", "/v1/hosts/h1/peers", token=HOST)
    assert answer.json() == {"addresses": {H1: "h1", H2: "h2"}}
    again = controller.call("GET", "/v1/hosts/h1/peers", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    assert controller.call("GET", "/v1/hosts/h2/peers", token=HOST).status_code == 404
    assert controller.call("GET", "/v1/hosts/h9/peers").status_code == 404


def test_what_may_not_be_done_is_said_and_the_rest_goes_on(
    controller: Controller, tmp_path: Path, peer: Peer, groups: Path
) -> None:
    """An agent without any privilege: it finds, by cgroup, and tells; it marks nothing, and says so."""
    tmp_path.chmod(0o755)
    with job_in(groups / "one") as one:
        made = Agent(tmp_path, controller.url, prefix=("setpriv", "--bounding-set=-all", "--inh-caps=-all", "env"))
        try:
            made.job("one", cgroup=f"/{groups.name}/one")
            local = one.do(f"connect {H2} {peer.port} {H1}")
            wait_until(lambda: peer_marks(controller, "one") == [(peer.port, local)], what="found all the same")
            wait_until(lambda: "not marked" in made.said, what="said")
            assert "Traceback" not in made.said and made.process.poll() is None
        finally:
            made.process.kill()
            made.process.wait()
            controller.call("DELETE", "/v1/jobs/one")
    assert os.geteuid() == 0
