"""A real controller whose tokens file has every role, and callers of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controller.access.tokens.hashes import hashed, new_token
from evaluation.bench.support.api_client import Controller

LINES = {
    "night": "role: operator",
    "board": "role: viewer",
    "vision": "role: tenant, users: [ann, bob], prefix: vision-, max_jobs: 3, max_weight: 2",
    "speech": "role: tenant, users: [cem]",
    "h1": "role: host",
    "rack": "role: enrol",
}
ROLES = {"operator": "night", "viewer": "board", "tenant": "vision", "host": "h1", "enrol": "rack"}
"""Maps each role to a name with it."""


class RolesYard(Controller):
    """``tokens`` has the token of each name. ``call`` takes a token, as that of ``Controller`` does."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.tokens = {name: new_token() for name in LINES}
        self.tokens_file = folder / "tokens.yaml"
        self.write_tokens(*LINES)
        api = settings.pop("api", {}) | {"tokens_file": str(self.tokens_file)}
        super().__init__(folder, token=False, api=api, **settings)
        self.session.headers["Authorization"] = f"Bearer {self.tokens['night']}"

    def keep(self, *names: str) -> None:
        """Let the tokens file have the lines of these names only."""
        self.write_tokens(*names)
        answer = self.by("night", "POST", "/v1/reload")
        assert answer.ok, answer.text

    def write_tokens(self, *names: str) -> None:
        """Write the tokens file with the lines of these names only."""
        lines = (f'{name}: {{{LINES[name]}, hash: "{hashed(self.tokens[name])}"}}\n' for name in names)
        self.tokens_file.write_text("".join(lines))

    def by(self, name: str, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Make a call with the token of a name."""
        return self.call(method, path, body, self.tokens[name], **options)
