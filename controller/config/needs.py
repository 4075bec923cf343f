"""Says in words what the choice of who enforces the order needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.code_points import CNP_DSCP
from controller.config.config import Config
from controller.config.dscp_costs import listed
from controller.config.hosts import plugs


def needs(config: Config) -> tuple[str, ...]:
    """Returns a sentence for each thing that must be there so that the order of these settings is enforced."""
    enforcement = config.enforcement
    if enforcement.observes:
        return ("nothing is enforced: plans are made and shown, and switches and hosts stay as they are",)
    return (
        *(_of_switches(config) if enforcement.switches else ()),
        *(_of_frames(config) if enforcement.switches else ()),
        *(_of_hosts(config) if enforcement.hosts else ()),
    )


def _of_switches(config: Config) -> Iterator[str]:
    queues = "whose queues the controller makes" if config.queues == "managed" else _existing(config)
    yield f"switches: they speak OpenFlow 1.3 with the controller, {queues}"
    if config.lossless is not None:
        yield from _of_lossless(config.lossless.priorities)
    if config.enforcement.is_by_flows:
        yield f"identity flows: up to {config.table_budget} rules for the flows of jobs at a switch (table_budget)"
        return
    yield from _of_own_dscps(config) if config.enforcement.has_own_dscps else _of_class_dscps()
    if not config.enforcement.hosts:
        yield (
            "no agent sets DSCPs, because enforce does not name hosts: unless something else sets them, all TCP "
            "between hosts of one job is in the last class"
        )


def _of_frames(config: Config) -> Iterator[str]:
    """Yields what becomes of the frames that a switch can know by MAC addresses alone."""
    if unknown := [plug.label for plug in plugs(config.hosts) if plug.attachment.mac is None]:
        become = "other traffic" if config.forwarding == "normal" else "dropped"
        yield (
            "switches know these hosts by their IP addresses alone, so frames that are not IP (RoCEv1, MPLS) and IPv6 "
            f"between link-local addresses are {become}, unless mac is set: {listed(unknown)}"
        )


def _existing(config: Config) -> str:
    if config.lossless is None:
        return "which have the queues 0 to 7"
    return f"which have queue {', '.join(map(str, (0, *config.lossless.priorities)))}"


def _of_lossless(priorities: Sequence[int]) -> Iterator[str]:
    numbered = ", ".join(map(str, priorities))
    classes = "1 class" if len(priorities) == 1 else f"{len(priorities)} classes"
    yield (
        f"lossless: jobs stay in the priorities that carry PFC, so the order is cut into {classes}, with queue "
        f"{numbered} at switches, first to last; RoCE's congestion notification (CNP, DSCP {CNP_DSCP}) keeps the queue "
        "that the switch gives it"
    )


def _of_class_dscps() -> Iterator[str]:
    yield "identity classes: hosts set the DSCP of the class, and a switch needs one rule for each class"


def _of_own_dscps(config: Config) -> Iterator[str]:
    pool = config.dscp.pool
    yield (
        "identity dscp: each job has a DSCP for its life, which agents set for TCP and RDMA gets at launch (trainyard "
        "env), and a switch needs one rule for each job and address family"
    )
    alone = f"{len(pool)} job{'s have' if len(pool) > 1 else ' has'} a DSCP alone"
    yield f"dscp.jobs: at most {alone}; those after them share DSCP {pool[-1]}, and the best of their classes"


def _of_hosts(config: Config) -> Iterator[str]:
    yield "hosts: each host with jobs runs an agent that may change the packet filter (CAP_NET_ADMIN, iptables)"
    if config.enforcement.switches:
        return
    points = config.code_points
    first = [] if points.acknowledgements is None else [f"{points.acknowledgements} (packets without data)"]
    if config.untrusted_hosts:
        yield "nobody clears the DSCPs that untrusted_hosts set, because enforce does not name switches"
    if config.control_traffic.ports:
        yield "nobody serves control_traffic first, because enforce does not name switches"
    yield (
        "no switch of the controller: the network itself keeps these DSCPs and serves them in this order, and all "
        f"others last: {', '.join([*first, *map(str, points.classes)])}"
    )
