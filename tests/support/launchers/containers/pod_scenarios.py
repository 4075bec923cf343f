"""The pods that are recorded: what the operator of each one's job sets, and how its container runtime lays it out."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.launchers.containers.pods import Driver, Pod, Runtime


@dataclass(frozen=True)
class PodScenario:
    """``variables``: what the operator of the pod's job sets."""

    about: str
    pod: Pod
    driver: Driver
    runtime: Runtime
    variables: dict[str, str]


PODS = {
    "pod-containerd": PodScenario(
        "The worker of a PyTorchJob of Kubeflow's: containerd, cgroup driver systemd.",
        Pod("team-a", "resnet50-worker-0", "7c2b1d4e-9f60-4a35-8c1e-2b7d5a9e0f13"),
        "systemd",
        "containerd",
        {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "resnet50-master-0", "MASTER_PORT": "23456"},
    ),
    "pod-cgroupfs": PodScenario(
        "The master of the same job: containerd, cgroup driver cgroupfs, guaranteed resources.",
        Pod("team-a", "resnet50-master-0", "0a9f8e7d-6c5b-4a39-8271-605f4e3d2c1b", "guaranteed"),
        "cgroupfs",
        "containerd",
        {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": "23456"},
    ),
    "pod-crio": PodScenario(
        "The first pod of an indexed Job of a JobSet: CRI-O, best effort.",
        Pod("team-b", "llm-workers-0-0-x7k2p", "b3d5f7a9-1c2e-4f60-9a8b-7c6d5e4f3a2b", "besteffort"),
        "systemd",
        "crio",
        {"JOB_COMPLETION_INDEX": "0"},
    ),
}
