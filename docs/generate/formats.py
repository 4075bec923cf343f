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
    rows = ((code(preset.name), preset.title, _KINDS[preset.kind], _sample(preset)) for preset in presets)
    return table(["format", "program", "what it writes", "the sample of its test"], rows)


def _sample(preset: Preset) -> str:
    """Returns where the preset's sample comes from."""
    if preset.name == registry.GENERAL:
        return "written as many programs write"
    if preset.source == "recorded":
        return "recorded of a real run"
    return f"written by the [public documentation]({preset.source})"
