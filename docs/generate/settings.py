"""The reference of the controller's settings."""

from __future__ import annotations

from controller.config.config import Config
from docs.generate.sections import sections


def reference() -> str:
    """Returns the Markdown."""
    return sections(Config.model_json_schema(), word="setting")
