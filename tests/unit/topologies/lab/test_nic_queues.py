"""The queues of hosts' NICs, which an experiment may size, and what agents are told to order there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from host_reporter.options import read_options
from topologies.experiments.workload import LIGHT, generate
from topologies.lab import nic_queues
from topologies.lab.agents import Agents
from topologies.lab.results import PolicyChoice

PLAIN = generate(LIGHT, 1)
SIZED = PLAIN.model_copy(update={"nic_queue_bytes": 16 * 2**20})


class Hosts:
    """What ``nic_queues`` asks of an emulation: the commands are kept."""

    def plugs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(host=host, interface=f"{host}-eth0") for host in ("h1", "h2")]

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def run(self, host: str, command: list[str], *, timeout: float = 60.0) -> str:
        self.said.append((host, command[-1]))
        return ""


def test_nic_queues_are_as_the_experiment_wants_for_as_long_as_an_arm_takes() -> None:
    hosts = Hosts()
    with pytest.raises(RuntimeError), nic_queues.as_wanted(hosts, SIZED):
        assert [host for host, _ in hosts.said] == ["h1", "h2"]
        assert hosts.said[1][1].splitlines() == [
            "tc qdisc change dev h2-eth0 parent 7472:10 handle 7510: bfifo limit 16777216",
            "tc qdisc change dev h2-eth0 parent 7472:1f handle 751f: bfifo limit 16777216",
        ]
        raise RuntimeError
    assert [line.split()[-1] for line in hosts.said[2][1].splitlines()] == [str(512 * 1024), str(128 * 1024)]
    plain = Hosts()
    with nic_queues.as_wanted(plain, PLAIN, "none"):
        pass
    assert plain.said == []


def test_connections_are_hashed_to_queues_that_share_the_link_alike_and_go_again() -> None:
    hosts = Hosts()
    with nic_queues.as_wanted(hosts, SIZED, "hashed"):
        commands = hosts.said[3][1].splitlines()
        assert commands[:3] == [
            "tc class add dev h2-eth0 parent 7472:1 classid 7472:40 htb rate 1000bit ceil 10000000bit prio 0 "
            "burst 3028 cburst 3028 quantum 15140",
            "tc qdisc add dev h2-eth0 parent 7472:40 handle 7540: bfifo limit 16777216",
            "tc filter add dev h2-eth0 parent 7472: protocol ip prio 1 u32 match u8 0x45 0xff at 0 "
            "match u8 0x06 0xff at 9 match u16 0x0000 0x000e at 22 flowid 7472:40",
        ]
        assert len(commands) == 3 * nic_queues.HASHED_QUEUES
        matches = [command for command in commands if "filter" in command]
        assert [f"0x{2 * n:04x} 0x000e at 22 flowid 7472:{0x40 + n:x}" in matches[n] for n in range(8)] == [True] * 8
    gone = hosts.said[5][1].splitlines()
    assert gone[0] == "tc filter del dev h2-eth0 parent 7472: protocol ip prio 1", "queues with a filter would stay"
    assert gone[1:] == [f"tc class del dev h2-eth0 classid 7472:{minor:x}" for minor in range(0x40, 0x48)]
    assert "bfifo limit 524288" in hosts.said[7][1], "and the queues of the tree have their own size again"


def test_what_an_arm_could_not_be_given_is_taken_back() -> None:
    class Refusing(Hosts):
        def run(self, host: str, command: list[str], *, timeout: float = 60.0) -> str:
            super().run(host, command)
            if "filter add" in command[-1] and host == "h2":
                raise OSError("no such thing")
            return ""

    hosts = Refusing()
    with pytest.raises(OSError, match="no such thing"), nic_queues.as_wanted(hosts, PLAIN, "hashed"):
        pass
    assert "filter del" in hosts.said[-1][1] or "class del" in hosts.said[-1][1]


class Launched:
    """An emulation whose fork server records what it was asked to start."""

    hosts = ("h1",)

    def plugs(self, host: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(interface=f"{host}-eth0")]

    def __init__(self) -> None:
        self.arguments: list[list[str]] = []
        self.fork_server = self

    def pid(self, host: str) -> int:
        return 1

    def start(self, program: str, arguments: list[str], **_others: object) -> None:
        self.arguments.append(arguments)

    def host_token(self, host: str) -> str:
        return "t"


def test_agents_are_told_what_orders_their_nic(tmp_path: Path) -> None:
    launched = Launched()
    agents = Agents(launched, tmp_path)
    for nic in ("plan", "none", "hashed", "tls-rr", "tls-each"):
        agents.start_reporters(launched, PLAIN, PolicyChoice("fair", nic=nic).nic)
    plan, nothing, hashed, rotated, each = launched.arguments
    assert plan[plan.index("--nic") + 1] == "plan"
    for arguments in (nothing, hashed):
        assert "--interface" not in arguments
        assert "--nic" not in arguments
    assert rotated[rotated.index("--nic") + 1 :] == ["tls-rr", "--rate-bps", "10000000", "--interface", "h1-eth0"]
    assert each[each.index("--nic") + 1 :][:3] == ["tls-one", "--nic-bands", "each"]
    for arguments in (plan, rotated, each):
        read_options(arguments, {})
