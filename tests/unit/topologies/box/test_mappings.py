"""Room for large processes is made once, shared, and given back by the last, also after a crash."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from topologies.box import mappings
from topologies.box.mappings import ENOUGH, room


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    path = tmp_path / "max_map_count"
    path.write_text("65530\n")
    return path


def value(setting: Path) -> int:
    return int(setting.read_text())


def test_room_is_made_and_given_back_also_after_an_error(setting: Path, tmp_path: Path) -> None:
    with contextlib.suppress(ValueError), room(setting, tmp_path) as enough:
        assert enough
        assert value(setting) == ENOUGH
        raise ValueError
    assert value(setting) == 65530


def test_the_last_of_several_gives_it_back(setting: Path, tmp_path: Path) -> None:
    first, second = room(setting, tmp_path), room(setting, tmp_path)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert value(setting) == ENOUGH
    second.__exit__(None, None, None)
    assert value(setting) == 65530


def test_what_a_killed_process_left_is_put_back_by_the_next(setting: Path, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from topologies.box.mappings import room\n"
        "with room(Path(sys.argv[1]), Path(sys.argv[2])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = subprocess.run([sys.executable, "-c", program, setting, tmp_path], check=False)
    assert died.returncode == -9
    assert value(setting) == ENOUGH
    with room(setting, tmp_path) as enough:
        assert enough
    assert value(setting) == 65530


def test_a_machine_with_room_is_left_as_it_is(setting: Path, tmp_path: Path) -> None:
    setting.write_text("1048576\n")
    with room(setting, tmp_path) as enough:
        assert enough
        assert value(setting) == 1048576
    assert value(setting) == 1048576


def test_what_somebody_else_set_meanwhile_stays(setting: Path, tmp_path: Path) -> None:
    with room(setting, tmp_path):
        setting.write_text("500000\n")
    assert value(setting) == 500000
    with room(setting, tmp_path):
        pass
    assert value(setting) == 500000


def test_who_may_not_set_it_is_told_what_to_do(setting: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> int:
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refused)
    with room(setting, tmp_path) as enough:
        assert not enough
    assert value(setting) == 65530
    assert "65530" in mappings.advice(setting)
    assert f"sysctl -w vm.max_map_count={ENOUGH}" in mappings.advice(setting)
