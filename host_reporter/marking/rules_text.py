"""Marks of a plan as text for ``iptables-restore`` or ``ip6tables-restore``, and the counters that are saved. Pure.

``OUTPUT`` jumps to ``TRAINYARD``, which goes to one of two chains. These have a rule for each mark, which goes to the
chain of its job, and that sets the DSCP. With ``-g`` the first match decides, as in the switch's rules. A new class
replaces the one rule of the job's chain, so the counters of the marks stay. A change of what is matched fills the idle
chain and switches over in one commit. So all packets stay marked, and the old chain's last counts can be read later.

A program may set a DSCP of ours itself. Rules before the marks clear it, so a packet that no mark matches leaves with
no DSCP that is ours. These rules are in a chain of their own, because the two chains hold only counted rules. Where
other programs use a DSCP, too, it is cleared only in what the cgroups of jobs send, which a third chain does. If jobs
have DSCPs of their own, those of the host's jobs are not cleared: programs may set their job's DSCP in what is no TCP.
A plan then changes no rule. What a tunnel sends goes to a chain of its own before all that (see ``outer_headers``).

Packets that open a connection or acknowledge carry no data, and have a DSCP of their own. They go first whatever the
job's class. Behind the job's data, in a class that has only its floor, they would slow the job even where
nobody else sends.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from controller.code_points import CNP_DSCP, POOL_2, CodePoints
from controller.model import ROCEV2_PORT
from controller.wire import Mark, ProtocolMark
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.ip_addresses import is_ipv4, packed, text_of
from host_reporter.marking.families import IPV4, Family
from host_reporter.marking.outer_headers import NO_TUNNELS, Outer, outer_rules, tunnel_chains

CHAIN = "TRAINYARD"
CLEAR = f"{CHAIN}-CLEAR"
CLEAR_JOBS = f"{CHAIN}-JOBS"
GENERATIONS = (f"{CHAIN}-A", f"{CHAIN}-B")
JUMP = f"-A OUTPUT -j {CHAIN}"

_COUNTED = re.compile(rf"^\[\d+:(\d+)\] -A ({CHAIN}-[AB]) ")
_LISTED_CHAIN = re.compile(r"^-(?:P (\S+) (\S+) -c (\d+ \d+)|N (\S+))$")
# The counters stand between matches and target; a comment before them may look like counters.
_LISTED_RULE = re.compile(r"^(-A .*) -c (\d+) (\d+)( -[jg] .*)?$")
_OWN_CHAIN = re.compile(rf"^:({CHAIN}(?:-[A-Z0-9]+)?) ", re.MULTILINE)


class GroupMark(NamedTuple):
    """A mark of all packets that the processes in a job's cgroup send, with the DSCP that they get."""

    job: str
    dscp: int
    group: CgroupId


AnyMark = Mark | GroupMark


class MarkError(ValueError):
    """A mark cannot become a rule. The message says why."""


def switch_over(
    marks: Sequence[AnyMark],
    generation: int,
    *,
    jump: bool,
    surplus_jumps: int = 0,
    alone: bool = False,
    acknowledgements: bool = True,
    points: CodePoints = POOL_2,
    outer: Outer = NO_TUNNELS,
    present: Container[str] = (),
    family: Family = IPV4,
) -> str:
    """Returns text that fills chain ``generation`` (0 or 1) with the marks, and leads traffic to it.

    With ``jump`` the text adds the missing jump from OUTPUT, and it removes ``surplus_jumps`` of them. With ``alone``
    it empties the other chain, whose last counts are lost. With ``acknowledgements`` these get their own DSCP.
    ``points`` are the DSCPs that are ours, of the classes or jobs and others. ``outer`` are the tunnels, and what their
    packets get. The chains of other tunnels are removed where they are among the ``present`` ones. The marks are for
    packets of ``family``. Raises MarkError.
    """
    chain = GENERATIONS[generation]
    target = {key: f"{chain}{number}" for number, key in enumerate(_targets(marks))}
    acknowledgements &= points.without_data is not None
    first = "" if points.without_data is None else acknowledgement(points.without_data, family)
    tunnels = outer_rules(outer, CHAIN, CLEAR, points.other, family)
    lines = ["*mangle", f":{CHAIN} - [0:0]", f":{CLEAR} - [0:0]", f":{chain} - [0:0]"]
    lines += [f":{CLEAR_JOBS} - [0:0]"] * bool(points.shared_in_jobs)
    lines += [f":{GENERATIONS[1 - generation]} - [0:0]"] * alone
    lines += [f":{name} - [0:0]" for name in (*target.values(), *tunnels.chains)]
    for (_, dscp), name in target.items():
        # A new class replaces the first rule of a job's chain.
        lines += [f"-A {name} -j DSCP --set-dscp {dscp}", *[f"-A {name} {first}"] * acknowledgements]
    lines += [f"-A {chain} {_match(mark, family)} -g {target[mark.job, mark.dscp]}" for mark in marks]
    lines += _clearing(CLEAR, points.exclusive, points.other)
    if points.shared_in_jobs:
        senders = dict.fromkeys(_sent_by(mark) for mark in marks if isinstance(mark, GroupMark))
        lines += [f"-A {CLEAR} {sender} -g {CLEAR_JOBS}" for sender in senders]
        lines += _clearing(CLEAR_JOBS, points.shared_in_jobs, points.other)
    lines += (*tunnels.rules, *tunnels.leads)
    # Most packets have no DSCP, and cost only this one comparison.
    lines.append(f"-A {CHAIN} -m dscp ! --dscp 0 -j {CLEAR}")
    lines += [
        f"-F {name}\n-X {name}" for name in tunnel_chains(CHAIN) if name in present and name not in tunnels.chains
    ]
    lines += [f"-A {CHAIN} -g {chain}", *([JUMP] if jump else []), *[f"-D OUTPUT -j {CHAIN}"] * surplus_jumps]
    lines += ["COMMIT", ""]
    return "\n".join(lines)


