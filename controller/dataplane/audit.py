"""How to notice that somebody else changed a switch's rules: what to request at each look, and what the answers mean.

Pure. A look requests the number of all rules of ours, and a part of them in full, each part in turn. So the size of an
answer does not depend on the number of rules; only the comparison with the known rules does. The pipeline's rules come
first: without them packets are lost, while a missing rule of a job costs only the job's class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from controller.dataplane.openflow import HeldRule, job_tag
from controller.pieces import Steps
from controller.rules.rule import PIECE, Rule, RuleKey

COMPARED = 64
"""Bounds the rules that are read in full at one look, approximately. Each takes the controller about 0.15 ms."""

MOST_PIPELINE = 256
"""Of a pipeline with more rules, as in large fabrics, only the number is compared: it cannot be read in parts."""

CROWD = 4
"""Up to so many switches are read at each look.

With more, each is read less often, so that the total stays the same.
"""

TAG_BITS = 0xFFFFFFFF

RulesByTag = Mapping[int, Sequence[Rule]]
"""The rules of a switch by their job tags; 0 is the tag of those of no job."""


class Part(NamedTuple):
    """The rules of a switch whose job tag, under ``mask``, is ``value``. The gate's tag is 0."""

    value: int
    mask: int

    @property
    def has_gate(self) -> bool:
        """Whether the gate belongs to this part."""
        return self.value == 0


ALL = Part(0, 0)
PIPELINE = Part(0, TAG_BITS)
"""Selects the rules of no job: those that forward packets, and those that do not depend on the plan."""


def parts(turn: int, pipeline: int, jobs: int, *, switches: int = 1) -> tuple[Part, ...]:
    """Returns what to read at look number ``turn`` of one of ``switches`` switches.

    The switch has ``pipeline`` rules of no job and ``jobs`` rules of jobs. A small pipeline is read at each look. The
    jobs' rules are read in as many parts as needed, one a look; their tags, which are odd, select the part.
    """
    every = 1 + switches // (CROWD + 1)
    if turn % every:
        return ()
    turn //= every
    if pipeline + jobs <= COMPARED:
        return (ALL,)
    chosen = []
    if pipeline <= MOST_PIPELINE and turn % (1 + pipeline // COMPARED) == 0:
        chosen.append(PIPELINE)
    if jobs:
        mask = (1 << (jobs // COMPARED).bit_length()) - 1
        chosen.append(Part((turn & mask) << 1 | 1, mask << 1 | 1))
    return tuple(chosen)


def tag_of(rule: Rule, tags: Mapping[RuleKey, int]) -> int:
    """Returns the job tag in the cookie of a rule that a switch holds.

    ``tags`` has those of rules without a job name.
    """
    return job_tag(rule.job) if rule.job is not None or not tags else tags.get(rule.key, 0)


def by_tag(held: Iterable[Rule], tags: Mapping[RuleKey, int]) -> Steps[RulesByTag]:
    """Returns the rules that a switch holds, by their job tags; see ``tag_of``. Yields where others may go on."""
    found: dict[int, list[Rule]] = {}
    for number, rule in enumerate(held, 1):
        found.setdefault(tag_of(rule, tags), []).append(rule)
        if number % PIECE == 0:
            yield
    return found


def agrees(
    part: Part, held: RulesByTag, answers: Iterable[HeldRule], touched: Container[RuleKey] = frozenset()
) -> bool:
    """Returns whether the ``answers`` for a part are the rules that the switch is known to hold.

    Rules at ``touched`` do not count: these were changed since the switch was asked.
    """
    known = {
        (rule.key, rule.actions, rule.goto, tag)
        for tag, rules in held.items()
        if tag & part.mask == part.value
        for rule in rules
    }
    read = set()
    for item in answers:
        if item.rule is None:
            return False
        read.add((item.rule.key, item.rule.actions, item.rule.goto, item.tag))
    return all(key in touched for key, *_ in known ^ read)


def in_words(put_back: Collection[Rule], deleted: int, *, gate: bool) -> str | None:
    """Returns a text on how a switch's rules were corrected, or None if nothing was changed."""
    by_table = Counter(rule.table for rule in put_back)
    texts = []
    if put_back:
        where = ", ".join(f"{count} in table {table.value}" for table, count in sorted(by_table.items()))
        texts.append(
            f"{_rules(len(put_back))} that had been deleted or changed {_were(len(put_back))} put back ({where})"
        )
    if deleted:
        texts.append(f"{_rules(deleted)} with Trainyard's cookie that Trainyard had not made {_were(deleted)} deleted")
    if gate:
        texts.append("the gate had been deleted or changed and was opened again")
    return "; ".join(texts) or None


def _rules(count: int) -> str:
    return f"{count} rule{'s' if count != 1 else ''}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


class Repairs:
    """The corrections of one switch after somebody else had changed it, and when to log them.

    The first correction is logged at once. Those of the following minute are logged in one line at its end, so that
    continuous changes do not fill the log. Times are seconds of one monotonic clock.
    """

    SAY_SECONDS = 60.0

    def __init__(self) -> None:
        self.count = 0
        self._last: tuple[str, float] | None = None
        self._said_at = -self.SAY_SECONDS
        self._unsaid = 0

    def note(self, what: str, now: float) -> str | None:
        """Note a correction. Returns the text to log now, if there is one."""
        self.count += 1
        self._last = (what, now)
        self._unsaid += 1
        return self.due(now)

    def due(self, now: float) -> str | None:
        """Returns the text to log now of corrections that were not logged yet, if there are any."""
        if not self._unsaid or self._last is None or now - self._said_at < self.SAY_SECONDS:
            return None
        more, self._unsaid, self._said_at = self._unsaid - 1, 0, now
        return self._last[0] if not more else f"{self._last[0]}; {more} more times within a minute"

    def problem(self, now: float) -> str | None:
        """Returns the problem to show for corrections within the last minute, or None."""
        if self._last is None or now - self._last[1] >= self.SAY_SECONDS:
            return None
        what, when = self._last
        return f"somebody else changed it {now - when:.0f} s ago: {what}"
