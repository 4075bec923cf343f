"""What stands in front of a line that a training prints, and is none of it: launchers' labels, dates, colours. Pure."""

from __future__ import annotations

import re
import string
from typing import NamedTuple

from host_reporter.formats.numbers import moment
from host_reporter.formats.prefixes.containers import ContainerLines
from host_reporter.formats.prefixes.loggers import alone, behind_date

MAX_PREFIXES = 4
"""Take at most so many prefixes from a line."""

_INNER_RANKS = 1 << 20
"""A launcher inside another one has fewer ranks than this: srun --label in front of torchrun's own labels."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|\][^\x07\x1b]{0,500}+(?:\x07|\x1b\\)|[@-Z\\^_])")
_UP = re.compile(r"\x1b\[\d{0,4}A")
"""The cursor goes up: what stands before it is of a line below, such as a bar inside another one."""
_CONTROLS = re.compile(r"[\x00-\x07\x0b-\x1f\x7f]")

_RANKS = (
    # torchrun: [rank0]: and, with --tee, [default0]: (the role's name and the local rank).
    re.compile(
        r"\[(?!(?i:ep|epoch|step|iter|iteration|batch|train|val|test)[_-]?\d)[A-Za-z_][A-Za-z_-]{0,40}(\d{1,6})\]:\s?"
    ),
    # mpirun --tag-output: [1,0]<stdout>: (the job and the rank); horovodrun: [0]<stdout>:
    re.compile(r"\[(?:(?:[\w.-]{1,100}@)?\d{1,6},)?(\d{1,6})\](?:\[[^\]\n]{0,100}\])?<std(?:out|err|diag)>:\s?"),
    # srun --label, which no other label stands in front of.
    re.compile(r"\s{0,6}(\d{1,6}): "),
)
_INNER = _RANKS[:-1]
_BRACKETS = (re.compile(r"\[(\d{1,6})\] "), *_RANKS)
"""mpiexec -prepend-rank of MPICH and Intel MPI, too. Elsewhere ``[10] `` is a step, as XGBoost writes it."""
_HOST = re.compile(
    r"(?!(?i:ep|epoch|step|iter|iteration|batch|train|val|valid|eval|test)[_-]?\d)"
    r"[a-z][a-z-]{0,40}\d[a-z0-9.-]{0,60}:\s(?!\s{0,8}[-+]?[\d.]{1,20}%?(?:[\s,;]|$))"
)
"""What pdsh, which DeepSpeed starts other hosts' processes with, puts before a line. A name of a metric has a value."""
_ACTOR = re.compile(r"\((?:[\w.<>-]{1,80} )?pid=\d{1,9}(?:, ip=[\w.:]{1,45})?\)\s{1,4}")
"""What Ray puts before a worker's line."""
_REPEATED = re.compile(r" \[repeated \d{1,9}x across cluster\][^\n]{0,200}$")

_DAY = r"(?P<day>\d{4}[-/]\d\d[-/]\d\d)"
_HOUR = r"(?P<hour>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
_STAMPS = (
    re.compile(rf"[\[(]?{_DAY}[ T]{_HOUR}(?P<zone>Z|[+-]\d\d:?\d\d)?[\])]?[:,|]?\s{{0,4}}"),
    re.compile(rf"[\[(]?(?P<month>\d\d/\d\d)/(?P<year>\d{{4}})[ T]{_HOUR}[\])]?[:,|]?\s{{0,4}}"),
    re.compile(r"[\[(]?(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})[\])]?:?\s{0,4}"),
    # syslog's and journalctl's, and that of ts.
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]{1,64} [\w./@-]{1,64}\[\d{1,9}\]: )?"),
    # glog's and Abseil's, which have no year.
    re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s{1,8}\d{1,19} [\w./-]{1,100}:\d{1,6}\] "),
    re.compile(r"[\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?[\])]? (?:[|-] )?"),
)


_BEGINNINGS = frozenset("[( 0123456789" + string.ascii_letters)
"""What the above begin with. Other lines are not looked at any further."""


class Cleaned(NamedTuple):
    """A line as the training wrote it. ``raw`` has launchers' labels and dates in front, ``text`` does not."""

    text: str
    raw: str
    time: float | None = None
    """The date in front of it, in seconds since the epoch."""
    is_zoned: bool = False
    """Whether the date names its zone. One that does not is read as local time, which a container's may not be."""
    rank: int | None = None
    """The rank that wrote it, where a label says so."""


class Cleaner:
    """Cleans the lines of one file. ``ranks_in_brackets``: a launcher puts ``[0] `` before the lines of rank 0."""

    def __init__(self, *, ranks_in_brackets: bool = False) -> None:
        self._container = ContainerLines()
        self._labels = _BRACKETS if ranks_in_brackets else _RANKS

    def feed(self, line: str) -> Cleaned | None:
        """Returns the cleaned line; None: a part of a line, whose rest is to come."""
        contained = self._container.feed(line)
        if contained is None:
            return None
        raw = plain(contained.text)
        cleaned = _without_prefixes(raw, self._labels)
        return cleaned if contained.time is None else cleaned._replace(time=contained.time, is_zoned=True)

    def reset(self) -> None:
        """The file began anew."""
        self._container.reset()


def plain(text: str) -> str:
    """Returns what a terminal would show in the end: without colours, with backspaces carried out."""
    if "\x1b" in text:
        text = _UP.split(text)[-1]
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = text.rstrip("\r").rpartition("\r")[2]
    if "\b" in text:
        text = _overwritten(text)
    return _CONTROLS.sub("", text)


def _overwritten(text: str) -> str:
    """Returns the text as it stands where each backspace goes back by one character, and what follows overwrites it."""
    shown: list[str] = []
    place = 0
    for char in text:
        if char == "\b":
            place = max(0, place - 1)
            continue
        shown[place : place + 1] = [char]
        place += 1
    return "".join(shown)


def _without_prefixes(raw: str, labels: tuple[re.Pattern[str], ...]) -> Cleaned:
    if raw[:1] not in _BEGINNINGS:
        return Cleaned(raw, raw)
    text, time, rank, is_zoned = raw, None, None, False
    if (host := _HOST.match(text)) is not None:
        text = text[host.end() :]
    for _ in range(MAX_PREFIXES):
        before = text
        if (label := _first(labels if rank is None else _INNER, text)) is not None:
            rank, text = int(label[1]) + (rank or 0) * _INNER_RANKS, text[label.end() :]
        if (actor := _ACTOR.match(text)) is not None:
            text = _REPEATED.sub("", text[actor.end() :])
        text = alone(text)
        bare = text.lstrip(" ")
        if (stamp := _first(_STAMPS, bare)) is not None:
            text = behind_date(bare[stamp.end() :])
            if time is None:
                time, is_zoned = _when(stamp), bool(stamp.groupdict().get("zone"))
        if text == before or not text:
            break
    return Cleaned(text, raw, time, is_zoned, rank)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.match(text)) is not None), None)


def _when(stamp: re.Match[str]) -> float | None:
    parts = stamp.groupdict()
    if parts.get("day") is not None:
        return moment(f"{parts['day']} {_six(parts['hour'])}{parts['zone'] or ''}")
    if parts.get("year") is not None:
        month, _, day = parts["month"].partition("/")
        return moment(f"{parts['year']}-{month}-{day} {_six(parts['hour'])}")
    return None


def _six(hour: str) -> str:
    """Returns a time of day with at most six digits of a second, which is what Python's dates hold."""
    whole, _, part = hour.replace(",", ".").partition(".")
    return f"{whole}.{part[:6].ljust(6, '0')}" if part else whole
