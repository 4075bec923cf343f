"""Where the checkout is, and the folders of it that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
SUPPORT = ROOT / "tests" / "support"
DATA = ROOT / "tests" / "data"
