"""Rules as OpenFlow 1.3 messages, and rules from a switch's answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any
from zlib import crc32

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.encoding import encoded_instructions, encoded_match
from controller.dataplane.messages import FlowMod
from controller.dataplane.peers import flow_stats
from controller.dataplane.queues.numbers import IN_ORDER, QueueNumbers, class_of
from controller.memo import Memo
from controller.pieces import Steps
from controller.rules.rule import (
    PIECE,
    Action,
    Match,
    Metered,
    Normal,
    Output,
    Rule,
    RuleKey,
    SetClass,
    SetDscp,
    SetMetadata,
    Table,
    ToController,
    by_key,
)

OWNER = 0x7472
"""Stands in the upper 16 bits of the cookie of every rule of ours. Rules of other owners are left alone."""

GATE_OWNER = 0x7473
"""Stands there in the gate's cookie. The gate times out by itself, so it is not among the rules that are read back."""

OWNER_COOKIE = OWNER << 48
OWNER_MASK = 0xFFFF << 48
BOTH_MASK = 0xFFFE << 48
"""Selects our rules and the gate together: under this mask both cookies are ``OWNER_COOKIE``."""

GATE_PRIORITY = 1
_FLOW_MOD = Struct("!QQBBHHHIIIH2x")
"""The parts of a flow mod between its header and its match (OpenFlow 1.3.5, 7.3.4.1)."""

PORT_REASONS = 1 << ofp.OFPPR_ADD | 1 << ofp.OFPPR_DELETE | 1 << ofp.OFPPR_MODIFY
REMOVAL_REASONS = (
    1 << ofp.OFPRR_IDLE_TIMEOUT | 1 << ofp.OFPRR_HARD_TIMEOUT | 1 << ofp.OFPRR_DELETE | 1 << ofp.OFPRR_GROUP_DELETE
)
"""The reasons for which switches tell of ports and of removed rules: all of them, as without a request."""

_rules: Memo[Any, dict[tuple[int, QueueNumbers], Rule | None]] = Memo(flow_stats.MOST)
_MATCH_FIELDS = Match._fields
_TABLES = frozenset(Table)
_MASKED_FIELDS = frozenset({"metadata", "eth_dst"})
"""The fields of which a rule of ours may match some bits."""
_WHOLE_FIELDS = frozenset(_MATCH_FIELDS) - {"metadata"}
"""The fields of which a rule of ours may match all bits."""


def job_tag(job: str | None) -> int:
    """Returns the 32 bits that stand for a job in a cookie: an odd number, or 0 for no job.

    Two jobs may have the same tag: it only labels the rule.
    """
    return 0 if job is None else crc32(job.encode()) | 1


def cookie(job: str | None, epoch: int) -> int:
    """Returns the cookie: owner (16 bits), epoch of the change that added the rule (16 bits), job tag (32 bits)."""
    return OWNER_COOKIE | (epoch & 0xFFFF) << 32 | job_tag(job)


@dataclass(frozen=True, slots=True)
class HeldRule:
    """A rule of ours as read from a switch.

    ``rule`` has no job name; it is None where this version would not make such a rule. ``tag`` stands for the job (see
    ``job_tag``).
    """

    rule: Rule | None
    tag: int
    table: int
    priority: int
    match: Any


def add(datapath: Any, rule: Rule, epoch: int, numbers: QueueNumbers = IN_ORDER) -> Any:
    """Returns the message that adds ``rule``, or replaces the rule with the same key. ``numbers`` are classes' queues.

    The switch reports the removal of rules of no job, because packets are lost without them. Jobs' rules change with
    each plan, by the thousand, so their number is compared instead (see ``audit``).
    """
    body = _body(
        rule,
        ofp.OFPFC_ADD,
        owner=cookie(rule.job, epoch),
        flags=ofp.OFPFF_SEND_FLOW_REM if rule.job is None else 0,
        instructions=encoded_instructions(rule.actions, rule.goto, numbers),
    )
    return FlowMod(datapath, body)


def delete(datapath: Any, rule: Rule) -> Any:
    """Returns the message that deletes the rule with exactly this key, if it is ours."""
    return FlowMod(datapath, _body(rule, ofp.OFPFC_DELETE_STRICT, owner=OWNER_COOKIE, mask=OWNER_MASK))


