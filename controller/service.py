"""Attained service: how many seconds of its bottleneck port a job has used so far."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import BITS_PER_BYTE, Host, Job, bottleneck_seconds, load_seconds


def attained_seconds(job: Job, hosts: Mapping[str, Host]) -> float:
    """Seconds of its bottleneck port that ``job`` has used: measured, or by its own progress, whichever is more.

    The measured part is what each sending host counted, so a job that never reports gains nothing by silence.
    Only egress is measured; a receiver's port is at least as loaded as progress says.
    """
    measured = max(
        (sent * BITS_PER_BYTE / hosts[host].egress_bps for host, sent in job.sent_bytes.items() if host in hosts),
        default=0.0,
    )
    reported = bottleneck_seconds(load_seconds(job, hosts)) * job.iterations_done
    return max(measured, reported)
