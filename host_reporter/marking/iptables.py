"""Applies marks with iptables, keeps them as they were installed, and reads the counters of what was marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from host_reporter.marking import iptables_tool, rules_text, table_version
from host_reporter.marking.installed_rules import InstalledRules, Table, class_changes, learned, table
from host_reporter.marking.iptables_tool import IptablesError, IptablesTool
from host_reporter.marking.obstacles import obstacles
from host_reporter.marking.rules_text import AnyMark

__all__ = ["VARIANTS", "IptablesError", "Marker"]

VARIANTS = ("iptables", "iptables-legacy")
"""The system's own choice first; where the kernel lacks nf_tables only the legacy variant works."""

_ANY_GROUP = '-p tcp -m cgroup --path "/" -j RETURN'
_TRIES = 3
"""Try a change so often: other programs may change the table at the same moment."""


class _Former(NamedTuple):
    """Rules that were in force, whose last counts are still to be read. ``heirs``: the marks whose jobs go on."""

    marks: tuple[AnyMark, ...]
    rules: tuple[str, ...] | None
    heirs: tuple[AnyMark, ...]


class Marker:
    """This network namespace's marks. Not for several threads."""

    def __init__(self) -> None:
        self._tool: IptablesTool | None = None
        self._marks: tuple[AnyMark, ...] = ()
        self._generation = 0
        self._sent = rules_text.SentBytes()
        self._uncounted: _Former | None = None
        self._is_up = False
        self._acknowledgements = True
        self._installed: InstalledRules | None = None
        self._version: table_version.Version | None = None
        """The table's version at which it was as it was installed."""
        self._seen: Table = {}
        self.obstacles: tuple[str, ...] = ()
        """Rules of somebody else that keep packets from their mark, as of the latest look, in sentences."""

    def apply(self, marks: Sequence[AnyMark]) -> tuple[str, ...]:
        """Mark what ``marks`` say, and nothing else, from one moment to the next. Raises IptablesError.

        Without any, too: then no traffic leaves with a class's DSCP. Returns what somebody else had changed and is put
        back with it, in words.
        """
        wanted = tuple(marks)
        if not self._is_up:
            self._seen = table(self._opened().save())
            self._switch_over(wanted)
            return ()
        was = self.changed()
        if was or not self._change_classes(wanted):
            # What the change of classes built on may have been changed since the look.
            was = was or self.changed()
            self._switch_over(wanted)
        return was

    def open(self) -> None:
        """Mark nothing until the next ``apply``, so that all traffic is alike. Raises IptablesError.

        The bytes sent so far are remembered: the jobs go on.
        """
        if self._is_up and self._marks:
            self.sent_bytes()
            self._switch_over((), heirs=self._marks)

    def sent_bytes(self) -> Mapping[str, rules_text.Sent]:
        """Bytes that left with a mark, by job, since its first mark. Raises IptablesError.

        Bytes of IP packets: with headers, and what was sent again.
        """
        if self._is_up:
            self._read()
        return self._sent.totals()

    def changed(self) -> tuple[str, ...]:
        """Returns what of the rules is no longer as it was installed, in words. Raises IptablesError."""
        if not self._is_up:
            return ()
        version = self._opened().version()
        if version is not None and version == self._version:
            return ()
        self._read()
        if self._installed is None:
            return ("it was changed while the agent installed its rules",)
        was = self._installed.differences(self._seen)
        self._version = None if was else version
        return was

    def put_back(self) -> None:
        """Install all rules anew, as of the latest look. Raises IptablesError."""
        if self._is_up:
            self._switch_over(self._marks)

    def why_no_groups(self) -> str | None:
        """Returns why this kernel cannot match packets by cgroup; None: it can. Raises IptablesError."""
        return self._opened().can(_ANY_GROUP)

    @property
    def is_marking(self) -> bool:
        """Whether there are rules to count."""
        return self._is_up

    @property
    def marks_acknowledgements(self) -> bool:
        """Whether jobs' acknowledgements have their own DSCP, and no program's packets have."""
        return self._is_up and self._acknowledgements

    def remove(self) -> None:
        """Take the chains away. Raises IptablesError."""
        if self._is_up:
            self._is_up, self._marks, self._uncounted = False, (), None
            self._installed = self._version = None
            self._opened().remove()

    def _change_classes(self, wanted: tuple[AnyMark, ...]) -> bool:
        """Give jobs their new classes in the rules that are there. Returns whether that was all and is done."""
        text = rules_text.new_classes(self._marks, wanted, self._generation)
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
            self._installed = self._installed.with_new_classes(text)
        self._marks = wanted
        return True

    def _switch_over(self, wanted: tuple[AnyMark, ...], *, heirs: tuple[AnyMark, ...] | None = None) -> None:
        """Fill the idle chain, switch over to it, and read back what that looks like."""
        heirs = wanted if heirs is None else heirs
        generation = 1 - self._generation
        text, is_emptied = self._commit(wanted, generation)
        if self._is_up and not is_emptied:
            rules = None if self._installed is None else self._installed.counted(self._generation)
            self._uncounted = _Former(self._marks, rules, heirs)
        else:
            self._uncounted = None
            self._sent.change(heirs)
        self._marks, self._generation, self._is_up = wanted, generation, True
        self._learn(text)

    def _commit(self, wanted: tuple[AnyMark, ...], generation: int) -> tuple[str, bool]:
        """Carry out the change. Returns its text, and whether the chain in force so far was emptied with it."""
        for tries_left in reversed(range(_TRIES)):
            for alone in (False, True):
                # The older iptables gives the kernel the whole table again, which refuses a cgroup that is gone by
                # now: without the chain in force so far it may do.
                text = self._text(wanted, generation, alone=alone)
                try:
                    self._opened().commit(text)
                except IptablesError as error:
                    refusal = error
                else:
                    return text, alone
            before, self._seen = self._seen, table(self._opened().save())
            # Where nobody has changed anything in the meantime the kernel does refuse it.
            if not tries_left or self._seen == before:
                raise refusal
        raise AssertionError

    def _text(self, wanted: tuple[AnyMark, ...], generation: int, *, alone: bool) -> str:
        jumps = self._seen.get("OUTPUT", ()).count(f"-j {rules_text.CHAIN}")
        try:
            return rules_text.switch_over(
                wanted,
                generation,
                jump=jumps == 0,
                surplus_jumps=max(jumps - 1, 0),
                alone=alone,
                acknowledgements=self._acknowledgements,
            )
        except rules_text.MarkError as error:
            raise IptablesError(str(error)) from error

    def _learn(self, text: str) -> None:
        """Read back what a text has installed, and count what the former rules have counted in the end."""
        self._installed = self._version = None
        version = self._opened().version()
        self._read()
        self._installed = learned(text, self._generation, self._seen)
        # Whether OUTPUT leads to it was known before, and may be otherwise by now: the next look puts that right.
        if self._installed is not None and not self._installed.differences(self._seen):
            self._version = version

    def _read(self) -> None:
        """Look at the whole table: its rules, its counters, and who stands in the way."""
        saved = self._opened().save()
        self._seen = table(saved)
        self.obstacles = obstacles(self._seen)
        counts = rules_text.counts(saved)
        former, self._uncounted = self._uncounted, None
        if former is not None:
            idle = rules_text.GENERATIONS[1 - self._generation]
            if former.rules == self._seen.get(idle):
                self._sent.count(former.marks, counts.get(idle, ()))
            self._sent.change(former.heirs)
        # Rules that somebody else has put in their place count something else.
        live = rules_text.GENERATIONS[self._generation]
        if self._installed is None or self._installed.counted(self._generation) == self._seen.get(live):
            self._sent.count(self._marks, counts.get(live, ()))

    def _opened(self) -> IptablesTool:
        """The commands of a variant that can do what is needed here; of one that can tell acknowledgements, if any."""
        if self._tool is None:
            try:
                self._tool, self._acknowledgements = iptables_tool.find(VARIANTS, rules_text.ACKNOWLEDGEMENT), True
            except IptablesError:
                self._tool, self._acknowledgements = iptables_tool.find(VARIANTS, "-j DSCP --set-dscp 0"), False
        return self._tool
