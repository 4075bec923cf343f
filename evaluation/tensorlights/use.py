"""What arms used: the emulated hosts' processors and links, and TCP. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pvariance

from topologies.experiments.experiment import Experiment
from topologies.lab.results import ArmResult
from topologies.lab.use.meters import LinkUse

Runs = Sequence[tuple[Experiment, ArmResult]]


def computing_share(runs: Runs) -> float | None:
    """Returns the share of its job's time that a worker computes, in the mean of jobs; None where one did not end.

    The authors of TensorLights recorded how busy their hosts' processors were. Here computing is a sleep, and this is
    what corresponds to it. Where workers share processors, it counts what they compute, as if each had one of its own.
    """
    shares = []
    for experiment, arm in runs:
        for job in experiment.jobs:
            seconds = arm.jobs[job.id].jct_seconds
            if seconds is None:
                return None
            shares.append(job.iterations * job.compute_seconds / seconds)
    return fmean(shares)


def links(runs: Runs) -> dict[str, float] | None:
    """Returns the used shares of links over runs, of the hosts with servers and of all; None: not measured.

    Variances are over samples of a second, and those ``over_hosts`` are of the hosts' means.
    """
    of_servers: list[LinkUse] = []
    of_all: list[LinkUse] = []
    over_hosts = []
    for experiment, arm in runs:
        servers = {job.hosts[0] for job in experiment.jobs}
        of_servers += [link for link in arm.links if link.host in servers]
        of_all += arm.links
        over_hosts += [pvariance(link.egress_share for link in arm.links)] if arm.links else []
    if not of_all or not of_servers:
        return None
    return {
        "servers_egress_share": fmean(link.egress_share for link in of_servers),
        "servers_ingress_share": fmean(link.ingress_share for link in of_servers),
        "servers_egress_variance": fmean(link.egress_variance for link in of_servers),
        "servers_ingress_variance": fmean(link.ingress_variance for link in of_servers),
        "mean_egress_share": fmean(link.egress_share for link in of_all),
        "mean_ingress_share": fmean(link.ingress_share for link in of_all),
        "egress_variance_over_hosts": fmean(over_hosts),
        "busiest_egress_share": max(link.egress_share for link in of_all),
    }


def tcp(arms: Sequence[ArmResult]) -> dict[str, float] | None:
    """Returns what TCP did in an arm, on all hosts together, in the mean of arms; None: not measured."""
    if not all(arm.tcp for arm in arms):
        return None
    return {
        "segments": fmean(sum(host.sent for host in arm.tcp) for arm in arms),
        "retransmitted": fmean(sum(host.retransmitted for host in arm.tcp) for arm in arms),
        "timeouts": fmean(sum(host.timeouts for host in arm.tcp) for arm in arms),
        "spurious_timeouts": fmean(sum(host.spurious for host in arm.tcp) for arm in arms),
    }
