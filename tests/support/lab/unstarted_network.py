"""An emulation of a network that no kernel has: what is plugged in where is known, and nothing runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from topologies import networks
from topologies.emulation import Emulation
from topologies.experiments.addressing import Families


@dataclass(eq=False)
class Node:
    """A host or switch as Mininet has it once the network runs."""

    name: str
    dpid: str = ""
    rates_bps: dict[int, float] = field(default_factory=dict)
    pid: int = 7
    intfs: dict[int, Any] = field(default_factory=dict)
    ports: dict[Any, int] = field(default_factory=dict)


class Net:
    """As much of Mininet as an emulation reads, made of a topology without a kernel."""

    def __init__(self, topo: networks.Testbed) -> None:
        self.topo = topo
        self.nodes = {name: self._node(name) for name in topo.nodes()}
        self.hosts = [self.nodes[name] for name in topo.hosts()]
        self.switches = [self.nodes[name] for name in topo.switches()]
        self.links = [self._link(info) for _a, _b, info in topo.links(withInfo=True)]

    def get(self, name: str) -> Node:
        return self.nodes[name]

    def _node(self, name: str) -> Node:
        info = self.topo.nodeInfo(name)
        return Node(name, info.get("dpid", ""), info.get("rates_bps", {}))

    def _link(self, info: dict[str, Any]) -> SimpleNamespace:
        link = SimpleNamespace()
        for end in (1, 2):
            node, port = self.nodes[info[f"node{end}"]], info[f"port{end}"]
            intf = type("Intf", (), {"node": node, "name": f"{node.name}-eth{port}", "link": link})()
            node.intfs[port], node.ports[intf] = intf, port
            setattr(link, f"intf{end}", intf)
        return link


def emulation(rails: int, addresses: Families, folder: Path = Path()) -> Emulation:
    """A testbed of two servers."""
    topo = networks.Testbed(servers=2, link_bps=25e6, rails=rails, addresses=addresses)
    return Emulation(Net(topo), run="run", folder=folder, datapath="kernel")
