"""The table of what becomes of each kind of packet, which the tests trace through real switches and hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, starmap
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from docs.generate.markdown import code, heading, table

FILE = Path(__file__).resolve().parents[2] / "tests" / "data" / "packets.yaml"

HOSTS = "hosts"
COMBINATIONS: Mapping[str, str] = {
    HOSTS: "hosts",
    "switches-flows": "switches by flows",
    "both-flows": "switches by flows, and hosts",
    "switches-classes": "switches by DSCPs of classes",
    "both-classes": "switches by DSCPs of classes, and hosts",
    "switches-dscp": "switches by DSCPs of jobs",
    "both-dscp": "switches by DSCPs of jobs, and hosts",
}
"""Maps each combination of who enforces and how a switch knows a job to its title. Hosts alone know jobs by flows."""

_QUEUES = {"first": "class 0", "job": "job's class", "last": "last class", "other": "other traffic"}
_DSCPS = {
    "kept": "as sent",
    "job": "of the job's class",
    "ack": "of packets without data",
    "zero": "0",
    "fill": "of this class in place of 0 or one of Trainyard's, else as sent",
}
_OWN_DSCPS = _DSCPS | {"job": "of the job", "fill": "of the job in place of 0 or one of Trainyard's, else as sent"}
"""The words for where jobs have DSCPs for their life."""
_FAMILIES: Mapping[Any, tuple[int, ...]] = {"both": (4, 6), 4: (4,), 6: (6,), "none": ()}


class Cell(NamedTuple):
    """The queue of a packet at the switch, None where no switch enforces, and its DSCP behind whatever enforces."""

    queue: str | None
    dscp: str


class Place(NamedTuple):
    """What becomes of a packet: a sentence, and a cell for each combination."""

    what: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of packet between some hosts. ``families`` is empty for packets that are not IP."""

    kind: str
    what: str
    packet: str
    between: str
    place: str
    families: tuple[int, ...]
    dscp: int = 0
    ecn: int = 0
    tags: tuple[int, ...] = ()


class Packets(NamedTuple):
    """The whole table. ``between`` says who sends to whom."""

    places: Mapping[str, Place]
    between: Mapping[str, str]
    rows: tuple[Row, ...]


def read(file: Path = FILE) -> Packets:
    """Returns the table. Raises KeyError, TypeError or ValueError where the file is wrong."""
    document = yaml.safe_load(file.read_text())
    places = {name: _place(place) for name, place in document["places"].items()}
    rows = tuple(_row(row) for row in document["rows"])
    unknown = {row.place for row in rows} - places.keys() | {row.between for row in rows} - document["between"].keys()
    if unknown:
        raise ValueError(f"{file}: nothing in places or between is called {', '.join(sorted(unknown))}")
    return Packets(places, document["between"], rows)


def _place(place: dict[str, Any]) -> Place:
    cells = {name: _cell(name, place[name]) for name in COMBINATIONS}
    return Place(place["what"], cells)


def _cell(combination: str, value: Any) -> Cell:
    queue, dscp = (None, value) if combination == HOSTS else value
    if (queue is not None and queue not in _QUEUES) or dscp not in _DSCPS:
        raise ValueError(f"{value} is neither a queue ({', '.join(_QUEUES)}) nor a DSCP ({', '.join(_DSCPS)})")
    return Cell(queue, dscp)


def _row(row: dict[str, Any]) -> Row:
    values = row | {"families": _FAMILIES[row["families"]], "tags": tuple(row.get("tags", ()))}
    return Row(**values)


def cases(row: Row) -> tuple[tuple[str, int | None], ...]:
    """Returns the name of each case of a row and its IP version: one for each family, or one that is not IP."""
    if not row.families:
        return ((row.kind, None),)
    return tuple((row.kind if family == 4 else f"{row.kind}/ipv6", family) for family in row.families)


def reference() -> str:
    """Returns the Markdown."""
    packets = read()
    return _places(packets) + _between(packets) + _rows(packets)


def _places(packets: Packets) -> str:
    rows = ([code(name), place.what, *starmap(_shown, place.cells.items())] for name, place in packets.places.items())
    text = "The queue at the switch, then the DSCP behind it:\n\n"
    return heading(2, "Places", "places") + text + table(["place", "packets", *COMBINATIONS.values()], rows)


def _shown(combination: str, cell: Cell) -> str:
    if cell.queue is None:
        return f"DSCP {_DSCPS[cell.dscp]}"
    words = _OWN_DSCPS if combination.endswith("-dscp") else _DSCPS
    return f"{_QUEUES[cell.queue]}; DSCP {words[cell.dscp]}"


def _between(packets: Packets) -> str:
    rows = ([name, text] for name, text in packets.between.items())
    return heading(2, "Who sends to whom", "between") + table(["between", "meaning"], rows)


def _rows(packets: Packets) -> str:
    text = heading(2, "Kinds of packets", "kinds")
    for place, rows in groupby(sorted(packets.rows, key=lambda row: list(packets.places).index(row.place)), _place_of):
        text += heading(3, code(place), f"place-{place}") + table(
            ["packet", "between", "IP", "DSCP sent"],
            ([row.what, row.between, _versions(row), _sent(row)] for row in rows),
        )
    return text


def _place_of(row: Row) -> str:
    return row.place


def _versions(row: Row) -> str:
    return ", ".join(f"IPv{family}" for family in row.families) or "no IP"


def _sent(row: Row) -> str:
    return str(row.dscp) if row.families else ""
