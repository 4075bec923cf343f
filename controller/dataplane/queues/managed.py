"""The queues of a switch whose database is ours to change: made where they are missing, port by port if need be.

What is wrong at one port is that port's problem: all others get their queues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.dataplane.queues import ovsdb
from controller.dataplane.queues.numbers import PortQueues
from controller.dataplane.queues.ovsdb import BridgePort, Database
from controller.dataplane.queues.ovsdb_select import OvsdbError, State


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a switch's queues: the numbers of ports whose queues were made, and why others have none.

    ``problem`` is what keeps all ports from getting them; ``remark`` is what an operator should know beside all that.
    """

    made: frozenset[int] = frozenset()
    left: Mapping[int, str] = field(default_factory=dict)
    problem: str | None = None
    remark: str | None = None


def make(database: Database | None, dpid: int, queues: Callable[[int], PortQueues]) -> Made:
    """Give each port of a bridge the queues that ``queues`` names for its number. Raises OvsdbError.

    None as the database: the settings name none.
    """
    if database is None:
        return Made(problem=f"ovsdb has no address for switch {dpid:#x}; add it, or set queues: existing")
    with database.lock:
        return _make(database, dpid, queues)


def _make(database: Database, dpid: int, queues: Callable[[int], PortQueues]) -> Made:
    state = database.read()
    ports = ovsdb.bridge_ports(state, dpid)
    if ports is None:
        return Made(
            problem=f"no bridge in {database.address} has this datapath id; set ovsdb (an address, or one for each "
            "switch), or queues: existing"
        )
    wanted = {port: queues(port.number) for port in ports}
    missing, foreign = ovsdb.missing_queues(state, wanted)
    left = {port.number: _foreign(port) for port in foreign}
    made = frozenset(port.number for port in missing)
    if missing:
        refused = _change(database, dpid, missing, queues)
        left |= refused
        made -= refused.keys()
        state = database.read()
    return Made(made, left, remark=_collect(database, state))


def _change(
    database: Database, dpid: int, missing: Mapping[BridgePort, PortQueues], queues: Callable[[int], PortQueues]
) -> dict[int, str]:
    """Make queues: of all ports in one transaction, or else one port after the other. Returns why ports have none.

    Raises OvsdbError where the database itself does not answer.
    """
    try:
        database.run(*ovsdb.make_queues(dpid, missing))
    except OvsdbError:
        # The names that the database knows may have changed since it was read; and what was late may be done by now.
        state = database.read()
        ports = ovsdb.bridge_ports(state, dpid) or ()
        numbers = {port.number for port in missing}
        missing, _ = ovsdb.missing_queues(state, {p: queues(p.number) for p in ports if p.number in numbers})
    else:
        return {}
    refused = {}
    for port, wanted in missing.items():
        try:
            database.run(*ovsdb.make_queues(dpid, {port: wanted}))
        except OvsdbError as error:
            database.read()
            refused[port.number] = f"port {port.name}: its queues could not be made: {error}"
    return refused


def _collect(database: Database, state: State) -> str | None:
    """Delete the rows that no port uses any more. That they stay harms nobody. Returns why they do."""
    garbage = ovsdb.collect_garbage(state)
    if not garbage:
        return None
    try:
        database.run("--no-wait", *garbage)
    except OvsdbError as error:
        return f"queues in its database that no port uses any more could not be deleted: {error}"
    return None


def _foreign(port: BridgePort) -> str:
    return (
        f"port {port.name} has queues that are not Trainyard's; "
        f"clear them (ovs-vsctl clear port {port.name} qos) or set queues: existing"
    )
