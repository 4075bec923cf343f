"""The rules that give packets with a job's DSCP the class of the moment. Pure.

A switch has one rule for each DSCP and address family, and none for a connection. A plan changes the actions of these
rules, and nothing at the hosts.
"""

from __future__ import annotations

from functools import lru_cache

from controller.code_points import CodePoints
from controller.rules.metadata import IS_BELIEVED
from controller.rules.priorities import OWN_DSCP
from controller.rules.rule import IP_FAMILIES, Match, Rule, SetClass, Table


@lru_cache(maxsize=16)
def own_dscp_rules(switches: tuple[int, ...], points: CodePoints) -> frozenset[Rule]:
    """Returns the rules that give packets with a job's DSCP their class, where the DSCP is believed."""
    return frozenset(
        Rule(
            dpid,
            Table.KINDS,
            OWN_DSCP,
            Match(eth_type=family, ip_dscp=dscp, metadata=IS_BELIEVED),
            (SetClass(service_class),),
            Table.FORWARD,
        )
        for dpid in switches
        for dscp, service_class in points.served().items()
        for family in IP_FAMILIES
    )