def acknowledgement(dscp: int, family: Family = IPV4) -> str:
    """Returns the match of packets without data, and the target that gives them a DSCP.

    A packet that ends a connection must stay behind its data, and a packet with PSH carries data. A packet without PSH
    may carry a few bytes of data and go first too; TCP restores the order.
    """
    short = f"-m length --length 0:{family.most_headers}"
    return f"-p tcp --tcp-flags FIN,RST,PSH NONE {short} -j DSCP --set-dscp {dscp}"


def _clearing(chain: str, dscps: Iterable[int], other: int) -> list[str]:
    return [f"-A {chain} -m dscp --dscp {dscp} -j DSCP --set-dscp {other}" for dscp in sorted(dscps)]


def new_classes(before: Sequence[AnyMark], after: Sequence[AnyMark], generation: int) -> str | None:
    """Returns text that changes the DSCPs of jobs; None where the matches differ too, and "" where nothing differs.

    ``before`` are the present marks of chain ``generation``.
    """
    old, new = _targets(before), _targets(after)
    if [_identity(mark) for mark in before] != [_identity(mark) for mark in after] or len(old) != len(new):
        return None
    if [job for job, _ in old] != [job for job, _ in new]:
        return None
    lines = [
        f"-R {GENERATIONS[generation]}{number} 1 -j DSCP --set-dscp {now[1]}"
        for number, (then, now) in enumerate(zip(old, new, strict=True))
        if then != now
    ]
    return "\n".join(["*mangle", *lines, "COMMIT", ""]) if lines else ""


def removal(saved: str) -> str:
    """Returns text that removes all our chains and jumps in an output of ``iptables-save``."""
    lines = ["*mangle"]
    lines += [f"-D OUTPUT -j {CHAIN}"] * jumps(saved)
    own = _OWN_CHAIN.findall(saved)
    lines += [f"-F {chain}" for chain in own] + [f"-X {chain}" for chain in own]
    return "\n".join([*lines, "COMMIT", ""])


def as_saved(listed: str) -> str:
    """Return what ``iptables -S -v`` has printed in the form of ``iptables-save -c``."""
    return "".join(f"{_saved_line(line)}\n" for line in listed.splitlines())


def _saved_line(listed: str) -> str:
    if rule := _LISTED_RULE.match(listed):
        return f"[{rule[2]}:{rule[3]}] {rule[1]}{rule[4] or ''}"
    if chain := _LISTED_CHAIN.match(listed):
        return f":{chain[4]} - [0:0]" if chain[4] else f":{chain[1]} {chain[2]} [{chain[3].replace(' ', ':')}]"
    return listed


def jumps(saved: str) -> int:
    """Returns the number of jumps from OUTPUT to our chain."""
    return sum(line.endswith(JUMP) for line in saved.splitlines())