def delete_held(datapath: Any, held: HeldRule) -> Any:
    """Returns the message that deletes a rule as it was read."""
    return _delete(datapath, held.table, held.priority, held.match)


def gate(datapath: Any, seconds: int) -> Any:
    """Returns the message that opens the gate, from table 0 to table 1, for ``seconds``.

    A second one restarts the time.
    """
    return parser.OFPFlowMod(
        datapath,
        cookie=GATE_OWNER << 48,
        table_id=Table.GATE,
        command=ofp.OFPFC_ADD,
        hard_timeout=seconds,
        flags=ofp.OFPFF_SEND_FLOW_REM,
        priority=GATE_PRIORITY,
        match=parser.OFPMatch(),
        instructions=[parser.OFPInstructionGotoTable(Table.CLASSIFY)],
    )


def close_gate(datapath: Any) -> Any:
    """Returns the message that closes the gate, if it is open."""
    return _delete(datapath, Table.GATE, GATE_PRIORITY, parser.OFPMatch(), GATE_OWNER << 48)


def listen(datapath: Any, *, is_listening: bool) -> Any:
    """Returns the message after which a switch sends packets for the controller, or none (OFPT_SET_ASYNC)."""
    packets = 1 << ofp.OFPR_ACTION if is_listening else 0
    return parser.OFPSetAsync(
        datapath,
        packet_in_mask=[packets, 0],
        port_status_mask=[PORT_REASONS, PORT_REASONS],
        flow_removed_mask=[REMOVAL_REASONS, 0],
    )


def read_request(datapath: Any, cookie: int = OWNER_COOKIE, mask: int = OWNER_MASK) -> Any:
    """Returns the request for the rules with this cookie in every table; by default, all rules of ours."""
    return parser.OFPFlowStatsRequest(
        datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, cookie, mask, parser.OFPMatch()
    )


def count_request(datapath: Any, *, with_gate: bool) -> Any:
    """Returns the request for the number of rules of ours."""
    mask = BOTH_MASK if with_gate else OWNER_MASK
    return parser.OFPAggregateStatsRequest(
        datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, OWNER_COOKIE, mask, parser.OFPMatch()
    )


def read_rules(dpid: int, replies: Iterable[Any], numbers: QueueNumbers = IN_ORDER) -> list[HeldRule]:
    """Returns the rules of ours in the answer to ``read_request``, without the gate. ``numbers`` as in ``add``."""
    held = []
    for reply in replies:
        for stat in reply.body:
            if stat.cookie & OWNER_MASK != OWNER_COOKIE:
                continue
            tag = stat.cookie & 0xFFFFFFFF
            rule = _remembered_rule(dpid, stat, numbers)
            held.append(HeldRule(rule, tag, stat.table_id, stat.priority, stat.match))
    return held


def shows_gate(replies: Iterable[Any]) -> bool:
    """Returns whether the gate, as ``gate`` makes it, is in the answer to ``read_request``."""
    return any(_is_gate(stat) for reply in replies for stat in reply.body if stat.cookie >> 48 == GATE_OWNER)


def is_about_our_rule(message: Any) -> bool:
    """Returns whether a flow-removed message is about a rule of ours or the gate."""
    is_ours: bool = message.cookie & BOTH_MASK == OWNER_COOKIE
    return is_ours


def rules_and_tags(held: Iterable[HeldRule]) -> Steps[tuple[frozenset[Rule], Mapping[RuleKey, int]]]:
    """Returns the rules that were read, and the job tags of those that are of a job; yields where others may go on."""
    rules: set[Rule] = set()
    tags: dict[RuleKey, int] = {}
    for number, item in enumerate(held, 1):
        if item.rule is not None:
            rules.add(item.rule)
            if item.tag:
                tags[item.rule.key] = item.tag
        if number % PIECE == 0:
            yield
    return frozenset(rules), tags


def label(rules: frozenset[Rule], tags: Mapping[RuleKey, int], wanted: Iterable[Rule]) -> Steps[frozenset[Rule]]:
    """Returns ``rules`` as read, with the job names of those that equal a rule in ``wanted``.

    Two rules are equal if key, actions, next table and job tag (in ``tags``, by key) are. Such a rule costs no message.
    Yields where others may go on.
    """
    if not tags:
        return rules
    twins = yield from by_key(wanted)
    named: set[Rule] = set()
    for number, rule in enumerate(rules, 1):
        key = rule.key
        twin = twins.get(key)
        is_same = (
            twin is not None
            and (twin.actions, twin.goto) == (rule.actions, rule.goto)
            and job_tag(twin.job) == tags.get(key, 0)
        )
        named.add(twin if twin is not None and is_same else rule)
        if number % PIECE == 0:
            yield
    return frozenset(named)


