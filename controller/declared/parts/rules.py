"""Whether a part may join a job: its user, its hosts, and whether rank 0 runs there. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from controller.declared.parts.part import Part
from controller.declared.parts.parts_of_job import Hosts, PartsOfJob

MAX_PARTS = 4096
"""Let a job have this many parts, as many as a spec may have tasks."""
MAX_LISTS = 8
"""Let the parts of a job tell this many different lists of hosts. Each is kept."""

IsSilent = Callable[[str], bool]
"""Returns whether a host's agent has reported, and its lease is over."""


class Problem(NamedTuple):
    """Why a part is refused, in a sentence. ``field`` of the part is at fault."""

    field: str
    text: str
    is_of_another_user: bool = False


class Verdict(NamedTuple):
    """Whether a part may join.

    ``demoted`` are the hosts whose words the part replaces: that rank 0 runs there, and which hosts there are. Their
    agents are silent. ``problem`` of None: it may join.
    """

    problem: Problem | None
    demoted: frozenset[str] = frozenset()


def verdict_on(job: str, parts: PartsOfJob, host: str, part: Part, is_silent: IsSilent) -> Verdict:
    """Returns whether the part of a host may join the others, in the place of the host's own part before."""
    leading = parts.leading
    if leading is not None and leading.part.user != part.user:
        return Verdict(Problem("user", f"job {job} belongs to another user", is_of_another_user=True))
    if not parts.has(host) and len(parts) >= MAX_PARTS:
        return Verdict(Problem("(path)", f"job {job} has {MAX_PARTS} parts already, which is the most"))
    silent = _silent_tellers(parts, host, part, is_silent)
    problem = _of_first(job, parts, host, part, silent) or _of_hosts(job, parts, host, part, silent)
    return Verdict(problem, silent)


def _silent_tellers(parts: PartsOfJob, host: str, part: Part, is_silent: IsSilent) -> frozenset[str]:
    """Returns the hosts that contradict the part, and whose agents are silent."""
    first = parts.first
    others = {first.host} if first is not None and part.is_first and first.host != host else set()
    contradicting = {hosts for hosts in parts.lists if host not in hosts}
    if contradicting:
        others.update(each.host for each in parts if each.host != host and each.part.hosts in contradicting)
    return frozenset(filter(is_silent, others))


def _of_first(job: str, parts: PartsOfJob, host: str, part: Part, silent: frozenset[str]) -> Problem | None:
    first = parts.first
    if not part.is_first or first is None or first.host == host or first.host in silent:
        return None
    text = f"rank 0 of job {job} runs on another host already; only one part has is_first"
    return Problem("is_first", text)


def _of_hosts(job: str, parts: PartsOfJob, host: str, part: Part, silent: frozenset[str]) -> Problem | None:
    own = parts.get(host)
    others = _lists_of_others(parts, host, silent)
    if any(host not in hosts for hosts in others):
        return Problem("(path)", f"the launcher of job {job} names its hosts elsewhere, and {host} is not among them")
    if not part.hosts or (own is not None and own.part.hosts == part.hosts and parts.has(host)):
        return None
    if part.hosts not in others:
        left_out = parts.running - part.hosts - silent - {host}
        if left_out:
            text = f"they leave out {len(left_out)} hosts that have a part of job {job}"
            return Problem("hosts", f"{text}; name all hosts of the job, or none")
        if len(others) >= MAX_LISTS:
            text = f"the parts of job {job} name {len(others)} different sets of hosts already; leave them out"
            return Problem("hosts", text)
    return None


def _lists_of_others(parts: PartsOfJob, host: str, silent: frozenset[str]) -> list[Hosts]:
    """Returns the lists that are told by others than the host and those which are silent."""
    own = [each.part.hosts for name in (host, *silent) if (each := parts.get(name)) is not None and parts.has(name)]
    return [hosts for hosts in parts.lists if parts.lists.uses(hosts) > own.count(hosts)]
