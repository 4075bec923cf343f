"""``python -m tests.golden [NAME ...]``: run the scenarios again and write what they say."""

from __future__ import annotations

import json
import sys

from tests.golden import run, scenarios, text

for path in scenarios():
    if len(sys.argv) > 1 and path.stem not in sys.argv[1:]:
        continue
    before = path.read_text()
    command = json.loads(before)["command"]
    after = text(command, run(command))
    path.write_text(after)
    sys.stdout.write(f"{path.stem}: {'as before' if after == before else 'changed'}\n")
