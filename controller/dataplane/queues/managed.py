"""Makes the missing queues of a switch whose database the controller may change, and changes those with other values.

A fault at one port affects that port only: all others get their queues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.dataplane.queues import ovsdb
from controller.dataplane.queues.numbers import PortQueues
from controller.dataplane.queues.ovsdb import BridgePort, Database
from controller.dataplane.queues.ovsdb_select import OvsdbError, State
from controller.dataplane.queues.work import QueueWork, compare_queues


@dataclass(frozen=True, slots=True)
class QueueResult:
    """The result for a switch's ports.

    ``created`` are the numbers of the ports whose queues were made, ``changed`` of those whose queues were changed in
    place, ``skipped`` the reasons of ports whose queues are not as wanted, by number. ``problem`` says why no port
    could get queues; ``remark`` is a further note for the operator. ``is_compared`` says whether the database was read.
    """

    created: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()
    skipped: Mapping[int, str] = field(default_factory=dict)
    problem: str | None = None
    remark: str | None = None
    is_compared: bool = True


def ensure_queues(database: Database | None, dpid: int, queues: Callable[[int], PortQueues]) -> QueueResult:
    """Give each port of a bridge the queues that ``queues`` returns for its number. Raises OvsdbError.

    ``database`` is None where the settings name none.
    """
    if database is None:
        return QueueResult(problem=f"ovsdb has no address for switch {dpid:#x}; add it, or set queues: existing")
    with database.lock:
        return _ensure_queues(database, dpid, queues)


def _ensure_queues(database: Database, dpid: int, queues: Callable[[int], PortQueues]) -> QueueResult:
    state = database.read()
    ports = ovsdb.bridge_ports(state, dpid)
    if ports is None:
        return QueueResult(
            problem=f"no bridge in {database.address} has this datapath id; set ovsdb (an address, or one for each "
            "switch), or queues: existing"
        )
    work = compare_queues(state, {port: queues(port.number) for port in ports})
    skipped = {port.number: _foreign(port) for port in work.foreign}
    if work:
        refused = _carry_out(database, dpid, work, queues)
        skipped |= refused
        work = work.without(refused)
        state = database.read()
    remarks = [each for each in (_collect(database, state), _see_through_tags(database, state)) if each is not None]
    return QueueResult(work.created, work.changed, skipped, remark="; ".join(remarks) or None)


def _carry_out(database: Database, dpid: int, work: QueueWork, queues: Callable[[int], PortQueues]) -> dict[int, str]:
    """Make and change the queues of all ports in one transaction; if that fails, port by port.

    Returns the reasons of failed ports.

    Raises OvsdbError if the database does not answer.
    """
    try:
        database.run(*work.transaction(dpid))
    except OvsdbError:
        # Port names may have changed since the database was read, and a late transaction may be done by now.
        state = database.read()
        ports = ovsdb.bridge_ports(state, dpid) or ()
    else:
        return {}
    refused = {}
    for port in ports:
        own = compare_queues(state, {port: queues(port.number)})
        if not own or port.number not in work.created | work.changed:
            continue
        try:
            database.run(*own.transaction(dpid))
        except OvsdbError as error:
            database.read()
            done = "made" if own.created else "changed"
            refused[port.number] = f"port {port.name}: its queues could not be {done}: {error}"
    return refused


def _collect(database: Database, state: State) -> str | None:
    """Delete the rows that no port uses any more. Returns why it failed, which is harmless."""
    garbage = ovsdb.collect_garbage(state)
    if not garbage:
        return None
    try:
        database.run("--no-wait", *garbage)
    except OvsdbError as error:
        return f"queues in its database that no port uses any more could not be deleted: {error}"
    return None


def _see_through_tags(database: Database, state: State) -> str | None:
    """Let the switch look behind two VLAN tags. Returns why that failed."""
    arguments = ovsdb.see_through_tags(state)
    if not arguments:
        return None
    try:
        database.run("--no-wait", *arguments)
    except OvsdbError as error:
        return f"packets with two VLAN tags are other traffic, because vlan-limit could not be set: {error}"
    return None


def _foreign(port: BridgePort) -> str:
    return (
        f"port {port.name} has queues that are not Trainyard's; "
        f"clear them (ovs-vsctl clear port {port.name} qos) or set queues: existing"
    )
