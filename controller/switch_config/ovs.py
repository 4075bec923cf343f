"""Open vSwitch: queues by ``ovs-vsctl`` and flows by ``ovs-ofctl``, as a shell script."""

from __future__ import annotations

from collections.abc import Iterator

from controller.switch_config.plan import PlannedPort, Queue, StaticPlan
from controller.switch_config.stanza import Source, Stanza, check

_MANUALS = "https://www.openvswitch.org/support/dist-docs"
DASH = Source("dash(1)", "https://manpages.debian.org/bookworm/dash/dash.1.en.html")
DATABASE = Source("ovs-vswitchd.conf.db(5)", f"{_MANUALS}/ovs-vswitchd.conf.db.5.html")
VSCTL = Source("ovs-vsctl(8)", f"{_MANUALS}/ovs-vsctl.8.html")
OFCTL = Source("ovs-ofctl(8)", f"{_MANUALS}/ovs-ofctl.8.html")
FIELDS = Source("ovs-fields(7)", f"{_MANUALS}/ovs-fields.7.html")
ACTIONS = Source("ovs-actions(7)", f"{_MANUALS}/ovs-actions.7.html")
FAQ = Source("Quality of Service (QoS)", "https://docs.openvswitch.org/en/latest/faq/qos/")

COOKIE = "0x7475"
"""The flows of the script have this cookie. Those of a controller have others."""
LAST = 7
"""The priority of other traffic: ``linux-htb`` serves the lowest number first."""

_OWNER = 'external_ids:trainyard_static="$BRIDGE"'
_DISCOVERY = range(133, 138)
"""The types of ICMPv6 that are neighbour discovery (RFC 4861)."""


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the script."""
    yield Stanza("Settings of this script", ("set -eu", "BRIDGE=${BRIDGE:-br0}"), (DASH,), (_BRIDGE,))
    yield Stanza(
        "Queues: strict priority, each with its floor; what an earlier run made is removed",
        (*_OLD, *(line for port in plan.ports for line in _queues(plan, port)), *_CLEAR),
        (DATABASE, FAQ, VSCTL),
        (_NUMBERS,),
    )
    yield Stanza(
        "Flows: ports that are not believed first, then ARP and neighbour discovery, then DSCPs of both families",
        (*_CLEAR_FLOWS, *_flows(plan), "END"),
        (OFCTL, FIELDS, ACTIONS),
        (_ALONE, _AGAIN),
    )
    if plan.lossless:
        yield Stanza(
            "PFC and ECN", remarks=("none, since a switch in software pauses nobody, so RoCE may lose packets",)
        )
    yield check(_checks(plan), OFCTL, VSCTL)


_BRIDGE = "run it by sh, as root, with the bridge's name in BRIDGE"
_ALONE = "the bridge has no controller: one that is Trainyard's makes queues and flows of its own"
_AGAIN = "flows are gone after a restart of Open vSwitch, so run the script at each start"
_NUMBERS = (
    "a port numbers its queues by the order: 1 is served first, and 0 has other traffic, as packets without a queue"
)
_FIND = 'ovs-vsctl --bare --columns=_uuid find {} external_ids:trainyard_static="$BRIDGE"'
_OLD = (f"OLD_QOS=$({_FIND.format('qos')})", f"OLD_QUEUES=$({_FIND.format('queue')})")
_CLEAR = (
    '[ -z "$OLD_QOS" ] || ovs-vsctl destroy qos $OLD_QOS',
    '[ -z "$OLD_QUEUES" ] || ovs-vsctl destroy queue $OLD_QUEUES',
)
_CLEAR_FLOWS = (
    f'ovs-ofctl -O OpenFlow13 del-flows "$BRIDGE" cookie={COOKIE}/-1',
    "ovs-ofctl -O OpenFlow13 add-flows \"$BRIDGE\" - <<'END'",
)


def queue_id(plan: StaticPlan, queue: Queue) -> int:
    """Returns the number of a queue at a port: 0 is other traffic, as for packets without a queue."""
    return 0 if queue.kind == "other" else plan.queues.index(queue) + 1


def _queues(plan: StaticPlan, port: PlannedPort) -> Iterator[str]:
    """Yields one transaction, which gives a port its queues."""
    rate = round(port.rate_bps)
    yield f"ovs-vsctl set port {port.name} qos=@qos \\"
    yield f"  -- --id=@qos create qos type=linux-htb other_config:max-rate={rate} {_OWNER} \\"
    ids = {queue_id(plan, queue): queue for queue in plan.queues}
    yield "     " + " ".join(f"queues:{number}=@q{number}" for number in sorted(ids)) + " \\"
    for place, number in enumerate(sorted(ids), 1):
        rank = LAST if number == 0 else number - 1
        yield (
            f"  -- --id=@q{number} create queue other_config:priority={rank} "
            f"other_config:min-rate={max(1, round(port.rate_bps * ids[number].floor))} "
            f"other_config:max-rate={rate} {_OWNER}" + (" \\" if place < len(ids) else "")
        )


def _flows(plan: StaticPlan) -> Iterator[str]:
    for port in plan.untrusted:
        yield _flow(300, f"in_port={port.number}", 0)
    first = queue_id(plan, plan.queues[0])
    yield _flow(200, "arp", first)
    yield from (_flow(200, f"icmp6,icmp_type={kind}", first) for kind in _DISCOVERY)
    for queue in plan.queues:
        for dscp in queue.dscps:
            yield from (_flow(100, f"{family},ip_dscp={dscp}", queue_id(plan, queue)) for family in ("ip", "ipv6"))
    yield _flow(1, "", 0)


def _flow(priority: int, match: str, queue: int) -> str:
    matched = f"priority={priority},{match}".rstrip(",")
    return f"cookie={COOKIE},{matched},actions=set_queue:{queue},normal"


def _checks(plan: StaticPlan) -> Iterator[str]:
    yield 'ovs-ofctl -O OpenFlow13 dump-flows "$BRIDGE"'
    yield 'ovs-ofctl -O OpenFlow13 queue-stats "$BRIDGE"'
    yield from (f"ovs-vsctl list port {port.name}" for port in plan.ports)
