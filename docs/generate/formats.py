"""The list of the log formats that ship."""

from __future__ import annotations

from docs.generate.markdown import code, table
from host_reporter.formats import registry
from host_reporter.formats.preset import Kind, Preset

_KINDS = {
    Kind.LINES: "lines of text",
    Kind.CSV: "CSV",
    Kind.JSONL: "JSON lines",
    Kind.DOCUMENT: "a JSON document",
}


def reference() -> str:
    """Returns the Markdown."""
    presets = sorted((matcher.preset for matcher in registry.available().values()), key=lambda preset: preset.name)
    rows = ((code(preset.name), preset.title, _KINDS[preset.kind], _source(preset)) for preset in presets)
    return table(["format", "program", "what it writes", "where its format is shown"], rows)


def _source(preset: Preset) -> str:
    """Returns where the preset's format is documented."""
    if preset.name == registry.GENERAL:
        return "in no one place: many programs write so"
    if preset.source == "recorded":
        return "in a recorded run"
    return f"in the [public documentation]({preset.source})"