def counts(saved: str) -> dict[str, tuple[int, ...]]:
    """Returns the bytes that each rule of the two chains has counted, from an output of ``iptables-save -c``."""
    by_chain: dict[str, list[int]] = {}
    for line in saved.splitlines():
        counted = _COUNTED.match(line)
        if counted is not None:
            by_chain.setdefault(counted[2], []).append(int(counted[1]))
    return {chain: tuple(values) for chain, values in by_chain.items()}


class Sent(NamedTuple):
    """The bytes that a job has sent, and the number of their counter. Each counter begins at zero."""

    bytes: float
    counter: int = 0


class SentBytes:
    """Counts bytes by job across changes of the rules.

    A job without marks is forgotten. If it gets marks again, it has a new counter.
    """

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._now: dict[str, int] = {}
        self._values: tuple[int, ...] = ()
        self._counters: dict[str, int] = {}
        self._changes = 0

    def count(self, marks: Sequence[AnyMark], values: Sequence[int]) -> None:
        """Use the counters of the rules in force, one for each mark. Another number of counters is ignored.

        Where a counter is smaller than before, another program has reset it. The bytes counted until then stay.
        """
        if len(values) != len(marks):
            return
        if any(now < then for now, then in zip(values, self._values, strict=False)):
            self._before, self._now = self._totals(), {}
        self._now, self._values = _by_job(marks, values), tuple(values)

    def change(self, marks: Iterable[AnyMark]) -> None:
        """Begin to count new rules, those of ``marks``, whose counters begin at zero."""
        totals = self._totals()
        jobs = {mark.job for mark in marks}
        self._before = {job: sent for job, sent in totals.items() if job in jobs}
        self._now, self._values = {}, ()
        self._counters = {job: self._counters.get(job, self._changes) for job in jobs}
        self._changes += 1

    def totals(self) -> Mapping[str, Sent]:
        """Returns all bytes by job."""
        return {job: Sent(sent, self._counters.get(job, 0)) for job, sent in self._totals().items()}

    def _totals(self) -> dict[str, int]:
        jobs = self._before.keys() | self._now.keys()
        return {job: self._before.get(job, 0) + self._now.get(job, 0) for job in jobs}


def _by_job(marks: Sequence[AnyMark], values: Sequence[int]) -> dict[str, int]:
    sent: dict[str, int] = {}
    for mark, value in zip(marks, values, strict=True):
        sent[mark.job] = sent.get(mark.job, 0) + value
    return sent


def _match(mark: AnyMark, family: Family) -> str:
    """Returns the match of a mark's rule. The text contains only checked numbers and a quoted path."""
    if isinstance(mark, GroupMark):
        return f"-p tcp {_sent_by(mark)}"
    protocol = _protocol(mark)
    parts = [] if protocol == "any" else [f"-p {protocol}"]
    if mark.is_whole:
        raise MarkError(f"the mark of job {mark.job} would match all traffic")
    if mark.remote is not None:
        address = packed(mark.remote)
        if address is None or is_ipv4(address) is family.is_ipv6:
            raise MarkError(f"the mark of job {mark.job}: {mark.remote!r} is no {family.name} address")
        parts.append(f"-d {text_of(address)}")
    if mark.local_port is not None:
        parts.append(f"--sport {mark.local_port}")
    if mark.remote_port is not None:
        parts.append(f"--dport {mark.remote_port}")
    if (protocol, mark.remote_port) == ("udp", ROCEV2_PORT):
        # The network has a priority for notices of congestion, which are no data of the job.
        parts.append(f"-m dscp ! --dscp {CNP_DSCP}")
    return " ".join(parts)


def _protocol(mark: Mark) -> str:
    return mark.protocol if isinstance(mark, ProtocolMark) else "tcp"


def _sent_by(mark: GroupMark) -> str:
    """Returns the match of what the processes in a cgroup send. Raises MarkError."""
    path = mark.group.path
    if not path.isprintable() or not path.strip("/") or '"' in path:
        raise MarkError(f"the mark of job {mark.job}: {path!r} is no cgroup of a job")
    quoted = path.replace("\\", "\\\\")
    return f'-m cgroup --path "{quoted}"'


def _targets(marks: Sequence[AnyMark]) -> list[tuple[str, int]]:
    """Returns the job and DSCP of each chain that the marks lead to, in the order of the chains' numbers."""
    return list(dict.fromkeys((mark.job, mark.dscp) for mark in marks))


def _identity(mark: AnyMark) -> tuple[object, ...]:
    if isinstance(mark, GroupMark):
        return (mark.job, mark.group)
    return (mark.job, _protocol(mark), mark.local_port, mark.remote, mark.remote_port)
