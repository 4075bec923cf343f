"""The settings of a small Slurm cluster on one machine. Pure: values in, the texts of the files out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class SlurmSettings:
    """``nodes``: their names, each a slurmd on this machine. ``extra``: further lines of slurm.conf."""

    folder: Path
    nodes: tuple[str, ...]
    node_ports: tuple[int, ...]
    controller_port: int
    proctrack: str
    first_job: int
    extra: Sequence[str] = field(default=())

    @property
    def munge_socket(self) -> Path:
        return self.folder / "munge.sock"

    @property
    def file(self) -> Path:
        return self.folder / "slurm.conf"


def slurm_conf(settings: SlurmSettings) -> str:
    """Returns slurm.conf: every daemon as root, no accounting, eight processors a node."""
    folder = settings.folder
    nodes = [
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=8 State=UNKNOWN"
        for name, port in zip(settings.nodes, settings.node_ports, strict=True)
    ]
    lines = [
        "ClusterName=yard",
        "SlurmctldHost=localhost",
        f"SlurmctldPort={settings.controller_port}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={settings.munge_socket}",
        "SlurmUser=root",
        "SlurmdUser=root",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        f"ProctrackType={settings.proctrack}",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        # The machine may have fewer processors than its nodes say.
        "SlurmdParameters=config_overrides",
        "ReturnToService=2",
        "MpiDefault=none",
        "SchedulerParameters=sched_min_interval=0,bf_interval=1",
        "KillWait=1",
        f"FirstJobId={settings.first_job}",
        *settings.extra,
        *nodes,
        f"PartitionName=main Nodes={','.join(settings.nodes)} Default=YES MaxTime=10 State=UP",
    ]
    return "\n".join(lines) + "\n"


def cgroup_conf(mounted_at: Path, version: int) -> str:
    """Returns cgroup.conf. There may be no systemd here to ask for a scope."""
    lines = [f"CgroupPlugin=cgroup/v{version}", f"CgroupMountpoint={mounted_at}"]
    return "\n".join([*lines, *(["IgnoreSystemd=yes"] if version == 2 else [])]) + "\n"
