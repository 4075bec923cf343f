"""The rules of one switch: what it is to hold, what it holds, and how the one becomes the other.

Only the difference is sent. From time to time, and at once when the switch tells that a rule went, what it holds is
compared with what it was given, and put right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from ryu.lib import hub

from controller.dataplane import audit, openflow, transactions
from controller.dataplane.channel import Channel, SwitchGoneError, in_turns
from controller.rules.rule import Difference, Metered, Rule, RuleKey, by_key, difference_in_steps, without
from controller.steps import in_steps

MOST_UNLIKE = 3
"""After so many looks in a row at which rules, just put right, read otherwise than they were sent, none are read."""


MOST_CROSSED = 3
"""Of so many looks in a row during which a plan was sent, the last one has plans wait while it counts the rules."""


_NO_TAGS: Mapping[RuleKey, int] = MappingProxyType({})


class _Found(Enum):
    """What a look can come to: rules are there as sent, read otherwise than they were sent, or some are missing."""

    AS_WANTED = auto()
    UNLIKE = auto()
    MISCOUNTED = auto()


class Changed(NamedTuple):
    """What became of a wish: messages sent, what was refused, what had to be changed, and rules that nobody knows."""

    sent: int
    errors: tuple[str, ...]
    change: Difference
    unknown: int


class RuleTable:
    """All rules of ours on one switch, and its gate. ``base`` gives the rules that it needs before any plan.

    ``remembered`` is the last plan's rules that this switch took, where there was one; ``switches`` is how many the
    controller looks after; ``is_paused`` is whether the gate is to be closed; ``prepare`` makes the meters that rules
    name; ``warn`` is told what people should know.
    ``gate_seconds`` may be set to another time, which counts from the gate's next opening. Every method may raise
    SwitchGoneError.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        gate_seconds: int,
        base: Callable[[], frozenset[Rule]],
        remembered: frozenset[Rule] | None,
        switches: Callable[[], int],
        is_paused: Callable[[], bool],
        prepare: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self.gate_seconds = gate_seconds
        self._channel = channel
        self._base = base
        self._wanted = remembered
        self._switches = switches
        self._is_paused = is_paused
        self._prepare = prepare
        self._warn = warn
        self._held: frozenset[Rule] | None = None
        self._tags = _NO_TAGS
        self._by_tag: tuple[frozenset[Rule], Mapping[RuleKey, int], audit.RulesByTag] | None = None
        self._epoch = 0
        self._changes = 0
        self._touched: set[RuleKey] | None = None
        self._crossed = 0
        self._gate_until = 0.0
        self._turn = 0
        self._unlike = 0
        self._lock = hub.Semaphore(1)

    @property
    def count(self) -> int:
        """How many rules the switch is known to hold."""
        return len(self._held) if self._held is not None else 0

    @property
    def is_known(self) -> bool:
        """Whether it is known what the switch holds; while it is being changed, it is not."""
        return self._held is not None

    @property
    def is_comparable(self) -> bool:
        """Whether the switch tells its rules as they were sent; if not, only their number is compared."""
        return self._unlike < MOST_UNLIKE

    def meters(self) -> frozenset[int] | None:
        """Returns the meters that its rules name, those held and those that it is to hold; None: they are not known."""
        if self._held is None:
            return None
        wanted = self._wanted or self._base()
        rules: Iterable[Rule] = wanted if wanted is self._held else chain(self._held, wanted)
        return frozenset(
            action.meter for rule in rules if rule.job is None for action in rule.actions if isinstance(action, Metered)
        )

    def apply(self, wanted: frozenset[Rule], epoch: int) -> tuple[int, tuple[str, ...]]:
        """Make the switch hold ``wanted``. Returns the messages sent, and what the switch refused.

        Only what the switch took is what it is to hold from now on. A set that it refused, or that it was still taking
        when it went away, must not be pushed again by every repair: it may never fit, and the switch would be lost.
        """
        with self._lock:
            self._epoch = epoch
            done = self._become(wanted)
            if not done.errors:
                self._wanted = wanted
        return done.sent, done.errors

    def forget(self) -> None:
        """What the switch holds may not be known any more: read it before the next change."""
        self._held = None

    def settle(self) -> str | None:
        """Read what the switch holds where that is not known, and bring it at least the pipeline; what it refused."""
        with self._lock:
            if self._held is not None:
                return None
            return "; ".join(self._settle().errors) or None

    def keep_gate(self) -> str | None:
        """Open the gate, or keep it open for another while; close it while all is paused. Why the switch refused."""
        if self._is_paused():
            self._gate_until = 0.0
            refusals = self._channel.settle([openflow.close_gate(self._channel.datapath)])
            return f"it does not close its gate: {refusals[0].reason}" if refusals else None
        sent_at, seconds = time.monotonic(), self.gate_seconds
        refusals = self._channel.settle([openflow.gate(self._channel.datapath, seconds)])
        if refusals:
            return f"it refused the gate: {refusals[0].reason}"
        self._gate_until = sent_at + seconds
        return None

    def look(self) -> tuple[str | None, str | None]:
        """Compare what the switch holds with what it was given, and put it right.

        Returns what was put right, in words, and what the switch refused; None twice: all was as it should be. A look
        that is not answered says nothing of the rules. A plan does not wait for a look: the switch is asked without
        the lock, and rules that a plan changes meanwhile are left out of the comparison.
        """
        with self._lock:
            held, tags = self._held, self._tags
            touched = self._touched = set[RuleKey]()
        found = self._compare(held, tags, touched)
        if found is _Found.AS_WANTED:
            found = self._count()
        with self._lock:
            # Rules that were read meanwhile are known better than by this look.
            return self._conclude(found) if self._touched is touched else (None, None)

    def _compare(
        self, held: frozenset[Rule] | None, tags: Mapping[RuleKey, int], touched: set[RuleKey]
    ) -> _Found | None:
        """What the switch's answers show of the gate and of ``held``, but for rules at ``touched``; None: nothing."""
        if held is None:
            return None
        try:
            by_tag = self._rules_by_tag(held, tags) if self.is_comparable else {}
            for part in self._parts(by_tag, len(held)):
                replies, gate = self._ask_for(part)
                if not audit.agrees(part, by_tag, self._rules_in(replies), touched):
                    return _Found.UNLIKE
                if gate and part.has_gate and not openflow.shows_gate(replies):
                    return _Found.MISCOUNTED
        except SwitchGoneError:
            return None
        return _Found.AS_WANTED

    def _count(self) -> _Found | None:
        """Compare the number of rules. A plan that is sent meanwhile leaves it unknown, but not without end."""
        with self._lock:
            held, changes = self._held, self._changes
        found = self._compare_number(held)
        if self._changes == changes:
            self._crossed = 0
            return found
        self._crossed += 1
        if self._crossed < MOST_CROSSED:
            return _Found.AS_WANTED
        self._crossed = 0
        with self._lock:
            return self._compare_number(self._held)

    def _compare_number(self, held: frozenset[Rule] | None) -> _Found | None:
        if held is None:
            return None
        with_gate = self._gate_is_due()
        try:
            replies, refusals = self._channel.ask(openflow.count_request(self._channel.datapath, with_gate=with_gate))
        except SwitchGoneError:
            return None
        # A gate that times out just then says nothing of the rest.
        if refusals or with_gate != self._gate_is_due():
            return _Found.AS_WANTED
        counted: int = sum(reply.body.flow_count for reply in replies)
        return _Found.AS_WANTED if counted == len(held) + with_gate else _Found.MISCOUNTED

    def _conclude(self, found: _Found | None) -> tuple[str | None, str | None]:
        """Act on what a look found. Call with the lock held."""
        match found:
            case _Found.AS_WANTED:
                self._turn += 1
                self._unlike = 0 if self.is_comparable else self._unlike
            case _Found.UNLIKE:
                self._unlike += 1
                return self._put_right()
            case _Found.MISCOUNTED:
                return self._put_right()
        return None, None

    def _gate_is_due(self) -> bool:
        """Whether the gate was opened lately enough that it cannot have timed out yet."""
        return time.monotonic() < self._gate_until

    def _parts(self, by_tag: audit.RulesByTag, count: int) -> tuple[audit.Part, ...]:
        if not self.is_comparable:
            return ()
        pipeline = len(by_tag.get(0, ()))
        return audit.parts(self._turn, pipeline, count - pipeline, switches=self._switches())

    def _rules_by_tag(self, held: frozenset[Rule], tags: Mapping[RuleKey, int]) -> audit.RulesByTag:
        """The rules that the switch holds by their tags; they are sorted anew only where they are others."""
        known = self._by_tag
        if known is not None and known[0] is held and known[1] is tags:
            return known[2]
        by_tag = in_steps(audit.by_tag(held, tags))
        self._by_tag = (held, tags, by_tag)
        return by_tag

    def _put_right(self) -> tuple[str | None, str | None]:
        """Put back what is missing, first what packets need to be forwarded at all."""
        self._held = None
        self._prepare()
        replies, gate = self._ask_for(audit.PIPELINE)
        found = self._rules_in(replies)
        there = frozenset(item.rule for item in found if item.rule is not None)
        wanted = self._base() if self._wanted is None else self._wanted
        urgent = Difference(frozenset(rule for rule in wanted if rule.job is None) - there, frozenset())
        first = transactions.change(self._channel, urgent, there, self._epoch)
        gate = gate and not openflow.shows_gate(replies)
        refusal = self.keep_gate() if gate else None
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
        # Without a plan nothing is deleted: after the controller's restart the plan may want just these rules.
        wanted = self._base() if self._wanted is None else self._wanted
        done = self._become(wanted, keep=self._wanted is None)
        if done.errors:
            # A switch that refuses what it needs is asked again.
            self._held = None
        return done

    def _become(self, wanted: frozenset[Rule], *, keep: bool = False) -> Changed:
        """Send the difference. Call with the lock held."""
        unknown = 0
        if self._held is None:
            self._held, unknown = self._read()
        before = in_steps(openflow.label(self._held, self._tags, wanted))
        change = in_steps(difference_in_steps(before, wanted))
        if keep:
            change = Difference(change.add, frozenset())
        # Until the switch has answered, what it holds is unknown: a timeout leaves it so, and it is read again.
        self._held = None
        self._changes += 1
        self._touch(change)
        outcome = transactions.change(self._channel, change, before, self._epoch)
        if outcome.done:
            if keep:
                self._held = change.add | in_steps(without(before, in_steps(by_key(change.add))))
            else:
                # What has no name now is not wanted, and gone.
                self._held, self._tags = wanted, _NO_TAGS
        else:
            self._restore(before)
        return Changed(outcome.sent, outcome.errors, change, unknown)

    def _restore(self, before: frozenset[Rule]) -> None:
        """What a refusing switch holds is believed only after reading it, and is made what it was."""
        found, _ = self._read()
        held = self._held = in_steps(openflow.label(found, self._tags, before))
        repair = in_steps(difference_in_steps(held, before))
        if repair:
            self._warn(f"switch {self._channel.dpid:016x} did not undo a refused change; restoring its rules")
            self._touch(repair)
            done = transactions.change(self._channel, repair, held, self._epoch).done
            self._held = before if done else None

    def _touch(self, change: Difference) -> None:
        """Have a look that goes on leave out these rules. Call before they are sent."""
        if self._touched is not None:
            self._touched.update(rule.key for rule in chain(change.add, change.remove))

    def _rules_in(self, replies: Iterable[Any]) -> list[openflow.HeldRule]:
        return openflow.read_rules(self._channel.dpid, in_turns(replies), self._channel.queue_numbers)

    def _read(self) -> tuple[frozenset[Rule], int]:
        """The rules of ours that the switch really holds; how many were deleted that no version of ours makes."""
        self._touched = None
        replies = self._ask(openflow.read_request(self._channel.datapath))
        found = self._rules_in(replies)
        strange = [item for item in found if item.rule is None]
        if strange:
            deletes = (openflow.delete_held(self._channel.datapath, item) for item in strange)
            self._channel.settle_many(deletes, len(strange))
        rules, self._tags = in_steps(openflow.rules_and_tags(found))
        return rules, len(strange)

    def _ask_for(self, part: audit.Part) -> tuple[list[Any], bool]:
        """The rules of a part as the switch tells them; and whether the gate should be among those of the pipeline."""
        gate = self._gate_is_due()
        mask = openflow.BOTH_MASK | part.mask
        replies = self._ask(openflow.read_request(self._channel.datapath, openflow.OWNER_COOKIE | part.value, mask))
        return replies, gate and self._gate_is_due()

    def _ask(self, request: Any) -> list[Any]:
        replies, refusals = self._channel.ask(request)
        if refusals:
            raise SwitchGoneError(f"switch {self._channel.dpid:016x} does not tell its rules: {refusals[0].reason}")
        return replies