def _delete(datapath: Any, table: int, priority: int, match: Any, cookie: int = OWNER_COOKIE) -> Any:
    return parser.OFPFlowMod(
        datapath,
        cookie=cookie,
        cookie_mask=OWNER_MASK,
        table_id=table,
        command=ofp.OFPFC_DELETE_STRICT,
        priority=priority,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=match,
    )


def _body(rule: Rule, command: int, *, owner: int, mask: int = 0, flags: int = 0, instructions: bytes = b"") -> bytes:
    """Returns all of a flow mod behind its header, with the key of ``rule``. It has no timeouts."""
    fixed = _FLOW_MOD.pack(
        owner, mask, rule.table, command, 0, 0, rule.priority, ofp.OFP_NO_BUFFER, ofp.OFPP_ANY, ofp.OFPG_ANY, flags
    )
    return fixed + encoded_match(rule.match) + instructions


def _remembered_rule(dpid: int, stat: Any, numbers: QueueNumbers) -> Rule | None:
    """Returns the rule in an entry. Equal entries are one object (see ``flow_stats``), whose rules are remembered."""
    found = _rules.get(stat, dict)
    key = dpid, numbers
    if key not in found:
        found[key] = _rule(dpid, stat, numbers)
    return found[key]


def _rule(dpid: int, stat: Any, numbers: QueueNumbers) -> Rule | None:
    """Returns the rule in one entry of flow statistics, or None if this version would not make it."""
    values = dict(stat.match.items())
    if not all(_is_ours(name, value) for name, value in values.items()):
        return None
    if stat.table_id not in _TABLES or stat.hard_timeout or stat.idle_timeout:
        return None
    done = _read_instructions(stat.instructions, numbers)
    if done is None:
        return None
    actions, goto = done
    return Rule(dpid, Table(stat.table_id), stat.priority, Match(**values), actions, goto)


def _is_ours(name: str, value: Any) -> bool:
    """Returns whether a rule of ours can match this value of a field."""
    return name in (_MASKED_FIELDS if isinstance(value, tuple) else _WHOLE_FIELDS)


def _read_instructions(
    instructions: Iterable[Any], numbers: QueueNumbers
) -> tuple[tuple[Action, ...], Table | None] | None:
    """Returns what a rule does and the table to which it leads; None: no rule of ours does so."""
    actions: list[Action] = []
    meters: list[Action] = []
    notes: list[Action] = []
    goto: Table | None = None
    for instruction in instructions:
        if isinstance(instruction, parser.OFPInstructionGotoTable) and instruction.table_id in _TABLES:
            goto = Table(instruction.table_id)
        elif isinstance(instruction, parser.OFPInstructionWriteMetadata):
            notes.append(SetMetadata(instruction.metadata, instruction.metadata_mask))
        elif isinstance(instruction, parser.OFPInstructionMeter):
            meters.append(Metered(instruction.meter_id))
        elif instruction.type == ofp.OFPIT_APPLY_ACTIONS:
            for item in instruction.actions:
                action = _read_action(item, numbers)
                if action is None:
                    return None
                actions.append(action)
        else:
            return None
    return (*meters, *actions, *notes), goto


def _is_gate(stat: Any) -> bool:
    if (stat.table_id, stat.priority) != (Table.GATE, GATE_PRIORITY) or dict(stat.match.items()):
        return False
    leads = [getattr(instruction, "table_id", None) for instruction in stat.instructions]
    return leads == [Table.CLASSIFY]


def _read_action(item: Any, numbers: QueueNumbers) -> Action | None:
    if isinstance(item, parser.OFPActionSetQueue):
        try:
            return SetClass(class_of(item.queue_id, numbers))
        except ValueError:  # a rule of a time when classes had other queues
            return None
    if isinstance(item, parser.OFPActionSetField) and item.key == "ip_dscp":
        return SetDscp(item.value)
    if isinstance(item, parser.OFPActionOutput):
        if item.port == ofp.OFPP_CONTROLLER:
            return ToController()
        return Normal() if item.port == ofp.OFPP_NORMAL else Output(item.port)
    return None
