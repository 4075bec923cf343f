"""Kubernetes: pods of the Kubeflow operators, the MPI operator, JobSet, indexed jobs, and any other training's pod."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from host_reporter.launchers.cgroup_paths import pod_group
from host_reporter.launchers.facts import Pod, ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.family import family_of_name
from host_reporter.training.launch import JOB_VARIABLE
from host_reporter.training.ranks import READ as RANKS
from host_reporter.training.ranks import find_ranks, number, tf_config

_ROLE = re.compile(r"(.+)-(?:master|chief|worker|ps|evaluator|launcher|node)(?:-\d+)*(?:-[a-z0-9]{5})?")
"""The pods of one job of an operator: its name, the replica's role, indices, and five random characters of a Job's."""

_RAY_HEAD = re.compile(r"(.+)-head(?:-svc|-[a-z0-9]{5})?")
"""The head of a cluster of Ray's, its pod or its service."""

_RAY = "FQ_RAY_IP"
_MPI_ROLE, _HOSTFILE = "K_MPI_JOB_ROLE", "OMPI_MCA_orte_default_hostfile"
_MASTERS = ("MASTER_ADDR", "PET_MASTER_ADDR")
_SIGNS = frozenset(
    {JOB_VARIABLE, *RANKS, *_MASTERS, _MPI_ROLE, _HOSTFILE, "JOBSET_NAME", "JOB_COMPLETION_INDEX", "PET_NNODES", _RAY}
) - {"SLURM_JOB_ID"}
"""A pod whose processes have none of these variables is a service, not a training."""


class Kubernetes(Launcher):
    """A pod. Its cgroup tells its uid, and the kubelet's folder of its logs its namespace and name.

    The pods of an operator's job share an id: the part of the pod's name that the operator's variables confirm.
    Variables: MASTER_ADDR, RANK, WORLD_SIZE, PET_MASTER_ADDR, PET_NNODES of PyTorchJob and TrainJob, TF_CONFIG of TFJob
    (https://www.kubeflow.org/docs/components/trainer/); K_MPI_JOB_ROLE and OMPI_MCA_orte_default_hostfile of MPIJob
    (https://github.com/kubeflow/mpi-operator); JOB_COMPLETION_INDEX of indexed jobs
    (https://kubernetes.io/docs/concepts/workloads/controllers/job/); JOBSET_NAME, where the pod's template sets it from
    the label jobset.sigs.k8s.io/jobset-name (https://jobset.sigs.k8s.io/docs/); FQ_RAY_IP, the service of the head, in
    KubeRay's worker pods (https://docs.ray.io/en/latest/cluster/kubernetes/).
    """

    name = "kubernetes"
    precedence = Precedence.CLUSTER
    reads = _SIGNS

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job of the pod that a process is in."""
        group, pod = pod_group(facts.cgroups), facts.pod
        if group is None or pod is None or _SIGNS.isdisjoint(facts.environment):
            return None
        job = job_of_pod(pod, facts.environment)
        return replace(
            self.ranked(None, find_ranks(facts.environment), may_restart=True, family=family_of_name(job)),
            name=f"k8s-{pod.namespace}.{job}",
            trust="cgroup",
            user=pod.namespace,
            group=group.path,
        )


def job_of_pod(pod: Pod, environment: Mapping[str, str]) -> str:
    """Returns the name that all pods of a pod's job share; the pod's own name where nothing confirms another.

    A name counts only where the pod's own name begins with it, so that no pod gets into another job of its namespace
    whose pods have other names.
    """
    for name in _claimed(pod, environment):
        if name and pod.name.startswith(f"{name}-"):
            return name
    return pod.name


def _claimed(pod: Pod, environment: Mapping[str, str]) -> Iterator[str]:
    """Yields the names that the environment tells, the surest first."""
    yield environment.get("JOBSET_NAME", "")
    for address in (*map(environment.get, _MASTERS), *_tf_addresses(environment)):
        if match := _ROLE.fullmatch((address or "").partition(".")[0].partition(":")[0]):
            yield match[1]
    # Some operators tell the first pod that it is itself the master.
    is_role = _MPI_ROLE in environment or _HOSTFILE in environment or environment.get("MASTER_ADDR") == "localhost"
    if is_role and (match := _ROLE.fullmatch(pod.name)):
        yield match[1]
    head = environment.get(_RAY, "").partition(".")[0] or (pod.name if "RAY_JOB_ID" in environment else "")
    if match := _RAY_HEAD.fullmatch(head):
        yield match[1]
    index = number(environment.get("JOB_COMPLETION_INDEX"))
    if index is not None and (match := re.fullmatch(rf"(.+)-{index}-[a-z0-9]{{5}}", pod.name)):
        yield match[1]


def _tf_addresses(environment: Mapping[str, str]) -> list[str]:
    config = tf_config(environment)
    return [address for listed in config[0].values() for address in listed[:1]] if config is not None else []
