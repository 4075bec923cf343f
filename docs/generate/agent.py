"""The reference of the agent's options."""

from __future__ import annotations

from docs.generate.sections import sections
from host_reporter.options import Options


def reference() -> str:
    """Returns the Markdown."""
    return sections(Options.model_json_schema(), word="option")
