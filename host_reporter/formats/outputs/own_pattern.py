"""A pattern that stands in a job file, for lines that no preset knows. Pure."""

from __future__ import annotations

from host_reporter.formats.matching import CompiledPattern, Matcher, PatternError
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.preset import COUNTERS, Pattern, Preset
from host_reporter.formats.recognition import Recognition

PATTERN = "the job's pattern"
"""The name of the format of such a log."""


def check(pattern: str | None, end_pattern: str | None) -> None:
    """Raises PatternError for a pattern that cannot serve; the message begins with the field's name."""
    if pattern is not None and not CompiledPattern(Pattern(regex=pattern)).groups & COUNTERS:
        raise PatternError(
            "pattern: it needs a named group for the iteration, as in (?P<iteration>\\d+), or epoch or step"
        )
    if end_pattern is not None:
        CompiledPattern(Pattern(regex=end_pattern), "end_pattern")


def pattern_reader(pattern: str, declared: Declared, end_pattern: str | None = None) -> Interpreter:
    """Returns a reader of lines by the pattern. The value of its group is the metric, whatever its name."""
    preset = Preset(name=PATTERN, title="", source="", patterns=(Pattern(regex=pattern, metric=declared.metric),))
    return Interpreter(Recognition.declared(Matcher(preset)), declared, raw=True, end_pattern=end_pattern)
