"""``python -m docs.generate FOLDER``: write every generated reference into the folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate import agent, api, changelog, commands, formats, job_file, packets, policies, settings

REFERENCES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings.reference,
    "agent.md": agent.reference,
    "job-file.md": job_file.reference,
    "commands.md": commands.reference,
    "api.md": api.reference,
    "policies.md": policies.reference,
    "formats.md": formats.reference,
    "packets.md": packets.reference,
    "changelog.md": changelog.reference,
}
"""Maps the name of each file to what generates its text. The page that includes it has the same name."""


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, reference in REFERENCES.items():
        (folder / name).write_text(reference())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
