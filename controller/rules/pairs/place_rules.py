"""The rules that give traffic between hosts with jobs a class where nothing else tells it apart. Pure.

Three tables do so. *Sources* notes the group of the host that sends. *Pairs* notes, by that group and the destination,
whether a job has this pair of hosts alone, and its class, or else that both have jobs. *Places* then gives the class:
packets of a kind that jobs use get that of their job, and all others the last class. A packet that matches nothing in
one of these tables is other traffic. A packet with a DSCP of another program keeps it.

Where jobs have DSCPs of their own, *pairs* notes that of the job in the place of its class, so that a plan changes only
*places*. Packets of the last class then get no DSCP, because no job has one that stands for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain

from controller.code_points import CodePoints
from controller.memo import Memo
from controller.model import Switch
from controller.rules.families import ANY, from_end, is_mac, to_end
from controller.rules.metadata import IS_CONTROL_KIND, note_group, note_place, of_group, of_job_kind_in, of_main_job
from controller.rules.pairs.places import Partners, Places, Source
from controller.rules.priorities import (
    CONTROL_SOURCE,
    LAST_CLASS,
    LAST_CLASS_UNMARKED,
    MISS,
    OF_ANY_JOB,
    OF_ANY_JOB_BY_MAC,
    OWN_CLASS,
    OWN_CLASS_UNMARKED,
    PAIR_PLACE,
    PAIR_PLACE_BY_MAC,
    PAIR_PLACE_OF_GROUP,
    PAIR_PLACE_OF_GROUP_BY_MAC,
    SOURCE,
    SOURCE_BY_MAC,
)
from controller.rules.rule import IP_FAMILIES, Match, Metered, Rule, SetClass, SetDscp, Table

_REMEMBERED = 32768
_Sets = dict[tuple[tuple[int | None, ...], tuple[int, ...]], frozenset[Rule]]
_MOST_SETS = 8
_source_rules: Memo[tuple[Source, ...], dict[tuple[int, ...], frozenset[Rule]]] = Memo(4)
_partner_rules: Memo[Partners, _Sets] = Memo(_REMEMBERED)


@lru_cache(maxsize=16)
def table_rules(switches: tuple[int, ...], points: CodePoints) -> frozenset[Rule]:
    """Returns the rules of these tables that do not depend on jobs. ``points`` has as many classes as there are."""
    rules: list[Rule] = []
    for dpid in switches:
        for table in (Table.SOURCES, Table.PAIRS):
            rules.append(Rule(dpid, table, MISS, Match(), goto=Table.FORWARD))
        rules += _class_rules(dpid, points)
    return frozenset(rules)


@lru_cache(maxsize=16)
def control_rules(switches: tuple[Switch, ...]) -> frozenset[Rule]:
    """Returns the rules that put control traffic of the ports that the settings name into class 0, through a meter."""
    return frozenset(
        Rule(
            switch.dpid,
            Table.SOURCES,
            CONTROL_SOURCE,
            Match(in_port=port, metadata=IS_CONTROL_KIND),
            (Metered(meter), SetClass(0)),
            Table.FORWARD,
        )
        for switch in switches
        for port, meter in switch.control_ports
    )


def place_rules(found: Places, own: Mapping[str, int], switches: tuple[int, ...]) -> Iterator[frozenset[Rule]]:
    """Yields the rules for the hosts that have jobs; those of a job that has not changed come from a cache.

    ``own`` is the class of each job, or its DSCP where jobs have their own.
    """
    of_sources = _source_rules.get(found.sources, dict)
    if switches not in of_sources:
        rules_of = (_of_source(source, switches) for source in found.sources)
        of_sources[switches] = frozenset(chain.from_iterable(rules_of))
    yield of_sources[switches]
    for partners in found.partners:
        key = tuple(None if job is None else own[job] for _, job in partners.to), switches
        sets = _partner_rules.get(partners, dict)
        rules = sets.get(key)
        if rules is None:
            if len(sets) >= _MOST_SETS:
                sets.clear()
            rules = sets[key] = frozenset(_of_partners(partners, *key))
        yield rules


def _class_rules(dpid: int, points: CodePoints) -> Iterator[Rule]:
    last = len(points.classes) - 1
    by_class = tuple((k, k, dscp) for k, dscp in enumerate(points.classes))
    by_dscp = tuple((dscp, k, dscp) for dscp, k in points.order)
    for own, k, dscp in by_class if points.jobs is None else by_dscp:
        match = Match(metadata=of_job_kind_in(own))
        yield Rule(dpid, Table.PLACES, OWN_CLASS, match, (SetClass(k),), Table.FORWARD)
        yield from _mark(Rule(dpid, Table.PLACES, OWN_CLASS_UNMARKED, match), k, dscp, points.other)
    yield Rule(dpid, Table.PLACES, LAST_CLASS, Match(), (SetClass(last),), Table.FORWARD)
    if points.jobs is None:
        unmarked = Rule(dpid, Table.PLACES, LAST_CLASS_UNMARKED, Match())
        yield from _mark(unmarked, last, points.classes[last], points.other)


def _mark(rule: Rule, k: int, own: int, other: int) -> Iterator[Rule]:
    """Yields rules at the place of ``rule`` that give class k and the DSCP ``own`` to packets without a DSCP."""
    actions = SetClass(k), SetDscp(own)
    for family in IP_FAMILIES:
        for dscp in {0, other}:
            match = rule.match._replace(eth_type=family, ip_dscp=dscp)
            yield rule._replace(match=match, actions=actions, goto=Table.FORWARD)


@lru_cache(maxsize=_REMEMBERED)
def _of_source(source: Source, switches: tuple[int, ...]) -> tuple[Rule, ...]:
    """Returns the rules of one address: the same objects for an equal one, since those are quickly found to be equal.

    A job that begins or ends changes the sources of its own hosts alone.
    """
    end, switch, in_port, group, job = source
    match, priority = from_end(end, Match(in_port=in_port)), SOURCE_BY_MAC if is_mac(end) else SOURCE
    dpids = switches if switch is None else (switch,) if switch in switches else ()
    return tuple(Rule(dpid, Table.SOURCES, priority, match, (note_group(*group),), Table.PAIRS, job) for dpid in dpids)


def _of_partners(partners: Partners, own: tuple[int | None, ...], switches: tuple[int, ...]) -> Iterator[Rule]:
    if partners.group is None:
        from_group, by_ip, by_mac = ANY, OF_ANY_JOB, OF_ANY_JOB_BY_MAC
    elif partners.group.own == 0:
        from_group, by_ip, by_mac = of_main_job(partners.group.main), PAIR_PLACE, PAIR_PLACE_BY_MAC
    else:
        from_group, by_ip, by_mac = of_group(*partners.group), PAIR_PLACE_OF_GROUP, PAIR_PLACE_OF_GROUP_BY_MAC
    sites = switches if None in partners.switches else [dpid for dpid in switches if dpid in partners.switches]
    for (end, job), of_job in zip(partners.to, own, strict=True):
        match, actions = to_end(end, from_group), (note_place(of_job),)
        priority = by_mac if is_mac(end) else by_ip
        label = partners.job if job is None else job
        for dpid in sites:
            yield Rule(dpid, Table.PAIRS, priority, match, actions, Table.PLACES, label)
