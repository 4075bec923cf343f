"""The tokens file on the disk: read at the start, when it has changed, and when it is wrong."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from controller.access.tokens.file import TokensFile, read_tokens
from controller.access.tokens.hashes import hashed, new_token
from controller.documents.mapping_file import ConfigError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def line(name: str, token: str, role: str = "viewer") -> str:
    return f'{name}: {{role: {role}, hash: "{hashed(token)}"}}\n'


def knows(file: TokensFile, token: str) -> bool:
    return file.table().of_token(token.encode(), 0.0) is not None


def test_a_token_ends_when_its_line_is_removed(tmp_path: Path) -> None:
    kept, removed = new_token(), new_token()
    path, clock = tmp_path / "tokens.yaml", Clock()
    path.write_text(line("a", kept) + line("b", removed))
    file = TokensFile(path, [], clock)
    assert knows(file, kept) and knows(file, removed)
    path.write_text(line("a", kept))
    assert knows(file, removed), "the file is looked at once a second"
    clock.now += 1.0
    assert not knows(file, removed)
    assert knows(file, kept)


def test_reload_does_not_wait(tmp_path: Path) -> None:
    first, second = new_token(), new_token()
    path = tmp_path / "tokens.yaml"
    path.write_text(line("a", first))
    file = TokensFile(path, [], Clock())
    other = tmp_path / "other"
    other.write_text(line("b", second))
    other.replace(path)
    assert file.reload()
    assert knows(file, second) and not knows(file, first)


def test_a_file_of_the_same_size_and_time_but_another_name_counts_as_changed(tmp_path: Path) -> None:
    first, second = new_token(), new_token()
    path, clock, other = tmp_path / "tokens.yaml", Clock(), tmp_path / "other"
    path.write_text(line("a", first))
    other.write_text(line("a", second))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    file = TokensFile(path, [], clock)
    other.replace(path)
    clock.now += 1.0
    assert knows(file, second)


def test_a_wrong_file_leaves_the_last_good_one_in_force(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = new_token()
    path, clock = tmp_path / "tokens.yaml", Clock()
    path.write_text(line("a", token))
    file = TokensFile(path, [], clock)
    caplog.set_level(logging.ERROR)
    path.write_text(line("a", token) + f"b: {token}\n")
    clock.now += 1.0
    assert knows(file, token)
    assert f"{path}:2: b: it must be a mapping" in caplog.text
    path.unlink()
    clock.now += 1.0
    assert knows(file, token)
    assert "cannot be read" in caplog.text
    assert token not in caplog.text
    assert not file.reload()
    path.write_text("")
    clock.now += 1.0
    assert not knows(file, token), "an empty file is right: nobody has a token"


def test_a_wrong_file_is_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    with pytest.raises(ConfigError, match="cannot be read"):
        TokensFile(path, [])
    token = new_token()
    path.write_text(line("a", token) + line("a", token))
    with pytest.raises(ConfigError, match=r"tokens.yaml:2: "):
        read_tokens(path, [])
    path.write_text(line("a", token) + "\n" + line("h9", token, "host"))
    with pytest.raises(ConfigError, match=r"tokens.yaml:3: h9: h9 is no host in the settings"):
        read_tokens(path, ["h1"])
