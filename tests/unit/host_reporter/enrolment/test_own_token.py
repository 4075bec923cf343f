"""The token that the agent makes for itself: it is made once, and nobody else can read it."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from controller.access.tokens.hashes import PREFIX
from host_reporter.enrolment.own_token import OwnToken, OwnTokenError


def test_it_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    token = OwnToken(tmp_path / "state", "h7")
    assert not token.is_there()
    first = token.sha256()
    text = token.path.read_text().strip()
    assert text.startswith(PREFIX)
    assert first == hashlib.sha256(text.encode()).hexdigest()
    assert OwnToken(tmp_path / "state", "h7").sha256() == first
    assert OwnToken(tmp_path / "state", "h8").sha256() != first
    assert stat.S_IMODE(token.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.path.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in token.path.parent.iterdir()) == ["h7.token", "h8.token"]


def test_one_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    token = OwnToken(tmp_path, "h7")
    token.sha256()
    token.path.chmod(0o640)
    with pytest.raises(OwnTokenError, match="nobody else can read"):
        token.sha256()


@pytest.mark.parametrize("content", ["", "something else\n"])
def test_what_is_no_token_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    token = OwnToken(tmp_path, "h7")
    token.path.write_text(content)
    token.path.chmod(0o600)
    with pytest.raises(OwnTokenError, match="holds no token; remove it"):
        token.sha256()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f"{PREFIX}x\n")
    elsewhere.chmod(0o600)
    token = OwnToken(tmp_path, "h7")
    for target in (elsewhere, tmp_path / "nowhere"):
        token.path.unlink(missing_ok=True)
        token.path.symlink_to(target)
        with pytest.raises(OwnTokenError, match="cannot be kept there"):
            token.sha256()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OwnTokenError, match=r"file/h7\.token: the host's token cannot be kept there"):
        OwnToken(tmp_path / "file", "h7").sha256()
