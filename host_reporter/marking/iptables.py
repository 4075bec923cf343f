"""Installs marks with iptables, repairs them, and reads the counters of marked bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from controller.code_points import POOL_2, CodePoints
from host_reporter.marking import iptables_tool, rules_text, table_version
from host_reporter.marking.families import IPV4, Family
from host_reporter.marking.installed_rules import InstalledRules, Table, class_changes, learned, table
from host_reporter.marking.iptables_tool import IptablesError, IptablesTool
from host_reporter.marking.obstacles import obstacles
from host_reporter.marking.outer_headers import NO_TUNNELS, Outer
from host_reporter.marking.outer_support import OuterSupport
from host_reporter.marking.rules_text import AnyMark

__all__ = ["VARIANTS", "IptablesError", "Marker"]

VARIANTS = ("iptables", "iptables-legacy")
"""The variants are tried in this order, by their names for IPv4. Without nf_tables only the legacy variant works."""

_ANY_GROUP = '-p tcp -m cgroup --path "/" -j RETURN'
_TRIES = 3
"""Try a change this many times, because other programs may change the table at the same moment."""


class _Former(NamedTuple):
    """Rules that are no longer in force and whose last counts are not read yet.

    ``remaining`` are the marks whose jobs go on.
    """

    marks: tuple[AnyMark, ...]
    rules: tuple[str, ...] | None
    remaining: tuple[AnyMark, ...]


class _Wanted(NamedTuple):
    """What the rules do. ``points`` are the DSCPs that are ours, and ``outer`` is for the packets of tunnels."""

    marks: tuple[AnyMark, ...] = ()
    points: CodePoints = POOL_2
    outer: Outer = NO_TUNNELS


class Change(NamedTuple):
    """The numbers of nf_tables before and after a change of the agent's, with none of anybody else between them."""

    before: int
    after: int


