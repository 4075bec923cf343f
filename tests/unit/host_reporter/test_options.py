"""The agent's one folder of what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from host_reporter.options import DEFAULT_STATE_DIR, OptionsError, read_options

OTHER = ["--state-dir", "/srv/agent"]


@pytest.mark.parametrize(
    ("arguments", "environment", "folder"),
    [
        ([], {}, DEFAULT_STATE_DIR),
        ([], {"STATE_DIRECTORY": "/var/lib/host-reporter-a:/var/lib/b"}, "/var/lib/host-reporter-a"),
        (OTHER, {"STATE_DIRECTORY": "/var/lib/a"}, "/srv/agent"),
    ],
)
def test_the_command_line_names_the_state_folder_then_systemd(
    arguments: list[str], environment: dict[str, str], folder: str
) -> None:
    assert read_options(arguments, environment).state_dir == Path(folder)


def test_a_file_of_options_counts_before_systemd(tmp_path: Path) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text("state_dir: /srv/other\n")
    read = read_options(["--config", str(config)], {"STATE_DIRECTORY": "/var/lib/a"})
    assert read.state_dir == Path("/srv/other")


def test_lines_that_are_not_understood_are_kept_in_the_state_folder_if_it_is_there(tmp_path: Path) -> None:
    state = tmp_path / "state"
    options = read_options(["--state-dir", str(state)], {})
    assert options.unread_file() is None
    state.mkdir()
    assert options.unread_file() == state / "unread.log", "a host that enrols makes the folder later"
    named = read_options(["--state-dir", str(state), "--unread-log", str(tmp_path / "mine.log")], {})
    assert named.unread_file() == tmp_path / "mine.log"
    state.rmdir()
    assert named.unread_file() == tmp_path / "mine.log"


def test_one_interface_or_several_are_ordered(tmp_path: Path) -> None:
    def ordered(*arguments: str) -> list[tuple[str, float | None]]:
        return [(each.name, each.rate_bps) for each in read_options(arguments, {}).ordered]

    assert ordered() == []
    assert ordered("--interface", "eth0") == [("eth0", None)]
    assert ordered("--interface", "eth0", "--rate-bps", "1e9") == [("eth0", 1e9)]
    assert ordered("--interface", "eth0", "--interface", "eth1") == [("eth0", None), ("eth1", None)]
    config = tmp_path / "agent.yaml"
    config.write_text("interfaces:\n  - eth0\n  - name: eth1\n    rate_bps: 4.0e+10\nrate_bps: 1.0e+9\n")
    assert ordered("--config", str(config)) == [("eth0", 1e9), ("eth1", 4e10)]
    # The command line counts before the file, also where the one names one interface and the other several.
    assert ordered("--config", str(config), "--interface", "eth2") == [("eth2", 1e9)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--interface", "eth0", "--interface", "eth0"], "--interface: each interface is named once"),
        (["--interface", "eth0", "--interface", "e th"], "--interfaces.*: "),
        (
            ["--nic", "tls-one", "--rate-bps", "1e9", "--interface", "a", "--interface", "b"],
            "tls-one orders one interface",
        ),
        (["--rate-bps", "1e9"], "--rate-bps: give --interface too"),
    ],
)
def test_interfaces_that_do_not_fit_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(OptionsError, match=words):
        read_options(arguments, {})


def test_a_file_with_both_forms_of_interfaces_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text("interface: eth0\ninterfaces: [eth1]\n")
    with pytest.raises(OptionsError, match="leave out interface"):
        read_options(["--config", str(config)], {})
    config.write_text("interfaces:\n  - eth0\n  - name: eth1\n    rate: 5\n")
    with pytest.raises(OptionsError, match=r"agent.yaml:\d+: interfaces.1"):
        read_options(["--config", str(config)], {})


def test_the_folder_of_jobs_variables_is_in_memory_unless_it_is_named(tmp_path: Path) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text("environment_dir: /srv/environment\n")
    assert read_options([], {}).environment_dir == Path("/run/trainyard/environment")
    assert read_options(["--config", str(config)], {}).environment_dir == Path("/srv/environment")
    other = ["--config", str(config), "--environment-dir", "/srv/other"]
    assert read_options(other, {}).environment_dir == Path("/srv/other")
