"""A running network: Mininet's hosts and switches, their limits, and the management network."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topo import Topo

from controller.code_points import PRESETS
from topologies import cgroups, limits, management, openvswitch, teardown, userspace
from topologies.errors import LabError
from topologies.experiments.addressing import of_host
from topologies.fork_server import ForkServer
from topologies.signals import ending_signals

OPENFLOW_PORT = 6653
_REAP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Plug:
    """An interface of a host: its addresses, its switch port by datapath id and number, its link's rate in bit/s."""

    host: str
    interface: str
    addresses: tuple[str, ...]
    switch: int
    port: int
    rate_bps: float


@dataclass(frozen=True, slots=True)
class Cable:
    """A link between two switches, by datapath id and port number, and its rate in bit/s."""

    a: int
    a_port: int
    b: int
    b_port: int
    rate_bps: float


class Emulation:
    """A running network. ``folder`` is in memory and private to the run. All processes started here end with it."""

    def __init__(self, net: Any, *, run: str, folder: Path, datapath: str, groups: Path | None = None) -> None:
        self._net = net
        self._run = run
        self._groups = groups
        self.folder = folder
        self.datapath = datapath
        self.own_queues = False
        self._started: list[subprocess.Popen[Any]] = []
        self._fork_server: ForkServer | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts' names, in the order of their numbers."""
        return tuple(sorted((host.name for host in self._net.hosts), key=lambda name: int(name[1:])))

    @property
    def bridges(self) -> tuple[str, ...]:
        """The switches' names."""
        return tuple(switch.name for switch in self._net.switches)

    @property
    def dscp(self) -> str:
        """The preset of the classes' DSCPs, by which the hosts' NICs serve."""
        return str(self._net.topo.dscp)

    def plugs(self, *hosts: str) -> tuple[Plug, ...]:
        """The interfaces of hosts, or of all hosts; those of one host in the order of their rails."""
        return tuple(plug for name in hosts or self.hosts for plug in self._plugs(name))

    def _plugs(self, host: str) -> Iterator[Plug]:
        node = self._net.get(host)
        for rail, number in enumerate(sorted(node.intfs)):
            own = node.intfs[number]
            opposite = own.link.intf2 if own.link.intf1 is own else own.link.intf1
            switch = opposite.node
            port = switch.ports[opposite]
            addresses = of_host(self._net.topo.addresses, int(host[1:]), rail)
            yield Plug(host, own.name, addresses, int(switch.dpid, 16), port, switch.rates_bps[port])

    def cables(self) -> tuple[Cable, ...]:
        """The links between switches."""
        cables = []
        for link in self._net.links:
            a, b = link.intf1, link.intf2
            if a.node in self._net.switches and b.node in self._net.switches:
                port = a.node.ports[a]
                rate = a.node.rates_bps[port]
                cables.append(Cable(int(a.node.dpid, 16), port, int(b.node.dpid, 16), b.node.ports[b], rate))
        return tuple(cables)

    def port_rates(self) -> dict[str, float]:
        """Every switch port's interface and its link's rate in bit/s."""
        return {s.intfs[number].name: rate for s in self._net.switches for number, rate in s.rates_bps.items()}

    def address(self, host: str) -> str:
        """The host's first address on the measured network."""
        return self.plugs(host)[0].addresses[0]

    def popen(self, host: str | None, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process on a host (None: outside of all hosts). It ends with the network at the latest."""
        inside = [] if host is None else ["mnexec", "-a", str(self._net.get(host).pid)]
        options.setdefault("stdin", subprocess.DEVNULL)
        env = {**(options.pop("env", None) or os.environ), teardown.TAG: self._run}
        process = subprocess.Popen([*inside, *command], env=env, start_new_session=True, **options)
        self._started.append(process)
        return process

    def pid(self, host: str) -> int:
        """Return the id of a process in the host's namespaces."""
        return int(self._net.get(host).pid)

    def cgroup(self, job: str) -> Path:
        """Return the cgroup of a job, which is removed with the network. Raises LabError."""
        return cgroups.make(self._groups, job)

    @property
    def fork_server(self) -> ForkServer:
        """The launcher of agents and trainers."""
        if self._fork_server is None:
            command = [sys.executable, "-m", "topologies.fork_server"]
            self._fork_server = ForkServer(self.popen(None, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return self._fork_server

    def reap(self) -> None:
        """Collect the exit statuses of all processes, which have been ended."""
        if self._fork_server is not None:
            self._fork_server.close()
        shells = [node.shell for node in (*self._net.hosts, *self._net.switches) if node.shell is not None]
        for process in (*self._started, *shells):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_SECONDS)

    def run(self, host: str | None, command: Sequence[str], *, timeout: float = 60.0) -> str:
        """Run a command on a host and return what it prints. Raises subprocess.CalledProcessError, TimeoutExpired."""
        process = self.popen(host, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, complaint = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(command), out, complaint)
        return str(out)

    def connect_controller(self, port: int = OPENFLOW_PORT) -> None:
        """Let every switch connect to a controller on loopback, and try at least once a second."""
        for bridge in self.bridges:
            openvswitch.vsctl(
                *("set-controller", bridge, f"tcp:127.0.0.1:{port}"),
                *("--", "set", "controller", bridge, "max_backoff=1000", "connection_mode=out-of-band"),
            )

    def use_own_queues(self, classes: int) -> None:
        """Make the switches' queues here (``queues: existing``). On the userspace datapath they serve by DSCP.

        A controller that manages the queues would drop those DSCP filters.
        """
        rates = self.port_rates()
        limits.make_queues(rates, classes)
        self.own_queues = True
        if self.datapath != "user":
            return
        deadline = time.monotonic() + 10
        while True:
            try:
                limits.classify_by_dscp(rates, PRESETS[self.dscp].first(classes))
                return
            except subprocess.CalledProcessError:
                # The switch makes its HTB a moment after the database has the queues.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


@contextlib.contextmanager
def emulate(topo: Topo, *, datapath: str = "kernel") -> Iterator[Emulation]:
    """Start ``topo`` on this kernel, and take everything down at the end.

    First this removes what a killed run has left. Raises TeardownError where another lab runs or where an interface has
    a name of the network, OpenVSwitchError where the switch does not start, LabError.
    """
    run = uuid.uuid4().hex
    with contextlib.ExitStack() as stack:
        stack.enter_context(ending_signals())
        stack.enter_context(teardown.only_lab())
        teardown.clean()
        own_switch = not openvswitch.running()
        groups = cgroups.folder_for(run)
        folder = teardown.HOME / run
        numbers = [int(host[1:]) for host in topo.hosts()]
        if max(numbers) > management.LARGEST:
            raise teardown.TeardownError(f"a lab has at most {management.LARGEST} hosts")
        teardown.note(
            teardown.Record(
                run=run,
                bridges=tuple(topo.switches()),
                interfaces=(*_switch_interfaces(topo), *management.interfaces(range(1, max(numbers) + 1))),
                folders=(str(folder),),
                cgroups=() if groups is None else (str(groups),),
                database=str(openvswitch.OWN_DATABASE) if own_switch else "",
                send_bytes=userspace.send_bytes() if datapath == "user" else 0,
            )
        )
        ended = stack.enter_context(contextlib.ExitStack())
        stack.callback(teardown.clean)
        folder.mkdir(mode=0o700)
        if datapath == "user":
            userspace.set_send_bytes(userspace.SEND_BYTES)
        if own_switch:
            openvswitch.start()
        emulation = Emulation(_start(topo, run), run=run, folder=folder, datapath=datapath, groups=groups)
        ended.callback(emulation.reap)
        yield emulation


def _start(topo: Topo, run: str) -> Any:
    setLogLevel("error")
    before = os.environ.get(teardown.TAG)
    # Mininet gives its shells this process's environment, so the run's name must be in it.
    os.environ[teardown.TAG] = run
    try:
        net = Mininet(topo=topo, controller=None, autoSetMacs=False)
        net.start()
    except Exception as error:
        # Mininet has no exceptions of its own.
        if type(error) is not Exception:
            raise
        raise LabError(f"the network does not start: {error}") from error
    finally:
        if before is None:
            del os.environ[teardown.TAG]
        else:
            os.environ[teardown.TAG] = before
    management.connect({int(host.name[1:]): host.pid for host in net.hosts})
    return net


def _switch_interfaces(topo: Topo) -> tuple[str, ...]:
    """Return the interfaces that Mininet makes in the root namespace: a switch's end of every link."""
    names = []
    for _a, _b, ports in topo.links(withInfo=True):
        for node, port in ((ports["node1"], ports["port1"]), (ports["node2"], ports["port2"])):
            if topo.isSwitch(node):
                names.append(f"{node}-eth{port}")
    return tuple(names)


def inventory(emulation: Emulation) -> list[Mapping[str, object]]:
    """The controller's ``hosts`` setting for this network."""
    plugs: dict[str, list[Plug]] = {}
    for plug in emulation.plugs():
        plugs.setdefault(plug.host, []).append(plug)
    return [
        {"name": host, **_attachment(own[0])}
        if len(own) == 1
        else {"name": host, "interfaces": [{"name": each.interface, **_attachment(each)} for each in own]}
        for host, own in plugs.items()
    ]


def _attachment(plug: Plug) -> Mapping[str, object]:
    first, *more = plug.addresses
    return {
        "address": first,
        **({"addresses": more} if more else {}),
        "ingress_bps": plug.rate_bps,
        "egress_bps": plug.rate_bps,
        "switch": plug.switch,
        "port": plug.port,
    }
