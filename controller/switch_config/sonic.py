"""SONiC: tables of its configuration database, each written by ``sonic-cfggen``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from controller.switch_config.plan import (
    DSCPS,
    MARK_ALL_BYTES,
    MARK_FROM_BYTES,
    PlannedPort,
    Queue,
    StaticPlan,
    strict_and_weighted,
)
from controller.switch_config.sonic_pages import COMMANDS, MANUAL, NETBERG, NVIDIA, SAVE
from controller.switch_config.stanza import NO_LOSSLESS, Stanza, check, cited

Rows = Mapping[str, Mapping[str, str]]

OURS = "TRAINYARD"
UNBELIEVED = "TRAINYARD_UNBELIEVED"
_EACH = {str(number): str(number) for number in range(8)}


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the configuration."""
    yield _stanza("DSCPs lead to traffic classes, and these to queues", "maps", _maps(plan))
    yield _stanza("Queues", "queues", _queues(plan), _floors_are_not_kept(), *_ecn_remarks(plan))
    yield _stanza("PFC", "pfc", _pfc(plan), _BUFFERS) if plan.lossless else NO_LOSSLESS
    yield _stanza(f"Ports: those with the map {OURS} are believed", "ports", {"PORT_QOS_MAP": _ports(plan)})
    yield Stanza("Keep it over a restart", ("sudo config save -y",), (SAVE,))
    yield check(_checks(plan), COMMANDS)


_BUFFERS = (
    'the profile "NULL" lets the dynamic buffer model compute the headroom; with the traditional model, name a '
    "profile of BUFFER_PROFILE there"
)


def _floors_are_not_kept() -> str:
    return (
        "SONiC has strict priority and weights, and no minimum rate of a strict queue, so the floors of strict queues "
        f"are not kept: {cited(NETBERG)}"
    )


def _ecn_remarks(plan: StaticPlan) -> tuple[str, ...]:
    return ("the thresholds of ECN are in bytes; which are right, rate and buffers decide",) if plan.lossless else ()


def _maps(plan: StaticPlan) -> Mapping[str, Rows]:
    classes = {str(dscp): str(number) for number, dscps in plan.dscps_by_queue() for dscp in dscps}
    ordered = {str(dscp): classes[str(dscp)] for dscp in DSCPS}
    unbelieved = {UNBELIEVED: dict.fromkeys(ordered, "0")} if plan.untrusted else {}
    return {"DSCP_TO_TC_MAP": {OURS: ordered} | unbelieved, "TC_TO_QUEUE_MAP": {OURS: _EACH}}


def _queues(plan: StaticPlan) -> Mapping[str, Rows]:
    strict, weights = strict_and_weighted(plan.queues)
    schedulers: dict[str, Mapping[str, str]] = {f"{OURS}_STRICT": {"type": "STRICT"}} if strict else {}
    schedulers |= {f"{OURS}_{number}": {"type": "DWRR", "weight": str(share)} for number, share in weights.items()}
    wred: dict[str, Rows] = {"WRED_PROFILE": {OURS: _wred()}} if plan.lossless else {}
    rows = {f"{port.name}|{queue.number}": _queue(queue, weights) for port in plan.ports for queue in plan.queues}
    return {"SCHEDULER": schedulers, **wred, "QUEUE": rows}


def _queue(queue: Queue, weights: Mapping[int, int]) -> Mapping[str, str]:
    scheduler = {"scheduler": f"{OURS}_{queue.number if queue.number in weights else 'STRICT'}"}
    return scheduler | ({"wred_profile": OURS} if queue.kind == "lossless" else {})


def _wred() -> Mapping[str, str]:
    row = {"ecn": "ecn_all"}
    for colour in ("green", "yellow", "red"):
        row[f"wred_{colour}_enable"] = "true"
        row[f"{colour}_min_threshold"] = str(MARK_FROM_BYTES)
        row[f"{colour}_max_threshold"] = str(MARK_ALL_BYTES)
        row[f"{colour}_drop_probability"] = "100"
    return row


def _pfc(plan: StaticPlan) -> Mapping[str, Rows]:
    assert plan.lossless is not None
    number = str(plan.lossless.number)
    groups = {tc: number if tc == number else "0" for tc in _EACH}
    buffers = {f"{port.name}|{number}": {"profile": "NULL"} for port in plan.trusted}
    return {
        "TC_TO_PRIORITY_GROUP_MAP": {OURS: groups},
        "MAP_PFC_PRIORITY_TO_QUEUE": {OURS: _EACH},
        "BUFFER_PG": buffers,
    }


def _ports(plan: StaticPlan) -> Rows:
    pfc: dict[str, str] = {}
    if plan.lossless:
        pfc = {"tc_to_pg_map": OURS, "pfc_to_queue_map": OURS, "pfc_enable": str(plan.lossless.number)}
    return {port.name: _port(port, pfc) for port in plan.ports}


def _port(port: PlannedPort, pfc: Mapping[str, str]) -> Mapping[str, str]:
    believed = {"dscp_to_tc_map": OURS if port.is_trusted else UNBELIEVED, "tc_to_queue_map": OURS}
    return {**believed, **(pfc if port.is_trusted else {})}


def _checks(plan: StaticPlan) -> Iterator[str]:
    yield from (f"show queue counters {port.name}" for port in plan.ports)
    if plan.lossless:
        yield from ("show pfc priority", "show pfc counters", "show ecn")


def _stanza(title: str, name: str, tables: Mapping[str, Rows], *remarks: str) -> Stanza:
    """Returns a stanza whose lines write tables to a file, and the file to the database."""
    file = f"trainyard-{name}.json"
    written = (f"cat > {file} <<'END'", *_json(tables), "END", f"sudo sonic-cfggen -j {file} --write-to-db")
    return Stanza(title, written, (MANUAL, NVIDIA), remarks)


def _json(tables: Mapping[str, Rows]) -> Iterator[str]:
    """Yields the tables as JSON with a line for each row."""
    text = [
        f'  "{table}": {{\n' + ",\n".join(f'    "{key}": {json.dumps(row)}' for key, row in rows.items()) + "\n  }"
        for table, rows in tables.items()
    ]
    yield from ("{\n" + ",\n".join(text) + "\n}").split("\n")