class Marker:
    """The marks of this network namespace in packets of ``family``. It is not thread-safe."""

    def __init__(self, family: Family = IPV4) -> None:
        self.family = family
        self._tool: IptablesTool | None = None
        self._wanted = _Wanted()
        self._support = OuterSupport()
        self._generation = 0
        self._sent = rules_text.SentBytes()
        self._uncounted: _Former | None = None
        self._is_up = False
        self._acknowledgements = True
        self._installed: InstalledRules | None = None
        self._version: table_version.Version | None = None
        """The version of the table at which it was equal to the installation."""
        self._seen: Table = {}
        self.latest_change: Change | None = None
        """The numbers of nf_tables around the latest change of classes, which are of both families; see ``follow``."""
        self.obstacles: tuple[str, ...] = ()
        """Sentences about rules of other programs that keep packets from their mark, as of the latest look."""

    def apply(
        self, marks: Sequence[AnyMark], points: CodePoints = POOL_2, outer: Outer = NO_TUNNELS
    ) -> tuple[str, ...]:
        """Install ``marks`` in place of the present ones, in one step. Raises IptablesError.

        Where ``marks`` is empty, no traffic leaves with a class's DSCP that is exclusive by ``points``. ``outer`` is
        what the packets of tunnels get, as far as the kernel can do that. Returns, in words, what other programs had
        changed and this call repairs.
        """
        wanted = _Wanted(tuple(marks), points, self._possible(outer))
        if not self._is_up:
            self._seen = table(self._opened().save())
            self._switch_over(wanted)
            return ()
        was = self.changed()
        if was or wanted._replace(marks=self._wanted.marks) != self._wanted or not self._change_classes(wanted):
            # Another program may have changed the rules since the look, so that the change of classes failed.
            was = was or self.changed()
            self._switch_over(wanted)
        return was

    def open(self) -> None:
        """Mark nothing until the next ``apply``, so that all traffic is served alike. Raises IptablesError.

        The bytes sent so far are remembered, because the jobs go on.
        """
        marks = self._wanted.marks
        if self._is_up and (marks or self._wanted.outer != NO_TUNNELS):
            self.sent_bytes()
            unmarked = self._wanted._replace(marks=(), outer=NO_TUNNELS)
            self._switch_over(unmarked, remaining=marks)

    def sent_bytes(self) -> Mapping[str, rules_text.Sent]:
        """Returns the bytes of marked packets, by job, since the job's first mark. Raises IptablesError.

        The bytes include IP headers and retransmissions.
        """
        if self._is_up and (self._wanted.marks or self._uncounted is not None):
            # Without marks nothing is counted, and to read the table each period costs processor time.
            self._read()
        return self._sent.totals()

    def changed(self) -> tuple[str, ...]:
        """Returns in words how the rules differ from the installation. Raises IptablesError."""
        if not self._is_up:
            return ()
        version = self._opened().version()
        if version is not None and version == self._version:
            return ()
        self._read()
        if self._installed is None:
            return ("the rules were changed while the agent installed them",)
        was = self._installed.differences(self._seen)
        self._version = None if was else version
        return was

    def put_back(self) -> None:
        """Install all rules again, based on the latest look. Raises IptablesError."""
        if self._is_up:
            self._switch_over(self._wanted)

    def why_no_groups(self) -> str | None:
        """Returns why this kernel cannot match packets by cgroup; None where it can. Raises IptablesError."""
        return self._opened().can(_ANY_GROUP)

    def follow(self, change: Change) -> None:
        """Another family's rules were changed by the agent: where this table was looked at before, it is the same."""
        if self._version == change.before:
            self._version = change.after

    @property
    def has_tool(self) -> bool:
        """Whether a variant of the tool was found that works."""
        return self._tool is not None

    @property
    def is_marking(self) -> bool:
        """Whether rules are installed."""
        return self._is_up

    @property
    def marks_acknowledgements(self) -> bool:
        """Whether jobs' acknowledgements, and no other packets, have the DSCP of acknowledgements."""
        return self._is_up and self._acknowledgements and self._wanted.points.sure_acknowledgements is not None

    @property
    def outer(self) -> Outer:
        """The tunnels whose packets have marks or keep them, as installed."""
        return self._wanted.outer if self._is_up else NO_TUNNELS

    @property
    def outer_trouble(self) -> str | None:
        """Why the packets of tunnels get no marks, as a sentence without a full stop; None: nothing is in the way."""
        return self._support.trouble

    def remove(self) -> None:
        """Remove the chains. Raises IptablesError."""
        if self._is_up:
            self._is_up, self._wanted, self._uncounted = False, _Wanted(), None
            self._installed = self._version = None
            self._opened().remove()

    def remove_left(self) -> None:
        """Remove the chains of an agent that was killed, if there are any. Raises IptablesError."""
        if not self._is_up:
            self._opened().remove()

    def _possible(self, outer: Outer) -> Outer:
        return self._support.possible(outer, lambda rule: self._opened().can(rule))

    def _change_classes(self, wanted: _Wanted) -> bool:
        """Replace jobs' classes in the installed rules. Returns False where that fails or other changes are needed."""
        text = rules_text.new_classes(self._wanted.marks, wanted.marks, self._generation)
        if text is None or self._installed is None:
            return False
        if text:
            tool, before = self._opened(), self._version
            try:
                tool.commit(text)
            except IptablesError:
                return False
            version = tool.version()
            is_ours = table_version.follows(version, before, class_changes(text))
            self._version = version if is_ours else None
            if is_ours and isinstance(before, int) and isinstance(version, int):
                self.latest_change = Change(before, version)
            self._installed = self._installed.with_new_classes(text)
        self._wanted = wanted
        return True

    def _switch_over(self, wanted: _Wanted, *, remaining: tuple[AnyMark, ...] | None = None) -> None:
        """Fill the idle chain, switch over to it, and read the table back."""
        remaining = wanted.marks if remaining is None else remaining
        generation = 1 - self._generation
        text, is_emptied = self._commit(wanted, generation)
        if self._is_up and not is_emptied:
            rules = None if self._installed is None else self._installed.counted(self._generation)
            self._uncounted = _Former(self._wanted.marks, rules, remaining)
        else:
            self._uncounted = None
            self._sent.change(remaining)
        self._wanted, self._generation, self._is_up = wanted, generation, True
        self._learn(text)

    def _commit(self, wanted: _Wanted, generation: int) -> tuple[str, bool]:
        """Carry out the change. Returns its text, and whether it has emptied the chain in force before."""
        for tries_left in reversed(range(_TRIES)):
            for alone in (False, True):
                # iptables-legacy writes the whole table again, and the kernel refuses it if a cgroup in it is gone.
                # Without the chain in force before, the kernel may accept it.
                text = self._text(wanted, generation, alone=alone)
                try:
                    self._opened().commit(text)
                except IptablesError as error:
                    refusal = error
                else:
                    return text, alone
            before, self._seen = self._seen, table(self._opened().save())
            # Where no other program has changed the table in the meantime, the kernel refuses the change itself.
            if not tries_left or self._seen == before:
                raise refusal
        raise AssertionError

    def _text(self, wanted: _Wanted, generation: int, *, alone: bool) -> str:
        jumps = self._seen.get("OUTPUT", ()).count(f"-j {rules_text.CHAIN}")
        try:
            return rules_text.switch_over(
                wanted.marks,
                generation,
                jump=jumps == 0,
                surplus_jumps=max(jumps - 1, 0),
                alone=alone,
                acknowledgements=self._acknowledgements,
                points=wanted.points,
                outer=wanted.outer,
                present=self._seen,
                family=self.family,
            )
        except rules_text.MarkError as error:
            raise IptablesError(str(error)) from error

    def _learn(self, text: str) -> None:
        """Read back what a text has installed, and the last counts of the former rules."""
        self._installed = self._version = None
        version = self._opened().version()
        self._read()
        self._installed = learned(text, self._generation, self._seen)
        # OUTPUT's jump was read before the change and may be gone by now. The next look repairs that.
        if self._installed is not None and not self._installed.differences(self._seen):
            self._version = version

    def _read(self) -> None:
        """Read the whole table: its rules, its counters, and the obstacles in it."""
        saved = self._opened().save()
        self._seen = table(saved)
        self.obstacles = obstacles(self._seen, self.family.tool)
        counts = rules_text.counts(saved)
        former, self._uncounted = self._uncounted, None
        if former is not None:
            idle = rules_text.GENERATIONS[1 - self._generation]
            if former.rules == self._seen.get(idle):
                self._sent.count(former.marks, counts.get(idle, ()))
            self._sent.change(former.remaining)
        # Rules that another program has put in their place count other packets.
        live = rules_text.GENERATIONS[self._generation]
        if self._installed is None or self._installed.counted(self._generation) == self._seen.get(live):
            self._sent.count(self._wanted.marks, counts.get(live, ()))

    def _opened(self) -> IptablesTool:
        """Returns the tool of a working variant, if possible of one that can match acknowledgements."""
        if self._tool is None:
            variants = [self.family.variant(variant) for variant in VARIANTS]
            short = rules_text.acknowledgement(0, self.family)
            try:
                self._tool, self._acknowledgements = iptables_tool.find(variants, short), True
            except IptablesError:
                self._tool, self._acknowledgements = iptables_tool.find(variants, "-j DSCP --set-dscp 0"), False
        return self._tool
