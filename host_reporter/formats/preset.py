"""What a log format is: a declaration of a few lines, which ``matching`` reads lines by. Pure.

A preset is a constant in a module of its own, and is found by an entry point of the group ``trainyard.formats``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from host_reporter.formats.events import Direction
from host_reporter.formats.reading import Reading

GROUPS: Mapping[str, str] = {
    "iteration": "How many iterations of the run are done.",
    "epoch": "The number of the epoch. The first one that is seen counts as the first of the run.",
    "epochs": "How many epochs the run has.",
    "step": "The step: in the epoch, where epoch or of is known, else in the run.",
    "of": "How many steps one epoch has.",
    "total": "How many iterations the run has.",
    "more": "How many iterations were done since the line before.",
    "metric": "The value of the metric.",
    "loss": "The loss. It is the metric of a pattern without the group metric.",
    "time": "When: seconds since the Unix epoch, or a date as in ISO 8601, which is local time unless it names a zone. "
    "Without it the time in front of the line counts, if there is one, else that at which the agent reads the line.",
}
"""Names the groups that a pattern may have, with their meaning."""

COUNTERS = frozenset({"iteration", "epoch", "step", "more"})
"""The groups that say where a run is."""


class Kind(StrEnum):
    """How bytes become lines or records."""

    LINES = "lines"
    """Lines of text. With ``fields``, lines that hold a dict in Python's or JSON's notation, too."""
    CSV = "csv"
    """A header of names, and rows. Commas, semicolons or tabs separate them."""
    JSONL = "jsonl"
    """A JSON object on each line."""
    DOCUMENT = "document"
    """One JSON document, which its writer replaces by a longer one. It has a list of records."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A regular expression with named groups of GROUPS, which is searched in each line.

    ``pairs``: the text behind the match (before it, too, with "line") is searched for ``name: value`` and
    ``name=value``; those whose names have a direction are metrics of the line.
    """

    regex: str
    metric: str | None = None
    """The name of the metric in the group ``metric``. Without it: the words before it in the line."""
    direction: Direction | None = None
    """The direction of that metric. Without it: that of its name."""
    validation: bool = False
    """Whether the metrics of such a line are of the validation; their names get ``validation`` in front, if need be."""
    pairs: bool = False
    """Whether to search the line for pairs of names and values."""
    ended: bool = False
    """Whether such a line ends the run."""
    diverged: bool = False
    """Whether such a line says that the run has diverged."""
    begun: bool = False
    """Whether the program writes such a line when it begins. If it counts from near its start then, a new run begins;
    else the run goes on from a checkpoint. The line needs no groups."""
    lasting: bool = False
    """Whether a metric of the validation stands in all lines until the next validation: only a new value counts."""
    add: Mapping[str, float] = field(default_factory=dict)
    """What is added to the numbers of groups: ``{"iteration": 1}`` where the first step has the number 0."""


Names = str | tuple[str, ...]
"""The name of a field, or several of which the first that is there counts. Inner objects have dotted names: a.b."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Which fields of a record mean what. Only a record with all fields of ``needs`` is read."""

    needs: tuple[str, ...] = ()
    iteration: Names = ()
    epoch: Names = ()
    epochs: Names = ()
    step: Names = ()
    of: Names = ()
    total: Names = ()
    more: Names = ()
    time: Names = ()
    metrics: tuple[str, ...] | None = None
    """The fields that are metrics, the first one first. None: all whose names have a direction."""
    validation: bool = False
    """Whether the metrics of such a record are of the validation; their names get ``validation`` in front."""
    may_be_late: bool = False
    """Whether such a line may be in the file later than the steps of other lines after it, because it is written in
    blocks. Its epoch is the share of the epochs that was done, which then gives its step."""
    add: Mapping[str, float] = field(default_factory=dict)
    """What is added to the numbers of fields: ``{"iteration": 1}`` where the first step has the number 0."""
    shared: tuple[str, ...] = ()
    """Fields of a document itself that each record of its list has, too. The list's own name counts as a field of each
    record, so that ``needs`` can name it."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One log format.

    It is recognised for sure by a line that ``marks`` matches; without ``marks`` by a line that one of its patterns
    matches, or by a record that has the fields that ``fields`` needs.
    """

    name: str
    """What a job file calls it."""
    title: str
    """The program, for people."""
    source: str
    """The address of the public page that documents the format, or "recorded": its sample is of a real run. The
    general preset, which is of no one program, has none."""
    kind: Kind = Kind.LINES
    marks: str | None = None
    """A regular expression that matches some line of each such log, and no line of others."""
    patterns: tuple[Pattern, ...] = ()
    """They are tried in this order; the first one that matches reads the line."""
    fields: Fields | tuple[Fields, ...] | None = None
    """Which fields of a record mean what. Of several, the first one counts whose ``needs`` the record has."""
    directions: Mapping[str, Direction] = field(default_factory=dict)
    """The directions of metrics whose names do not say it."""
    validates: bool = True
    """Whether a validation's first metric takes the place of one of the training. A guess may take a word wrongly."""
    columns: Callable[[tuple[str, ...]], bool] | None = None
    """Returns whether a table with these columns is of this preset, where their names alone do not prove it."""
    files: tuple[str, ...] = ()
    """Names that such files have, as shell patterns: ``trainer_state.json``."""
    beats: tuple[str, ...] = ()
    """The presets that this one replaces, although they match for sure: programs that this one is built on."""
    read: Callable[[str], Reading | None] | None = None
    """Reads a line in the place of the patterns, for a format that they cannot say. It must need linear time."""
