"""Settings from a text, as the controller reads them from its file."""

from __future__ import annotations

from pathlib import Path

from controller.config.config import Config, load_config


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    return load_config(path)
