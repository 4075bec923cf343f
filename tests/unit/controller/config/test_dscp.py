"""The settings of DSCPs: presets, what is refused, and what is said of their cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.code_points import CLASS_SELECTORS, DCB, POOL_2, CodePoints, code_points
from controller.config.config import Config, ConfigError, load_config
from controller.config.dscp_costs import costs, unbelieved
from tests.support.controller.settings_file import load

HOSTS = "hosts: [{name: h1, address: 10.0.0.1, switch: 1, port: 1}, {name: h2, address: 10.0.0.2}]\n"
AT_A_PORT = "hosts: [{name: h1, address: 10.0.0.1, switch: 1, port: 1}]\n"


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("", POOL_2),
        ("dscp:\n", POOL_2),
        ("dscp: {}\n", POOL_2),
        ("dscp: pool-2\n", POOL_2),
        ("dscp: class-selectors\n", CLASS_SELECTORS),
        ("dscp: {preset: class-selectors}\n", CLASS_SELECTORS),
        ("dscp: dcb\n", DCB),
        ("classes: 3\n", POOL_2.first(3)),
        ("dscp: {preset: class-selectors, acknowledgements: 63}\n", code_points(CLASS_SELECTORS.classes, 63)),
        ("dscp: {acknowledgements: null}\n", code_points(POOL_2.classes, None)),
        ("dscp: {other: 1}\n", code_points(POOL_2.classes, 63, 1)),
        ("classes: 2\ndscp: {classes: [46, 34, 26], acknowledgements: 47}\n", code_points((46, 34, 26), 47).first(2)),
    ],
)
def test_what_is_left_out_is_the_presets(tmp_path: Path, text: str, points: CodePoints) -> None:
    assert load(tmp_path, text).code_points == points


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dscp: pool2\n", ":1: dscp: there is no preset 'pool2'; there are: pool-2, class-selectors, dcb"),
        ("dscp: {preset: cs}\n", ":1: dscp.preset: "),
        ("dscp: 46\n", ":1: dscp: it must be a mapping of settings, or one of: pool-2, class-selectors, dcb"),
        ("dscp: [59, 51]\n", ":1: dscp: it must be a mapping of settings, or one of: "),
        ("dscp:\n  clases: [1]\n", ":2: dscp.clases: unknown key; did you mean classes?"),
        ("dscp:\n  classes: [64]\n", ":2: dscp.classes[0]: is the number 64; it should be less than or equal to 63"),
        ("dscp:\n  classes: []\n", ":2: dscp.classes: "),
        ("dscp:\n  classes: [1, 2, 3, 4, 5, 6, 7, 8]\n", ":2: dscp.classes: "),
        ("dscp:\n  other: -1\n", ":2: dscp.other: "),
        ("dscp:\n  acknowledgements: first\n", ":2: dscp.acknowledgements: "),
        ("classes: 1\ndscp: {classes: [0]}\n", "class 0 has DSCP 0, which all traffic has that nobody marks"),
        ("dscp: {acknowledgements: 0}\n", "acknowledgements has DSCP 0"),
        ("classes: 2\ndscp: {classes: [8, 8]}\n", "DSCP 8 is that of class 0 and of class 1; each needs its own"),
        (
            "classes: 1\ndscp: {classes: [63]}\n",
            "DSCP 63 is that of class 0 and of acknowledgements; each needs",
        ),
        ("dscp: {other: 59}\n", "other is 59, which is that of class 0; it needs its own"),
        (
            "dscp: {classes: [8, 16]}\n",
            ":1: dscp: there are 7 classes and 2 DSCPs; name one for each, or",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_field(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert expected in str(refused.value)


def test_marks_that_no_switch_would_believe_are_refused(tmp_path: Path) -> None:
    shared = "mode: marked\ndscp: class-selectors\n"
    with pytest.raises(ConfigError, match="where h2 is plugged in is not known; set its switch and port"):
        load(tmp_path, HOSTS + shared)
    load(tmp_path, AT_A_PORT + shared)
    # Nobody else sets the others, and only switches that go by marks alone have to believe them.
    load(tmp_path, HOSTS + "mode: marked\ndscp: dcb\n")
    load(tmp_path, HOSTS + "enforce: [hosts]\ndscp: class-selectors\n")
    load(tmp_path, HOSTS + "dscp: class-selectors\n")


def test_the_default_costs_nothing() -> None:
    assert costs(load_config(None)) == ()
    assert costs(Config.model_validate({"mode": "marked", "classes": 3})) == ()


@pytest.mark.parametrize(
    ("text", "said", "unsaid"),
    [
        (
            "dscp: class-selectors\n",
            ["48 (CS6, routing protocols", "the cgroup of a job", "packets without data", "table_budget", "from h2"],
            ["untrusted_hosts", "precedence", "behind it"],
        ),
        ("dscp: class-selectors\nlinks: [{a: 1, a_port: 9, b: 2, b_port: 9}]\n", ["the switches behind it"], []),
        (
            "dscp: class-selectors\nenforce: [switch]\n",
            ["48 (CS6"],
            ["the cgroup of a job", "packets without data"],
        ),
        ("dscp: class-selectors\nenforce: [host]\n", ["48 (CS6", "the cgroup of a job"], ["switch"]),
        ("dscp: dcb\n", ["serves these classes alike: 1 and 2, 3 and 4"], ["other programs", "packets without data"]),
        ("classes: 2\ndscp: dcb\n", [], ["precedence"]),
        ("classes: 2\ndscp: {classes: [11, 19]}\n", ["serves classes in another order: 1 before 0"], ["alike"]),
        ("classes: 1\ndscp: {classes: [50]}\n", ["50 (a standard may give it a meaning)"], []),
        (
            "classes: 3\ndscp: {classes: [38, 34, 10]}\n",
            ["38 (AF43, video conferences); 34 (AF41, video conferences); 10 (AF11, large transfers)"],
            [],
        ),
        ("dscp: {acknowledgements: null}\n", ["acknowledgements have no DSCP of their own"], ["other programs"]),
        ("dscp: {acknowledgements: 46}\n", ["46 (EF, voice)", "acknowledgements have a DSCP that other programs"], []),
        ("dscp: {preset: class-selectors, acknowledgements: 63}\n", ["48 (CS6"], ["packets without data", "63"]),
    ],
)
def test_each_cost_is_said(tmp_path: Path, text: str, said: list[str], unsaid: list[str]) -> None:
    sentences = "\n".join(costs(load(tmp_path, HOSTS + text)))
    assert all(words in sentences for words in said), sentences
    assert not any(words in sentences for words in unsaid), sentences


ALL_AT_PORTS = "hosts: [{name: h1, address: 10.0.0.1, switch: 1, port: 1}]\nidentity: dscp\n"


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        ("", (3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59)),
        ("dscp: {acknowledgements: 3, other: 7}\n", (11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59, 63)),
        ("dscp: {preset: class-selectors, jobs: [63]}\n", (63,)),
        ("dscp: {jobs: [1-47, 49]}\n", (*range(1, 48), 49)),
        ("dscp: {jobs: ['5 - 5', 4, 1-2]}\n", (5, 4, 1, 2)),
    ],
)
def test_the_dscps_that_jobs_get_for_their_life(tmp_path: Path, text: str, pool: tuple[int, ...]) -> None:
    config = load(tmp_path, ALL_AT_PORTS + text)
    assert config.dscp.pool == config.code_points.jobs == pool
    assert config.code_points.of_data == pool
    assert Config.model_validate(config.model_dump(mode="json") | {"api": {}}).dscp.pool == pool
    assert load(tmp_path, "").code_points.jobs is None


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ("7", "it must be a list of DSCPs and ranges, such as [1-47, 49]"),
        ("1-47", "it must be a list of DSCPs and ranges"),
        ("[]", "it has no DSCP; name one at least, such as [1-47, 49], or leave it out"),
        ("[0]", "0 is no DSCP or range for jobs: all traffic has 0 that nobody marks"),
        ("[0-3]", "0-3 is no DSCP or range for jobs: all traffic has 0 that nobody marks"),
        ("[64]", "64 is no DSCP or range for jobs: DSCPs of jobs are 1 to 63, the lower first"),
        ("[9-3]", "9-3 is no DSCP or range for jobs"),
        ("[-1]", "-1 is no DSCP"),
        ("[1.5]", "'1.5' is neither a DSCP nor a range; write numbers and ranges: [1-47, 49]"),
        ("[true]", "'True' is neither a DSCP nor a range"),
        ("[EF]", "'EF' is neither a DSCP nor a range"),
        ("[1-3, 2]", "DSCP 2 is there twice; name each once"),
        ("[60-63]", "DSCP 63 is that of acknowledgements; leave it out"),
    ],
)
def test_a_wrong_pool_is_said_with_its_line(tmp_path: Path, jobs: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, f"{ALL_AT_PORTS}dscp:\n  jobs: {jobs}\n")
    assert f":4: dscp.jobs: {expected}" in str(refused.value)


def test_a_pool_with_dscps_of_others_needs_the_ports_of_hosts(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"h2 is plugged in is not known; set its switch and port, or leave out those"
    ):
        load(tmp_path, HOSTS + "identity: dscp\ndscp: {jobs: [3, 4]}\n")
    load(tmp_path, HOSTS + "identity: dscp\n")
    load(tmp_path, HOSTS + "dscp: {jobs: [3, 4]}\n")


@pytest.mark.parametrize(
    ("text", "said", "unsaid"),
    [
        ("", [], ["other programs", "precedence"]),
        ("dscp: dcb\n", [], ["precedence"]),
        ("dscp: {jobs: [46, 3]}\n", ["46 (EF, voice)", "served like the job that has it", "at no other port"], ["CNP"]),
        (
            "dscp: {jobs: [1-62]}\n",
            ["1 (LE", "RoCE's congestion notification (CNP) DSCP 48", "4, 2 (a standard may give them a meaning)"],
            [],
        ),
        ("dscp: {acknowledgements: null}\n", ["packets without data have the DSCP of their job"], ["no DSCP of"]),
    ],
)
def test_what_the_dscps_of_jobs_cost(tmp_path: Path, text: str, said: list[str], unsaid: list[str]) -> None:
    sentences = "\n".join(costs(load(tmp_path, ALL_AT_PORTS + text)))
    assert all(words in sentences for words in said), sentences
    assert not any(words in sentences for words in unsaid), sentences


def test_marked_mode_says_who_is_believed(tmp_path: Path) -> None:
    sentences = "\n".join(costs(load(tmp_path, AT_A_PORT + "mode: marked\ndscp: class-selectors\n")))
    assert "at the ports of all hosts that untrusted_hosts does not name" in sentences
    assert "packets without data" not in sentences


def test_hosts_whose_marks_no_switch_would_believe(tmp_path: Path) -> None:
    config = load(tmp_path, HOSTS + "dscp: class-selectors\n")
    assert unbelieved(config, config.host_map()) == ("h2",)
    assert unbelieved(load(tmp_path, HOSTS), config.host_map()) == ()
