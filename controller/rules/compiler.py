"""The rule compiler turns the classes and flows of a plan into a set of rules.

Every switch has these tables after its gate:

- *classify* puts what a network cannot do without into class 0: ARP, neighbour discovery, what stays on one link,
  errors of ICMP, and the controller's own traffic.
  In mode *classified*, each job flow with ports has a rule at the switch where its source is attached. The rule names
  the source's port, so that no other host can send in its name. A listening port that many hosts may talk with has two
  rules, one for packets from it and one for packets to it. A host whose agent marks acknowledgements has one rule,
  which puts them into class 0. A host whose agent marks outer headers has one for each UDP port of its tunnels, whose
  packets keep their DSCP for a later table (see ``tunnels``). The DSCP of a packet from another switch is trusted. On
  any other packet, a DSCP that Trainyard uses is cleared.
  In mode *marked*, each class has one rule by DSCP, and acknowledgements have one. Where a switch has trusted ports,
  each of them has these rules, and a DSCP that Trainyard uses is cleared at every other port.
  A DSCP that other programs use, too, is never cleared. In mode *marked* it is believed at the ports of hosts alone.
  In mode *dscp*, each trusted port has a rule that notes for *kinds* that DSCPs of jobs are believed there, and
  elsewhere they are cleared. Where all ports are trusted, none has a rule.
- *kinds* has in mode *dscp* a rule for each job's DSCP, which gives it the class of the moment (see ``own_dscps``).
- *kinds*, *sources*, *pairs* and *places* get all packets that match nothing there. They put control traffic of some
  ports into class 0, through a meter, and give traffic between two hosts with jobs a class, in all modes (see
  ``place_rules``). In mode *classified*, *kinds* also has a rule for each pair of hosts between which a job declares
  RoCEv2, or any traffic. What matches nothing here, either, is other traffic.
- *forward* has two modes. *normal* leaves forwarding to the switch's own learning. *paths* sends IP packets, and ARP
  and neighbour solicitations by the address that they ask for, along shortest paths. Such a request thus goes straight
  to its target, and nothing is ever flooded, so loops are harmless. All else goes by the MAC address of its host, where
  that is known. Packets to an address that no host has are dropped.

Where hosts may enrol, table 0 also sends LLDP frames to the controller, because a host that enrols announces itself by
one. Switches do not forward such frames anyway.

The set does not contain the gate's rule from table 0 to table 1, because that rule expires and is renewed (see
``dataplane``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Literal

from controller.code_points import CodePoints
from controller.enforcement import Mode
from controller.model import MAX_CLASSES, Job, Snapshot
from controller.rules import pipeline
from controller.rules.believed import believing_hosts_alone
from controller.rules.fabric import LinkLike, as_links
from controller.rules.families import addresses, ends
from controller.rules.job_rules import Traffic, job_rules
from controller.rules.kinds import kind_rules
from controller.rules.own_dscps.order import order_of
from controller.rules.own_dscps.switch_rules import own_dscp_rules
from controller.rules.pairs.place_rules import control_rules, place_rules, table_rules
from controller.rules.pairs.places import places
from controller.rules.pipeline import Endpoint
from controller.rules.rule import Rule, SetClass, SetDscp
from controller.rules.sites import claimed_flows
from controller.rules.tunnels import senders, tunnel_rules

Forwarding = Literal["normal", "paths"]


def compile_rules(
    snapshot: Snapshot,
    classes: Mapping[str, int],
    *,
    mode: Mode,
    forwarding: Forwarding,
    links: Iterable[LinkLike] = (),
    control: Iterable[Endpoint] = (),
    announcements: bool = False,
) -> frozenset[Rule]:
    """Returns all rules that the switches of ``snapshot`` should hold, no two with the same key.

    ``classes`` gives a job its class; ``links`` join switches and are needed for *paths*; ``control`` are the
    controller's own listening sockets where hosts and switches reach it through this network; ``announcements``: hosts
    may enrol. Rules that do not depend on the plan, and those of a job that has not changed, come from a cache, so a
    plan over 1,000 jobs costs a few milliseconds. A degraded snapshot is compiled as *marked*, whatever ``mode`` says.
    Raises ValueError for a class that does not exist.
    """
    if not snapshot.switches:
        return frozenset()
    if snapshot.degraded:
        mode = "marked"
    points = snapshot.code_points.first(min(snapshot.classes, MAX_CLASSES))
    if mode == "dscp":
        points = points.in_order(order_of(snapshot.jobs, classes))
    believing = believing_hosts_alone(snapshot) if points.shared and mode != "classified" else snapshot.switches
    switches = tuple(switch.dpid for switch in snapshot.switches)
    parts = [
        pipeline.own_rules(
            believing, points.unordered(), mode, tuple(sorted(control)), is_lossless=snapshot.is_lossless
        ),
        kind_rules(switches),
        table_rules(switches, points),
        control_rules(snapshot.switches),
        _forwarding(snapshot, forwarding, switches, links),
    ]
    if announcements:
        parts.append(pipeline.announcements(snapshot.switches))
    if mode == "classified":
        parts += _of_flows(snapshot, classes, points, switches)
    if mode == "dscp":
        parts.append(own_dscp_rules(switches, points))
    if snapshot.has_places:
        own = classes if mode != "dscp" else {job.id: job.dscp for job in snapshot.jobs if job.dscp is not None}
        jobs = _known(snapshot.jobs, classes.keys() & own.keys())
        parts += place_rules(places(snapshot.hosts, jobs, between_jobs=snapshot.has_places_between_jobs), own, switches)
    return frozenset().union(*parts)


def _forwarding(
    snapshot: Snapshot, forwarding: Forwarding, switches: tuple[int, ...], links: Iterable[LinkLike]
) -> frozenset[Rule]:
    """Returns the rules that find the paths."""
    if forwarding == "normal":
        return pipeline.learning(snapshot.switches)
    attached = tuple(
        (ends(host), host.switch, host.switch_port)
        for host in snapshot.hosts.values()
        if addresses(host) and host.switch is not None and host.switch_port is not None
    )
    return pipeline.shortest_paths(switches, tuple(sorted(attached)), as_links(links))


def _of_flows(
    snapshot: Snapshot, classes: Mapping[str, int], points: CodePoints, switches: tuple[int, ...]
) -> Iterator[frozenset[Rule]]:
    """Yields the rules of acknowledgements, of tunnels, and of each job's flows and ports."""
    if snapshot.acknowledging and points.sure_acknowledgements is not None:
        hosts = _acknowledging_hosts(snapshot)
        yield pipeline.acknowledgements(snapshot.switches, hosts, points.sure_acknowledgements)
    yield tunnel_rules(snapshot.switches, senders(snapshot), points)
    for job, service_class, declared, listening, discovered in claimed_flows(snapshot, classes):
        actions = (SetClass(service_class), SetDscp(points.classes[service_class]))
        traffic: tuple[Traffic, ...] = (declared, *listening, discovered)
        yield from (job_rules(job.id, actions, each, switches) for each in traffic if each)


def _known(jobs: tuple[Job, ...], known: Set[str]) -> tuple[Job, ...]:
    """Returns the jobs that are known: the same object where all are, because their places are remembered by it."""
    return jobs if all(job.id in known for job in jobs) else tuple(job for job in jobs if job.id in known)


def _acknowledging_hosts(snapshot: Snapshot) -> tuple[tuple[str, int | None, int | None], ...]:
    """Returns the address, switch and port of the hosts whose agents mark acknowledgements."""
    hosts = (snapshot.hosts[name] for name in sorted(snapshot.acknowledging) if name in snapshot.hosts)
    return tuple((address, host.switch, host.switch_port) for host in hosts for address in addresses(host))
