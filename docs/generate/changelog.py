"""The page of changes: CHANGELOG.md, with its links as they are inside docs/."""

from __future__ import annotations

from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"


def reference() -> str:
    """Returns the Markdown."""
    return CHANGELOG.read_text().replace("](docs/", "](")
