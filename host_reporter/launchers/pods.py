"""The names of this host's pods, by the kubelet's folder of their logs: ``/var/log/pods/NAMESPACE_NAME_UID``.

Root alone may write there, so a name is believed. Source: https://kubernetes.io/docs/concepts/cluster-administration/logging/
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

from host_reporter.launchers.facts import Pod

FOLDER = Path("/var/log/pods")
MAX_PODS = 4096
"""Look at no more folders than this."""


class Pods:
    """The pods that have a folder. It is listed again only when a pod comes or goes. No method raises."""

    def __init__(self, folder: Path = FOLDER, *, wall: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._wall = wall
        self._changed: int | None = None
        self._by_uid: dict[str, tuple[Pod, Path]] = {}

    def find(self, uid: str) -> Pod | None:
        """Returns the pod with this uid; None: it has no folder here."""
        self._look()
        known = self._by_uid.get(uid)
        return known[0] if known is not None else None

    def folder(self, uid: str) -> Path | None:
        """Returns the folder of a pod's logs, which has one folder for each container."""
        self._look()
        known = self._by_uid.get(uid)
        return known[1] if known is not None else None

    def _look(self) -> None:
        try:
            status = os.stat(self._folder)  # noqa: PTH116 - pathlib costs as much again
            # File systems have coarse clocks: a folder that has just changed may change again at the same time.
            if status.st_mtime_ns == self._changed and self._wall() - status.st_mtime > 1.0:
                return
            self._changed = status.st_mtime_ns
            # Where others may write, anybody may name a pod.
            is_roots = status.st_uid == 0 and not status.st_mode & 0o022
            self._by_uid = self._list() if is_roots else {}
        except OSError:
            self._by_uid = {}

    def _list(self) -> dict[str, tuple[Pod, Path]]:
        pods = {}
        with os.scandir(self._folder) as entries:
            for entry in itertools.islice(entries, MAX_PODS):
                # No part has an underscore: namespaces and names of pods are labels of DNS.
                parts = entry.name.split("_")
                if len(parts) == 3 and all(parts) and entry.is_dir(follow_symlinks=False):
                    pods[parts[2]] = (Pod(parts[0], parts[1]), Path(entry.path))
        return pods
