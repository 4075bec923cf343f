"""What the ports of a bridge need so that their queues are as wanted: new rows, or other values in their rows. Pure.

Other values in the rows disturb no packet. Open vSwitch 3.1 on Linux 6.1 keeps the port's ``htb`` tree and changes the
rates of each class in it: ``tc -s class show`` has the same counters going on, as many waiting packets and no dropped
one. A port whose ``qos`` is cleared loses the tree, its counters and the packets that wait in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.dataplane.queues.numbers import KIND, PortQueues
from controller.dataplane.queues.ovsdb import TAG, BridgePort, as_set
from controller.dataplane.queues.ovsdb_select import Row, State


@dataclass(frozen=True, slots=True)
class QueueWork:
    """What the ports of a bridge need.

    The ports in ``missing`` need new queues. Those in ``unlike`` need other values in their rows: the arguments of
    ``ovs-vsctl`` that set them. Those in ``foreign`` have queues that are not ours, and are left alone. The value is
    false if no port needs anything.
    """

    missing: Mapping[BridgePort, PortQueues]
    unlike: Mapping[BridgePort, tuple[str, ...]]
    foreign: frozenset[BridgePort]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unlike)

    @property
    def created(self) -> frozenset[int]:
        """Returns the numbers of the ports whose queues are made."""
        return frozenset(port.number for port in self.missing)

    @property
    def changed(self) -> frozenset[int]:
        """Returns the numbers of the ports whose queues are changed in place."""
        return frozenset(port.number for port in self.unlike)

    def without(self, ports: Collection[int]) -> QueueWork:
        """Returns the same for all ports but those with these numbers."""
        missing = {port: queues for port, queues in self.missing.items() if port.number not in ports}
        unlike = {port: changes for port, changes in self.unlike.items() if port.number not in ports}
        return QueueWork(missing, unlike, self.foreign)

    def transaction(self, dpid: int) -> list[str]:
        """Returns the arguments of one ``ovs-vsctl`` transaction that does it all."""
        changes = [argument for arguments in self.unlike.values() for argument in arguments]
        return [*make_queues(dpid, self.missing), *changes][1:]


def compare_queues(state: State, ports: Mapping[BridgePort, PortQueues]) -> QueueWork:
    """Returns what the ports need so that their queues are as wanted. Rows that are right are not touched."""
    systems = {row["_uuid"]: row for row in state["QoS"]}
    rows = {row["_uuid"]: row for row in state["Queue"]}
    users = Counter(uuid for system in state["QoS"] for uuid in system["queues"].values())
    users += Counter(uuid for port in state["Port"] for uuid in as_set(port["qos"]))
    missing: dict[BridgePort, PortQueues] = {}
    unlike: dict[BridgePort, tuple[str, ...]] = {}
    foreign = set()
    for port, wanted in ports.items():
        system = systems.get(port.qos) if port.qos is not None else None
        if system is None:
            missing[port] = wanted
        elif TAG not in system["external_ids"]:
            foreign.add(port)
        else:
            held = {number: rows[uuid] for number, uuid in system["queues"].items() if uuid in rows}
            changes = _changes(system, held, wanted)
            # Rows that another port or somebody else uses too are not changed: this port gets its own.
            is_own = all(TAG in row["external_ids"] and users[row["_uuid"]] == 1 for row in (system, *held.values()))
            if system["type"] != KIND or held.keys() != wanted.queues.keys() or (changes and not is_own):
                missing[port] = wanted
            elif changes:
                unlike[port] = changes
    return QueueWork(missing, unlike, frozenset(foreign))


def _changes(system: Row, held: Mapping[int, Row], wanted: PortQueues) -> tuple[str, ...]:
    """Returns the arguments that give rows other values where those are not as wanted."""
    arguments: list[str] = []
    if system["other_config"].get("max-rate") != wanted.rate:
        arguments += ["--", "set", "qos", system["_uuid"], f"other_config:max-rate={wanted.rate}"]
    for number, config in wanted.queues.items():
        if number in held and held[number]["other_config"] != config:
            values = ",".join(f"{key}={value}" for key, value in config.items())
            arguments += ["--", "set", "queue", held[number]["_uuid"], f"other_config={values}"]
    return tuple(arguments)


def make_queues(dpid: int, ports: Mapping[BridgePort, PortQueues]) -> list[str]:
    """Returns arguments of ``ovs-vsctl`` that give each port new queues; the old rows lose their port."""
    arguments: list[str] = []
    for port, wanted in ports.items():
        tag = f"external_ids:{TAG}={dpid:016x}/{port.number}"
        name = f"@p{port.number}"
        links = [f"queues:{number}={name}q{number}" for number in wanted.queues]
        arguments += ["--", "set", "port", port.name, f"qos={name}"]
        arguments += ["--", f"--id={name}", "create", "qos", f"type={KIND}"]
        arguments += [f"other_config:max-rate={wanted.rate}", tag, *links]
        for number, config in wanted.queues.items():
            values = [f"other_config:{key}={value}" for key, value in config.items()]
            arguments += ["--", f"--id={name}q{number}", "create", "queue", *values, tag]
    return arguments
