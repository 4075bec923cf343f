"""Manifests for Kubernetes, and the versions whose schemas they must satisfy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from tests.support.paths import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.30", "1.34", kubernetes_validate.latest_version().rpartition(".")[0])


class Manifests:
    """The documents of some files."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.documents: list[dict[str, Any]] = [
            found for path in files for found in yaml.safe_load_all(path.read_text())
        ]

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Returns the one document of a kind."""
        (found,) = (document for document in self.documents if document["kind"] == kind)
        return found
