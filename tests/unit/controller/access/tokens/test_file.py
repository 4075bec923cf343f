"""The tokens file on the disk: what is right, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.access.tokens.file import read_tokens
from controller.access.tokens.hashes import hashed, new_token
from controller.documents.mapping_file import ConfigError


def line(name: str, token: str, role: str = "viewer") -> str:
    return f'{name}: {{role: {role}, hash: "{hashed(token)}"}}\n'


def test_an_empty_file_is_right(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text("")
    assert len(read_tokens(path, [])) == 0


def test_a_wrong_file_is_refused_with_its_lines_and_without_its_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tokens(path, [])
    token = new_token()
    path.write_text(line("a", token) + line("a", token))
    with pytest.raises(ConfigError, match=r"tokens.yaml:2: "):
        read_tokens(path, [])
    path.write_text(line("a", token) + "\n" + line("h9", token, "host"))
    with pytest.raises(ConfigError, match=r"tokens.yaml:3: h9: h9 is no host in the settings"):
        read_tokens(path, ["h1"])
    path.write_text(line("a", token) + f"b: {token}\n")
    with pytest.raises(ConfigError, match=r"tokens.yaml:2: b: it must be a mapping") as caught:
        read_tokens(path, [])
    assert token not in str(caught.value)
