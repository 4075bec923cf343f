"""The settings on hosts that enrol: in short and in full, beside a list, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.config.config import ConfigError
from controller.reload.difference import changes
from tests.support.controller.settings_file import load

LIST = "hosts: [{name: h1, address: 10.0.0.1}]\n"


def test_a_file_without_a_word_of_it_lets_nobody_enrol(tmp_path: Path) -> None:
    assert load(tmp_path, LIST).enrolment is None


@pytest.mark.parametrize("text", ["hosts: enrol\n", "hosts: []\nenrolment: {}\n", "enrolment:\n"])
def test_all_hosts_enrol(tmp_path: Path, text: str) -> None:
    config = load(tmp_path, text)
    assert config.hosts == ()
    assert config.enrolment is not None
    assert (config.enrolment.approve, config.enrolment.networks) == ("by-hand", ())


def test_the_word_and_the_section_go_together(tmp_path: Path) -> None:
    config = load(tmp_path, "hosts: enrol\nenrolment: {approve: at-once}\n")
    assert config.enrolment is not None
    assert config.enrolment.approve == "at-once"


def test_a_list_and_enrolment_go_together(tmp_path: Path) -> None:
    config = load(tmp_path, f"{LIST}enrolment: {{networks: [10.0.0.0/24, 10.9.0.7]}}\n")
    assert [host.name for host in config.hosts] == ["h1"]
    assert config.enrolment is not None
    allowed = {address: config.enrolment.allows(address) for address in ("10.0.0.9", "10.9.0.7", "10.9.0.8")}
    assert allowed == {"10.0.0.9": True, "10.9.0.7": True, "10.9.0.8": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts: enroll\n", "conf.yaml:1: hosts: 'enroll' is no list of hosts; give a list, or the word enrol"),
        ("enrolment: {approve: always}\n", "conf.yaml:1: enrolment.approve: "),
        ("\nenrolment:\n  networks: [here]\n", "conf.yaml:3: enrolment.networks[0]: 'here' is no address or network"),
        ("enrolment: yes\n", "conf.yaml:1: enrolment: it must be a mapping of settings"),
        ("enrolment: {aprove: at-once}\n", "conf.yaml:1: enrolment.aprove: "),
        ("hosts: enrol\nuntrusted_hosts: [h1]\n", "conf.yaml:2: untrusted_hosts: unknown host 'h1'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert said in str(refused.value)


def test_it_changes_while_the_controller_runs(tmp_path: Path) -> None:
    before, after = load(tmp_path, LIST), load(tmp_path, f"{LIST}enrolment: {{}}\n")
    (change,) = changes(before, after)
    assert (change.field, change.before, change.needs_restart) == ("enrolment", None, False)
    again = load(tmp_path, f"{LIST}enrolment: {{approve: at-once}}\n")
    assert [each.field for each in changes(after, again)] == ["enrolment.approve"]
