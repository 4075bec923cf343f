"""A recording without this machine in it: neutral names of hosts, users, folders, numbers and addresses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.support.launchers.recording.process_facts import Seen

_OF_LAUNCHERS = re.compile(
    r"SLURM.*|PMI_.*|PMIX_.*|OMPI_.*|MPI_.*|MPIR_.*|HYDRA_.*|MPIEXEC_.*|RANK|WORLD_SIZE|LOCAL_.*|GROUP_.*|ROLE_.*"
    r"|MASTER_.*|TORCH.*|OMP_NUM_THREADS|PET_.*|KUBERNETES_.*|JOB_COMPLETION_INDEX|container|HOSTNAME|TRAINYARD_JOB"
)
_IPV4 = re.compile(r"\b(?!127\.|0\.0\.0\.0|255\.)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
_PIPE = re.compile(r"\b(pipe|socket):\[(\d+)\]")
_TERMINAL = re.compile(r"/dev/pts/(\d+)")
_KEPT_DESCRIPTORS = re.compile(r"pipe:|/dev/pts/|/dev/null|/home/|/var/log/")
_SESSION = re.compile(r"(/ompi\.\w+\.)(\d+)")
_LONG_HEX = re.compile(r"\b[0-9a-f]{16}-[0-9a-f]{16}\b")


class Neutral:
    """``names``: texts of this machine and what stands for them, the longest first; ``uids`` likewise."""

    def __init__(
        self, names: Mapping[str, str], uids: Mapping[int, int], cgroups: Iterable[str], pids: Iterable[int]
    ) -> None:
        self._names = sorted(names.items(), key=lambda pair: -len(pair[0]))
        self._uids = uids
        self._own_groups = {line.rpartition(":")[0]: line.rpartition(":")[2] for line in cgroups}
        self._pids = {pid: 1001 + index for index, pid in enumerate(sorted(pids))}
        self._numbers: dict[tuple[str, str], int] = {}

    def process(self, seen: Seen) -> dict[str, Any]:
        """A process as a recording has it: of its environment only what launchers set."""
        environment = {name: value for name, value in sorted(seen.environment.items()) if _OF_LAUNCHERS.fullmatch(name)}
        return {
            "pid": self._pids[seen.pid],
            "parent": self._pids.get(seen.parent, 1),
            "uid": self._uids.get(seen.uid, seen.uid),
            "command": [self.text(part) for part in seen.command],
            "cgroup": [self._group(line) for line in seen.cgroup],
            "environment": {name: self._value(name, value) for name, value in environment.items()},
            "descriptors": self._descriptors(seen.descriptors),
        }

    def text(self, text: str) -> str:
        """A text with neutral names in it."""
        for name, neutral in self._names:
            text = text.replace(name, neutral)
        # Open MPI's folder of a user.
        text = _SESSION.sub(lambda found: f"{found[1]}{self._uids.get(int(found[2]), int(found[2]))}", text)
        text = _LONG_HEX.sub("0123456789abcdef-0123456789abcdef", _IPV4.sub("192.0.2.1", text))
        text = _PIPE.sub(lambda found: f"{found[1]}:[{self._number(found[1], found[2])}]", text)
        text = _TERMINAL.sub(lambda found: f"/dev/pts/{self._number('pts', found[1])}", text)
        return re.sub(r"(?<=here )\d+", lambda found: str(self._pids.get(int(found[0]), found[0])), text)

    def pid(self, pid: int) -> int:
        return self._pids[pid]

    def _value(self, name: str, value: str) -> str:
        if name.endswith("_PID") and value.isdigit():
            return str(self._pids.get(int(value), 1))
        if name.endswith(("_UID", "_GID")) and value.isdigit():
            return str(self._uids.get(int(value), int(value)))
        return self.text(value)

    def _group(self, line: str) -> str:
        """Where the recorder itself is in a group, that group is the top."""
        hierarchy, _, path = line.rpartition(":")
        own = self._own_groups.get(hierarchy, "/")
        if own != "/" and path.startswith(own):
            path = path.removeprefix(own) or "/"
        for uid, neutral in self._uids.items():
            path = re.sub(rf"/uid_{uid}\b", f"/uid_{neutral}", path)
        return f"{hierarchy}:{self.text(path)}"

    def _descriptors(self, descriptors: Mapping[int, str]) -> dict[str, str]:
        named = ((number, self.text(target)) for number, target in descriptors.items())
        return {str(number): target for number, target in named if number < 3 or _KEPT_DESCRIPTORS.match(target)}

    def _number(self, kind: str, text: str) -> int:
        """What is the same one here has the same number there."""
        return self._numbers.setdefault((kind, text), sum(key[0] == kind for key in self._numbers) + 1)


def ranks(lines: Sequence[str]) -> dict[int, int]:
    """Process ids to ranks, by the labels that the launcher has put before each line: the truth of a recording."""
    found = {}
    for line in lines:
        if told := re.fullmatch(
            r"(?:(\d+): |\[\d+,(\d+)\]<stdout>:|\[(?:default|rank)?(\d+)\]:? ?)here (\d+)\s*", line
        ):
            found[int(told[4])] = int(next(number for number in told.groups()[:3] if number is not None))
    return found
