"""How to notice that somebody else changed a switch's rules: what to ask at each look, and what the answers mean.

Pure. A look asks for the number of all rules of ours and for some of them in full, in turn, so that what is
read at a look stays the same however many rules there are; going through the known rules still costs more.
The pipeline's own rules come first: without them packets are lost, while a job's
rule that is gone costs only the job's place in the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from controller.dataplane.openflow import HeldRule, Place, job_tag
from controller.rules.compiler import Rule

COMPARED = 64
"""About so many rules are read in full at one look; reading one takes the controller about 0.15 ms."""

MOST_PIPELINE = 256
"""Of a pipeline with more rules, as big fabrics have it, only the number is compared: it cannot be read in parts."""

CROWD = 4
"""So many switches are read at each look; of more, each is read as much more seldom, so that all cost the same."""

TAG_BITS = 0xFFFFFFFF


class Part(NamedTuple):
    """Some of a switch's rules: those whose job's tag, under ``mask``, is ``value``. The gate's tag is 0."""

    value: int
    mask: int

    @property
    def has_gate(self) -> bool:
        """Whether the gate is one of them."""
        return self.value == 0


ALL = Part(0, 0)
PIPELINE = Part(0, TAG_BITS)
"""The rules of no job: what forwards packets, and what is the same whatever the plan."""


def parts(turn: int, pipeline: int, jobs: int, *, switches: int = 1) -> tuple[Part, ...]:
    """What to read at the look number ``turn`` of a switch, one of ``switches``, with so many rules of no job, of jobs.

    The pipeline is read at each look as long as it is small. The jobs' rules are read in as many parts as are needed,
    one a look: they are told apart by their tags, which are odd.
    """
    every = 1 + switches // (CROWD + 1)
    if turn % every:
        return ()
    turn //= every
    if pipeline + jobs <= COMPARED:
        return (ALL,)
    found = []
    if pipeline <= MOST_PIPELINE and turn % (1 + pipeline // COMPARED) == 0:
        found.append(PIPELINE)
    if jobs:
        mask = (1 << (jobs // COMPARED).bit_length()) - 1
        found.append(Part((turn & mask) << 1 | 1, mask << 1 | 1))
    return tuple(found)


def tag_of(rule: Rule, tags: Mapping[Place, int]) -> int:
    """The tag in the cookie of a rule that a switch holds; ``tags`` are of rules whose job has no name yet."""
    return job_tag(rule.job) if rule.job is not None or not tags else tags.get(rule.key, 0)


def agrees(part: Part, held: Iterable[Rule], tags: Mapping[Place, int], found: Iterable[HeldRule]) -> bool:
    """Whether the rules of a part that were read are those that the switch is known to hold."""
    known = {
        (rule.key, rule.actions, rule.goto, tag)
        for rule in held
        for tag in (tag_of(rule, tags),)
        if tag & part.mask == part.value
    }
    read = set()
    for item in found:
        if item.rule is None:
            return False
        read.add((item.rule.key, item.rule.actions, item.rule.goto, item.tag))
    return known == read


def in_words(put_back: Collection[Rule], deleted: int, *, gate: bool) -> str | None:
    """What was done to a switch whose rules somebody else had changed; None: nothing was."""
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
    """What was put right on one switch after somebody else had changed it, and when to say so.

    The first repair is said at once. Those of the minute after it are said in one line at that minute's end, so that
    somebody who changes the switch all the time does not fill the log. Times are seconds of one steady clock.
    """

    SAY_SECONDS = 60.0

    def __init__(self) -> None:
        self.count = 0
        self._last: tuple[str, float] | None = None
        self._said_at = -self.SAY_SECONDS
        self._unsaid = 0

    def note(self, what: str, now: float) -> str | None:
        """Note a repair. Returns what is to be said of it now, if anything."""
        self.count += 1
        self._last = (what, now)
        self._unsaid += 1
        return self.due(now)

    def due(self, now: float) -> str | None:
        """What is to be said now of repairs that were not said yet, if anything."""
        if not self._unsaid or self._last is None or now - self._said_at < self.SAY_SECONDS:
            return None
        more, self._unsaid, self._said_at = self._unsaid - 1, 0, now
        return self._last[0] if not more else f"{self._last[0]}; {more} more times within a minute"

    def problem(self, now: float) -> str | None:
        """What an operator should know of repairs within the last minute; None: there were none."""
        if self._last is None or now - self._last[1] >= self.SAY_SECONDS:
            return None
        what, when = self._last
        return f"somebody else changed it {now - when:.0f} s ago: {what}"
