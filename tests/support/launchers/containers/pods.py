"""Where Kubernetes puts a pod on a node: the group of each container, and the folder of its logs. Pure.

The layouts are those of the kubelet with its two cgroup drivers, and of containerd and CRI-O as container runtimes:
https://kubernetes.io/docs/concepts/architecture/cgroups/ and https://kubernetes.io/docs/concepts/cluster-administration/logging/
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Driver = Literal["systemd", "cgroupfs"]
Runtime = Literal["containerd", "crio"]
Quality = Literal["guaranteed", "burstable", "besteffort"]


@dataclass(frozen=True)
class Pod:
    """``uid``: as the API server gives it, such as ``1c2d...`` with dashes."""

    namespace: str
    name: str
    uid: str
    quality: Quality = "burstable"

    def group(self, container: str, driver: Driver, runtime: Runtime) -> str:
        """The path of a container's cgroup, ``container`` being its id of 64 hexadecimal digits."""
        if driver == "cgroupfs":
            return f"{self.parent(driver)}/{'crio-' if runtime == 'crio' else ''}{container}"
        return f"{self.parent(driver)}/{'crio' if runtime == 'crio' else 'cri-containerd'}-{container}.scope"

    def parent(self, driver: Driver) -> str:
        """The path of the pod's own cgroup. Guaranteed pods lie directly in the one of all pods."""
        if driver == "cgroupfs":
            return "/".join(["/kubepods", *self._class(), f"pod{self.uid}"])
        slices = ["kubepods", *self._class()]
        # systemd nests slices by their dashes, so a uid has underscores in their place.
        folders = [f"{'-'.join(slices[: end + 1])}.slice" for end in range(len(slices))]
        return "/".join(["", *folders, f"{'-'.join(slices)}-pod{self.uid.replace('-', '_')}.slice"])

    def log(self, root: Path, container: str, restart: int = 0) -> Path:
        """The file with what a container of this name writes; ``root`` is ``/var/log/pods`` on a node."""
        return root / f"{self.namespace}_{self.name}_{self.uid}" / container / f"{restart}.log"

    def _class(self) -> list[str]:
        return [] if self.quality == "guaranteed" else [self.quality]
