"""The rules of one switch: which it should hold, which it holds, and how the difference is sent.

From time to time, and at once when the switch reports a removed rule, the rules that it holds are compared with those
that it should hold, and corrected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ryu.lib import hub

from controller.dataplane import audit, openflow, transactions
from controller.dataplane.channel import Channel, SwitchGoneError, in_turns
from controller.rules.compiler import Difference, Rule, difference

MOST_UNLIKE = 3
"""Ends the reading of rules after so many looks in a row at which corrected rules read otherwise than sent."""


class Changed(NamedTuple):
    """The result of a change: messages sent, refusals, the difference, and the number of unknown rules."""

    sent: int
    errors: tuple[str, ...]
    change: Difference
    unknown: int


class RuleTable:
    """All rules of ours on one switch, and its gate.

    ``base`` returns the rules that the switch needs before any plan. ``remembered`` are the rules of the last plan that
    this switch accepted, if there was one. ``switches`` returns how many switches the controller has. ``warn`` logs a
    sentence. Every method may raise SwitchGoneError.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        gate_seconds: int,
        base: Callable[[], frozenset[Rule]],
        remembered: frozenset[Rule] | None,
        switches: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        self._channel = channel
        self._gate_seconds = gate_seconds
        self._base = base
        self._wanted = remembered
        self._switches = switches
        self._warn = warn
        self._held: frozenset[Rule] | None = None
        self._tags: Mapping[openflow.RuleKey, int] = {}
        self._epoch = 0
        self._gate_until = 0.0
        self._turn = 0
        self._unlike = 0
        self._lock = hub.Semaphore(1)

    @property
    def count(self) -> int:
        """The number of rules that the switch is known to hold."""
        return len(self._held) if self._held is not None else 0

    @property
    def is_known(self) -> bool:
        """Whether the rules of the switch are known. During a change they are not."""
        return self._held is not None

    @property
    def is_comparable(self) -> bool:
        """Whether the switch reports its rules as they were sent. If not, only their number is compared."""
        return self._unlike < MOST_UNLIKE

    def apply(self, wanted: frozenset[Rule], epoch: int) -> tuple[int, tuple[str, ...]]:
        """Make the switch hold ``wanted``. Returns the number of messages sent and the refusals.

        ``wanted`` is what the switch should hold from now on only if it accepted all of it. A set that it refused, or
        that was unfinished at a disconnect, must not be sent again by every repair: it may never fit.
        """
        with self._lock:
            self._epoch = epoch
            done = self._become(wanted)
            if not done.errors:
                self._wanted = wanted
        return done.sent, done.errors

    def forget(self) -> None:
        """Read the rules of the switch again before the next change: they may have changed."""
        self._held = None

    def settle(self) -> str | None:
        """Read the rules of the switch if they are unknown, and send at least the pipeline. Returns the refusals."""
        with self._lock:
            if self._held is not None:
                return None
            return "; ".join(self._settle().errors) or None

    def open_gate(self) -> str | None:
        """Open the gate, or keep it open for another ``gate_seconds``. Returns why the switch refused."""
        sent_at = time.monotonic()
        refusals = self._channel.settle([openflow.gate(self._channel.datapath, self._gate_seconds)])
        if refusals:
            return f"it refused the gate: {refusals[0].reason}"
        self._gate_until = sent_at + self._gate_seconds
        return None

    def look(self) -> tuple[str | None, str | None]:
        """Compare the rules of the switch with those that it should hold, and correct them.

        Returns the corrections and the refusals as texts, or None twice if all was right or the switch did not answer.
        """
        with self._lock:
            if self._held is None:
                return None, None
            try:
                deviates = self._deviates(self._held)
            except SwitchGoneError:
                return None, None
            if deviates:
                return self._put_right()
            self._turn += 1
            self._unlike = 0 if self.is_comparable else self._unlike
            return None, None

    def _deviates(self, held: frozenset[Rule]) -> bool:
        """Returns whether the switch's answers show that its rules or its gate are wrong."""
        for part in self._parts(held):
            replies, gate = self._ask_for(part)
            if not audit.agrees(part, held, self._tags, openflow.read_rules(self._channel.dpid, in_turns(replies))):
                self._unlike += 1
                return True
            if gate and part.has_gate and not openflow.shows_gate(replies):
                return True
        with_gate = self._gate_is_due()
        replies, refusals = self._channel.ask(openflow.count_request(self._channel.datapath, with_gate=with_gate))
        # If the gate timed out during the request, the count says nothing.
        if refusals or with_gate != self._gate_is_due():
            return False
        counted: int = sum(reply.body.flow_count for reply in replies)
        return counted != len(held) + with_gate

    def _gate_is_due(self) -> bool:
        """Returns whether the gate was opened so recently that it cannot have timed out."""
        return time.monotonic() < self._gate_until

    def _parts(self, held: frozenset[Rule]) -> tuple[audit.Part, ...]:
        if not self.is_comparable:
            return ()
        jobs = sum(audit.tag_of(rule, self._tags) != 0 for rule in held)
        return audit.parts(self._turn, len(held) - jobs, jobs, switches=self._switches())

    def _put_right(self) -> tuple[str | None, str | None]:
        """Add the missing rules, first those without which no packet is forwarded."""
        self._held = None
        replies, gate = self._ask_for(audit.PIPELINE)
        read = openflow.read_rules(self._channel.dpid, in_turns(replies))
        present = frozenset(item.rule for item in read if item.rule is not None)
        wanted = self._base() if self._wanted is None else self._wanted
        urgent = Difference(frozenset(rule for rule in wanted if rule.job is None) - present, frozenset())
        first = transactions.change(self._channel, urgent, present, self._epoch)
        gate = gate and not openflow.shows_gate(replies)
        refusal = self.open_gate() if gate else None
        done = self._settle()
        put_back = urgent.add if first.done else frozenset()
        deleted = done.unknown
        if not done.errors:
            put_back |= done.change.add
            deleted += len(done.change.remove)
        what = audit.in_words(put_back, deleted, gate=gate and refusal is None)
        problems = dict.fromkeys((*first.errors, *done.errors, *([refusal] if refusal else [])))
        return what, "; ".join(problems) or None

    def _settle(self) -> Changed:
        # Before the first plan nothing is deleted: after a restart the plan may need exactly these rules.
        wanted = self._base() if self._wanted is None else self._wanted
        done = self._become(wanted, keep=self._wanted is None)
        if done.errors:
            # The rules of a switch that refused some are read again.
            self._held = None
        return done

    def _become(self, wanted: frozenset[Rule], *, keep: bool = False) -> Changed:
        """Send the difference. Call with the lock held."""
        unknown = 0
        if self._held is None:
            self._held, unknown = self._read()
        before = openflow.label(self._held, self._tags, wanted)
        change = difference(before, wanted)
        if keep:
            change = Difference(change.add, frozenset())
        # Until the switch has answered, its rules are unknown. After a timeout they stay so, and are read again.
        self._held = None
        outcome = transactions.change(self._channel, change, before, self._epoch)
        if outcome.done:
            if keep:
                keys = {rule.key for rule in change.add}
                self._held = frozenset(rule for rule in before if rule.key not in keys) | change.add
            else:
                # Rules without a job name were not wanted, and are deleted.
                self._held, self._tags = wanted, {}
        else:
            self._restore(before)
        return Changed(outcome.sent, outcome.errors, change, unknown)

    def _restore(self, before: frozenset[Rule]) -> None:
        """Read the rules of a switch that refused a change, and restore those it held before."""
        read, _ = self._read()
        self._held = openflow.label(read, self._tags, before)
        repair = difference(self._held, before)
        if repair:
            self._warn(f"switch {self._channel.dpid:016x} did not undo a refused change; restoring its rules")
            done = transactions.change(self._channel, repair, self._held, self._epoch).done
            self._held = before if done else None

    def _read(self) -> tuple[frozenset[Rule], int]:
        """Returns the rules of ours that the switch holds, and how many rules were deleted that this version does not
        make.
        """
        replies = self._ask(openflow.read_request(self._channel.datapath))
        read = openflow.read_rules(self._channel.dpid, in_turns(replies))
        strange = [item for item in read if item.rule is None]
        if strange:
            deletes = (openflow.delete_held(self._channel.datapath, item) for item in strange)
            self._channel.settle_many(deletes, len(strange))
        self._tags = {item.rule.key: item.tag for item in read if item.rule is not None and item.tag}
        return frozenset(item.rule for item in read if item.rule is not None), len(strange)

    def _ask_for(self, part: audit.Part) -> tuple[list[Any], bool]:
        """Returns the rules of a part as the switch reports them, and whether they should include the gate."""
        gate = self._gate_is_due()
        mask = openflow.BOTH_MASK | part.mask
        replies = self._ask(openflow.read_request(self._channel.datapath, openflow.OWNER_COOKIE | part.value, mask))
        return replies, gate and self._gate_is_due()

    def _ask(self, request: Any) -> list[Any]:
        replies, refusals = self._channel.ask(request)
        if refusals:
            raise SwitchGoneError(f"switch {self._channel.dpid:016x} does not report its rules: {refusals[0].reason}")
        return replies
