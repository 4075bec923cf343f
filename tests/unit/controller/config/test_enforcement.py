"""The settings of who enforces the order and how switches know a job: both names, what disagrees, what is needed."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from controller.config.config import Config, ConfigError, load_config
from controller.config.needs import needs
from controller.enforcement import Enforcement
from tests.support.controller.settings_file import load


def test_by_default_both_enforce_and_switches_know_jobs_by_flows() -> None:
    config = load_config(None)
    assert config.enforcement == Enforcement(switches=True, hosts=True, identity="flows")
    assert (config.enforce, config.identity, config.mode) == (("switches", "hosts"), "flows", "classified")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("enforce: [switches, hosts]", Enforcement()),
        ("enforce: [hosts, switches]", Enforcement()),
        ("enforce: [switch, host]", Enforcement()),
        ("enforce: [host, switches, host]", Enforcement()),
        ("enforce: [switches]", Enforcement(hosts=False)),
        ("enforce: [switch]", Enforcement(hosts=False)),
        ("enforce: [hosts]", Enforcement(switches=False)),
        ("enforce: [host]\nmode: classified", Enforcement(switches=False)),
        ("enforce: [hosts]\nidentity: flows", Enforcement(switches=False)),
        ("enforce: []", Enforcement(switches=False, hosts=False)),
        ("enforce: []\nmode: marked", Enforcement(switches=False, hosts=False, identity="classes")),
        ("enforce: []\nidentity: dscp", Enforcement(switches=False, hosts=False, identity="dscp")),
        ("identity: classes", Enforcement(identity="classes")),
        ("mode: marked", Enforcement(identity="classes")),
        ("mode: marked\nidentity: classes", Enforcement(identity="classes")),
        ("identity: dscp", Enforcement(identity="dscp")),
        ("mode: dscp", Enforcement(identity="dscp")),
        ("mode: classified\nidentity: flows", Enforcement()),
        ("enforce: [switches]\nidentity: dscp", Enforcement(hosts=False, identity="dscp")),
    ],
)
def test_each_combination_has_one_meaning(tmp_path: Path, text: str, expected: Enforcement) -> None:
    config = load(tmp_path, f"{text}\n")
    assert config.enforcement == expected
    assert config.mode == expected.mode, "both names say the same"
    assert Config.model_validate(config.model_dump(mode="json") | {"api": {}}).enforcement == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "identity: flows\nmode: marked\n",
            ":2: mode: marked is identity: classes, and identity is flows; leave mode out",
        ),
        (
            "mode: marked\nidentity: dscp\n",
            ":1: mode: marked is identity: classes, and identity is dscp; leave mode out",
        ),
        ("mode: classified\nidentity: dscp\n", ":1: mode: classified is identity: flows, and identity is dscp; leave"),
        ("identity: dscp\nenforce: [hosts]\n", ":2: enforce: identity: dscp gives each job a DSCP for its life, which"),
        (
            "identity: classes\nenforce: [hosts]\n",
            ":2: enforce: identity: classes (mode: marked) is how the controller",
        ),
        ("mode: marked\nenforce: [host]\n", ":2: enforce: identity: classes (mode: marked) is how the controller"),
        ("enforce: hosts\n", ":1: enforce: it must be a list, such as [switches, hosts]; an empty one only observes"),
        ("enforce:\n", ":1: enforce: it must be a list"),
        ("enforce: [switches, nic]\n", ":1: enforce[1]: "),
        ("enforce: [[hosts]]\n", ":1: enforce[0]: "),
        ("identity: ports\n", ":1: identity: "),
        ("mode: mark\n", ":1: mode: "),
        ("mode: [marked]\n", ":1: mode: "),
    ],
)
def test_what_disagrees_or_is_unknown_is_said_with_its_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert said in str(refused.value)


def test_what_follows_for_switches_and_hosts() -> None:
    by_flows = Enforcement()
    assert (by_flows.is_by_flows, by_flows.is_by_dscp, by_flows.needs_marks) == (True, False, False)
    for by_dscp in (Enforcement(identity="classes"), Enforcement(identity="dscp")):
        assert (by_dscp.is_by_flows, by_dscp.is_by_dscp, by_dscp.needs_marks) == (False, True, True)
    own = {identity: Enforcement(identity=identity).has_own_dscps for identity in ("flows", "classes", "dscp")}
    assert own == {"flows": False, "classes": False, "dscp": True}
    for identity in ("flows", "classes", "dscp"):
        alone = Enforcement(switches=False, identity=identity)
        assert (alone.is_by_flows, alone.is_by_dscp, alone.needs_marks, alone.observes) == (False, False, True, False)
        none = Enforcement(switches=False, hosts=False, identity=identity)
        assert (none.is_by_flows, none.is_by_dscp, none.needs_marks, none.observes) == (False, False, False, True)


@pytest.mark.parametrize(
    ("text", "said", "unsaid"),
    [
        ("", ["whose queues the controller makes", "4000 rules", "runs an agent"], ["no switch", "one rule"]),
        ("queues: existing\ntable_budget: 9\n", ["which have the queues 0 to 7", "9 rules"], []),
        ("identity: classes\n", ["one rule for each class", "runs an agent"], ["table_budget", "no agent sets"]),
        (
            "identity: dscp\n",
            ["a DSCP for its life", "one rule for each job", "at most 15 jobs have a DSCP alone", "share DSCP 59"],
            ["table_budget", "no agent sets", "for each class"],
        ),
        ("identity: dscp\ndscp: {jobs: [3]}\n", ["at most 1 job has a DSCP alone; those after them share DSCP 3"], []),
        ("enforce: [switches]\n", ["OpenFlow 1.3"], ["agent"]),
        ("enforce: [switches]\nidentity: dscp\n", ["no agent sets DSCPs", "in the last class"], ["runs an agent"]),
        (
            "enforce: [hosts]\nclasses: 2\n",
            ["runs an agent", "no switch of the controller", "others last: 63 (packets without data), 59, 51"],
            ["OpenFlow", "51, 43"],
        ),
        ("enforce: [hosts]\ndscp: class-selectors\n", ["others last: 56, 48, 40, 32, 24, 16, 8"], ["without data"]),
        (
            "enforce: [hosts]\nhosts: [{name: a, address: 10.0.0.1, switch: 1, port: 1}]\nuntrusted_hosts: [a]\n",
            ["nobody clears the DSCPs that untrusted_hosts set"],
            [],
        ),
        (
            "hosts: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2, mac: '02:00:00:00:00:02'}]\n",
            ["link-local addresses are other traffic, unless mac is set: a"],
            ["set: a, b", "dropped"],
        ),
        (
            "hosts: [{name: a, address: 'fd00::1', switch: 1, port: 1}]\nforwarding: paths\n",
            ["link-local addresses are dropped, unless mac is set: a"],
            [],
        ),
        ("enforce: [hosts]\nhosts: [{name: a, address: 10.0.0.1}]\n", [], ["unless mac is set"]),
        ("enforce: [hosts]\ncontrol_traffic: {ports: [{switch: 1, port: 8}]}\n", ["nobody serves control_traffic"], []),
        ("control_traffic: {ports: [{switch: 1, port: 8}]}\n", [], ["nobody serves control_traffic"]),
        ("enforce: []\n", ["nothing is enforced"], ["agent", "OpenFlow"]),
    ],
)
def test_what_a_combination_needs_is_said(tmp_path: Path, text: str, said: list[str], unsaid: list[str]) -> None:
    sentences = "\n".join(needs(load(tmp_path, text)))
    assert all(words in sentences for words in said), sentences
    assert not any(words in sentences for words in unsaid), sentences


def test_every_combination_needs_something() -> None:
    for places, identity in product(([], ["switches"], ["switches", "hosts"]), ("flows", "classes", "dscp")):
        assert needs(Config.model_validate({"enforce": places, "identity": identity}))
