"""``trainyard switch-config``: what it prints, and how it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.cli.main import main
from tests.support.controller.switch_configs import FOLDER, kept


def test_it_prints_the_configuration_of_the_switch(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["switch-config", "--for", "sonic", "--settings", str(FOLDER / "dcb.yaml"), "--switch", "0x1"])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert printed.out == kept("dcb", "sonic").read_text()


def test_it_needs_no_settings_and_takes_names_of_ports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["switch-config", "--for", "linux", "--port", "1=enp3s0f0.100"]) == 0
    assert "tc qdisc add dev enp3s0f0.100 root handle 7475: htb" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--switch", "spine"],
            "--switch 'spine': it is a datapath id in hexadecimal, from 1 to 16 digits, such as 0x1",
        ),
        (["--switch", "0"], "--switch '0': it is a datapath id in hexadecimal, from 1 to 16 digits, such as 0x1"),
        (["--switch", "9"], "--switch 0x9: the settings have no such switch; they have: 0x1, 0x2"),
        ([], "the settings have several switches; choose one by --switch: 0x1, 0x2"),
        (["--port", "swp1"], "--port 'swp1': it is a number and a name, such as 1=Ethernet1/1"),
        (["--port", "1=a b"], "--port '1=a b': it is a number and a name, such as 1=Ethernet1/1"),
        (["--port", "1=$(reboot)"], "--port '1=$(reboot)': it is a number and a name, such as 1=Ethernet1/1"),
        (["--port", "1=a", "--port", "1=b"], "--port '1=b': the number or the name is given twice; each has one"),
        (["--port", "1=a", "--port", "2=a"], "--port '2=a': the number or the name is given twice; each has one"),
        (["--switch", "0x1", "--port", "5=a"], "--port 5: the switch has no such port; it has: 1, 2, 31"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status = main(["switch-config", "--for", "eos", "--settings", str(FOLDER / "dcb.yaml"), *arguments])
    printed = capsys.readouterr()
    assert (status, printed.out, printed.err) == (2, "", f"trainyard: {sentence}\n")


def test_wrong_settings_are_refused_with_their_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("classes: 3\ndscp: dscb\n")
    assert main(["switch-config", "--for", "ovs", "--settings", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}:2: dscp: there is no preset 'dscb'")


def test_settings_that_no_switch_can_serve_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("classes: 1\ndscp: {preset: dcb, classes: [27]}\n")
    assert main(["switch-config", "--for", "ovs", "--settings", str(file)]) == 2
    assert "class 0 has DSCP 27, in priority 3 of RoCE" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--for", "ios"]])
def test_a_system_must_be_chosen(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["switch-config", *arguments])
    assert stopped.value.code == 2
    assert "--for" in capsys.readouterr().err
