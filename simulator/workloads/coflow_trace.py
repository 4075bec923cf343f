"""Coflow traces in the format of the coflow benchmark, such as the Facebook trace of M. Chowdhury et al.

The first line has two counts, ports and coflows. Then a line a coflow: its id, its arrival in milliseconds, the number
of mappers and their ports, the number of reducers and for each its port, a colon and the megabytes (2^20 bytes) that it
receives, in equal parts from the coflow's mappers. Ports count from 0, as in the Facebook trace. Arrivals may count
from any moment, as Unix times do: those of the workload count from the first.

Empty lines are passed over, and so is what follows a ``#`` at the beginning of a line or after a space. An id is a
number or a word. Reading is strict: whatever does not fit is an InputError with file, line and field; a file in another
format that is known by its structure is called by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import repeat, takewhile
from pathlib import Path

from controller.documents import text_file
from controller.documents.foreign_formats import COFLOW_TRACE, recognised
from controller.model import Demand, Host
from simulator.errors import InputError
from simulator.jobs import SimJob, Transfer, Workload

FORMAT = (
    "a line with two counts, PORTS COFLOWS, then a line a coflow, ID ARRIVAL_MS MAPPERS PORT ... REDUCERS "
    "PORT:MEGABYTES ..."
)
"""Errors describe the format in these words."""
COMMENT = "#"
MAX_ID = 255
MEGABYTE = 2.0**20
MILLISECOND = 1e-3
DEFAULT_PORT_RATE_BPS = 1e9
MAX_PORTS = 1_000_000
MAX_VALUE = 1e15
"""An arrival in milliseconds or a size in megabytes is at most this."""
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
_DECIMAL = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)


def read(path: Path) -> str:
    """The text of a trace; ``-`` is the standard input. Raises InputError."""
    try:
        return text_file.read(path, holds=f"a trace: {FORMAT}")
    except text_file.FileError as error:
        raise InputError(str(error)) from None


def parse(text: str, source: str, *, port_rate_bps: float = DEFAULT_PORT_RATE_BPS, offline: bool = False) -> Workload:
    """A trace's text as a workload: a job of one transfer a coflow, in the order of the file.

    A port is a host of that number with ``port_rate_bps`` (bit/s) each way. ``offline`` puts all arrivals at 0.
    ``source`` is what an error calls the file. Raises InputError.
    """
    try:
        return _parse(text, source, port_rate_bps, offline)
    except InputError:
        if (other_format := recognised(text, COFLOW_TRACE)) is None:
            raise
        raise InputError(
            f"{source}:1: this looks like {other_format}; trainyard sim reads coflow traces: {FORMAT}"
        ) from None


def _parse(text: str, source: str, port_rate_bps: float, offline: bool) -> Workload:
    written = [(number, content) for number, content in enumerate(text.split("\n"), start=1) if _holds_words(content)]
    head = _Line(source, *written[0]) if written else _Line(source, 1, "")
    rest = written[1:]
    ports, coflows = head.whole("ports"), head.whole("coflows")
    head.end()
    if not 1 <= ports <= MAX_PORTS:
        raise head.error("ports", f"is {ports}; it must be between 1 and {MAX_PORTS}")
    if coflows != len(rest):
        raise head.error("coflows", f"is {coflows}, but {len(rest)} lines of coflows follow; they must match")
    names = [str(port) for port in range(ports)]
    jobs: list[SimJob] = []
    arrivals: list[Decimal] = []
    first_line: dict[str, int] = {}
    for number, content in rest:
        line = _Line(source, number, content)
        job, arrival = _coflow(line, names)
        if job.id in first_line:
            raise line.error("id", f"{job.id} is given twice, first in line {first_line[job.id]}")
        first_line[job.id] = number
        jobs.append(job)
        arrivals.append(arrival)
    if not offline:
        # As decimals, for of a Unix time in milliseconds a float has no digit left behind the point.
        first = min(arrivals, default=Decimal())
        jobs = [
            replace(job, arrival=float(arrival - first) * MILLISECOND)
            for job, arrival in zip(jobs, arrivals, strict=True)
        ]
    hosts = {name: Host(name, ingress_bps=port_rate_bps, egress_bps=port_rate_bps) for name in names}
    return Workload(name=Path(source).name, hosts=hosts, jobs=tuple(jobs))


def _coflow(line: _Line, names: list[str]) -> tuple[SimJob, Decimal]:
    """A coflow that arrives at 0, and its arrival in milliseconds as the trace counts."""
    identity = line.identity("id")
    arrival = line.exact("arrival")
    mappers: dict[str, str] = {}
    for field in line.counted("mapper", "mappers"):
        line.once(field, names[line.port(field, len(names))], mappers)
    reducers: dict[str, str] = {}
    sizes: list[float] = []
    for field in line.counted("reducer", "reducers"):
        port, megabytes = line.reducer(field, len(names))
        line.once(field, names[port], reducers)
        sizes.append(megabytes * MEGABYTE)
    line.end()
    if not mappers and any(size > 0 for size in sizes):
        raise line.error("mappers", "is 0, but reducers receive bytes; somebody must send them")
    flows: list[Demand] = []
    for reducer, size in zip(reducers, sizes, strict=True):
        if size > 0:
            flows += map(Demand, mappers, repeat(reducer), repeat(size / len(mappers)))
    return SimJob(id=identity, lanes=((Transfer(tuple(flows)),),)), arrival


class _Line:
    """The words of one line, taken from left to right; each taking names the field that is due.

    A word that begins with ``#`` begins a comment, to the end of the line.
    """

    def __init__(self, source: str, number: int, content: str) -> None:
        self._source, self._number = source, number
        self._words = content.split()
        if COMMENT in content:
            self._words = list(takewhile(lambda word: not word.startswith(COMMENT), self._words))
        self._next = 0

    def error(self, field: str, problem: str) -> InputError:
        return InputError(f"{self._source}:{self._number}: {field}: {problem}")

    def identity(self, field: str) -> str:
        """A coflow's id: a number or a word."""
        word = self._word(field)
        if len(word) > MAX_ID or not word.isprintable():
            raise self.error(field, f"is {_shown(word)}; it must be a number or a word of up to {MAX_ID} characters")
        return word

    def once(self, field: str, port: str, known: dict[str, str]) -> None:
        """Note the port of a field among those ``known``; one that is there already is refused."""
        if (first := known.setdefault(port, field)) != field:
            kind = field.partition(" ")[0]
            raise self.error(field, f"port {port} is named twice, first as {first}; name each {kind} once")

    def whole(self, field: str) -> int:
        """A whole number of at least 0."""
        return self._to_whole(field, self._word(field))

    def exact(self, field: str) -> Decimal:
        """A number of at least 0, with all its digits."""
        word = self._word(field)
        value = self._to_decimal(field, word)
        # Of an exponent the float has all digits that matter, and no exponent is too large for it.
        return Decimal(value) if "e" in word.lower() else Decimal(word)

    def port(self, field: str, ports: int) -> int:
        """A port's number, from 0."""
        return self._to_port(field, self._word(field), ports)

    def reducer(self, field: str, ports: int) -> tuple[int, float]:
        """A port and megabytes."""
        word = self._word(field)
        port, colon, size = word.partition(":")
        if not colon:
            raise self.error(field, f"is {_shown(word)}; it must be PORT:MEGABYTES, such as 3:10.5")
        return self._to_port(f"{field} port", port, ports), self._to_decimal(f"{field} megabytes", size)

    def counted(self, singular: str, plural: str) -> Iterator[str]:
        """The name of each field of a list that is preceded by its length."""
        count = self.whole(plural)
        left = len(self._words) - self._next
        if count > left:
            raise self.error(plural, f"is {count}, but only {left} words follow in the line")
        for number in range(1, count + 1):
            yield f"{singular} {number}"

    def end(self) -> None:
        """Nothing may follow."""
        if self._next < len(self._words):
            left = len(self._words) - self._next
            raise self.error(
                f"word {self._next + 1}",
                f"{_shown(self._words[self._next])} and {left - 1} more stand after the last field; a count is too low",
            )

    def _word(self, field: str) -> str:
        if self._next >= len(self._words):
            raise self.error(field, "is missing; the line is too short")
        self._next += 1
        return self._words[self._next - 1]

    def _to_whole(self, field: str, word: str) -> int:
        if not _WHOLE.fullmatch(word):
            raise self.error(field, f"is {_shown(word)}; it must be a whole number of at least 0")
        return int(word)

    def _to_decimal(self, field: str, word: str) -> float:
        if not _DECIMAL.fullmatch(word) or float(word) > MAX_VALUE:
            raise self.error(field, f"is {_shown(word)}; it must be a number from 0 to {MAX_VALUE:g}")
        return float(word)

    def _to_port(self, field: str, word: str, ports: int) -> int:
        port = self._to_whole(field, word)
        if port >= ports:
            raise self.error(field, f"is {port}; with {ports} ports it must be between 0 and {ports - 1}")
        return port


def _holds_words(content: str) -> bool:
    """Whether there is anything but a comment in a line."""
    words = content.lstrip()
    return bool(words) and not words.startswith(COMMENT)


def _shown(word: str) -> str:
    return repr(word if len(word) <= 20 else word[:20] + "...")
