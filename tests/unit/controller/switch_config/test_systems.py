"""The configuration of each system, as it was read and approved, and what holds for all of them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from controller.cli.switch_config_command import SYSTEMS as CHOICES
from controller.switch_config import ovs
from controller.switch_config.plan import StaticPlan
from controller.switch_config.stanza import UNCHECKED
from controller.switch_config.systems import SYSTEMS
from tests.support.controller.switch_configs import SETTINGS, commands, kept, lines, plan

EACH = [(settings, system) for settings in SETTINGS for system in SYSTEMS]
SHELL = ("sonic", "cumulus", "ovs", "linux")


def test_the_command_offers_the_systems_that_there_are() -> None:
    assert tuple(SYSTEMS) == CHOICES


@pytest.mark.parametrize(("settings", "system"), EACH)
def test_a_configuration_is_the_one_that_was_approved(settings: str, system: str) -> None:
    assert "\n".join(lines(settings, system)) + "\n" == kept(settings, system).read_text()


def stanzas(settings: str, system: str) -> Iterator[list[str]]:
    """The stanzas behind the head, as lines."""
    stanza: list[str] = []
    for line in [*lines(settings, system), "end"]:
        if re.match(r"[#!] \S.*\.$", line) and stanza and stanza[-1] == "":
            yield stanza
            stanza = []
        stanza.append(line)
    yield stanza


@pytest.mark.parametrize(("settings", "system"), EACH)
def test_each_stanza_names_its_page_or_says_that_there_is_none(settings: str, system: str) -> None:
    mark = SYSTEMS[system].mark
    _, *behind_head = stanzas(settings, system)
    assert len(behind_head) >= 4
    for stanza in behind_head:
        if any(line and not re.match(rf"{mark} \S", line) for line in stanza[:-1]):
            assert re.match(rf"{mark} (checked against: .|{UNCHECKED}$)", stanza[1]), stanza[0]
            assert UNCHECKED in stanza[1] or any("https://" in line for line in stanza[1:4])


@pytest.mark.parametrize(("settings", "system"), EACH)
def test_a_configuration_speaks_of_pfc_only_with_a_lossless_group(settings: str, system: str) -> None:
    about = [line for line in commands(settings, system) if re.search(r"pfc|pause|priority-flow|ecn|no-loss", line)]
    assert bool(about) == (settings == "dcb" and system not in ("ovs", "linux"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_port_that_is_not_believed_pauses_nobody(system: str) -> None:
    name = SYSTEMS[system].port_name(2)
    text = "\n".join(commands("dcb", system))
    of_port = re.findall(rf".*\b{re.escape(name)}\b[^\n]*(?:\n +[^\n\"]*)*", text)
    assert of_port
    assert not re.search(r"pfc_enable|no-drop|mode on|congestion-notification|qos pfc", "\n".join(of_port))


@pytest.mark.parametrize("system", SHELL)
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_script_is_one(settings: str, system: str) -> None:
    script = "\n".join(lines(settings, system)) + "\n"
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def wanted(of: StaticPlan) -> dict[int, int]:
    """The queue of each of the 64 DSCPs."""
    return dict.fromkeys(range(64), 0) | {dscp: queue.number for queue in of.queues for dscp in queue.dscps}


def documents(settings: str) -> dict[str, dict[str, dict[str, str]]]:
    """The tables that a configuration of SONiC writes, all together."""
    found = re.findall(r"<<'END'\n(.*?)\nEND\n", "\n".join(commands(settings, "sonic")), re.S)
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for document in found:
        for table, rows in json.loads(document).items():
            assert table not in tables
            tables[table] = rows
    return tables


@pytest.mark.parametrize("settings", SETTINGS)
def test_sonic_maps_each_dscp_and_each_name_that_it_refers_to_is_there(settings: str) -> None:
    tables = documents(settings)
    maps = tables["DSCP_TO_TC_MAP"]
    assert {int(dscp): int(tc) for dscp, tc in maps["TRAINYARD"].items()} == wanted(plan(settings, "sonic"))
    for row in tables["QUEUE"].values():
        assert row["scheduler"] in tables["SCHEDULER"]
        assert row.get("wred_profile", "TRAINYARD") in tables.get("WRED_PROFILE", {"TRAINYARD": {}})
    for row in tables["PORT_QOS_MAP"].values():
        for field, table in (("dscp_to_tc_map", maps), ("tc_to_queue_map", tables["TC_TO_QUEUE_MAP"])):
            assert row[field] in table
    assert sum(int(row.get("weight", 0)) for row in tables["SCHEDULER"].values()) in (0, 100)


def test_sonic_gives_a_port_that_is_not_believed_a_map_to_queue_0() -> None:
    tables = documents("dcb")
    believed = {port: row["dscp_to_tc_map"] for port, row in tables["PORT_QOS_MAP"].items()}
    assert believed == {"Ethernet0": "TRAINYARD", "Ethernet4": "TRAINYARD_UNBELIEVED", "Ethernet120": "TRAINYARD"}
    assert set(tables["DSCP_TO_TC_MAP"]["TRAINYARD_UNBELIEVED"].values()) == {"0"}


@pytest.mark.parametrize(
    ("system", "pattern", "base"),
    [
        ("eos", r"qos map dscp ([\d ]+) to traffic-class (\d)", 10),
        ("cumulus", r"default-global dscp ([\d,]+) switch-priority (\d)", 10),
        ("junos", r"classifiers dscp trainyard .*trainyard-(?=\d)(?=(\d)).*code-points (?:\[ )?([01 ]+)", 2),
        ("junos", r"classifiers dscp-ipv6 trainyard .*trainyard-(?=(\d)).*code-points (?:\[ )?([01 ]+)", 2),
    ],
)
@pytest.mark.parametrize("settings", SETTINGS)
def test_each_dscp_is_named_once(settings: str, system: str, pattern: str, base: int) -> None:
    found: dict[int, int] = {}
    for line in commands(settings, system):
        if match := re.search(pattern, line):
            dscps, queue = match.groups() if base == 10 else reversed(match.groups())
            for dscp in re.split("[ ,]+", dscps.strip()):
                assert int(dscp, base) not in found
                found[int(dscp, base)] = int(queue)
    assert found == wanted(plan(settings, system))


@pytest.mark.parametrize("settings", SETTINGS)
def test_nxos_has_a_class_map_for_each_queue_of_named_dscps(settings: str) -> None:
    text = "\n".join(commands(settings, "nxos"))
    maps = re.findall(r"match-any trainyard-(\d)\n  match dscp ([\d,]+)\n", text)
    found = {int(dscp): int(queue) for queue, dscps in maps for dscp in dscps.split(",")}
    assert dict.fromkeys(range(64), 0) | found == wanted(plan(settings, "nxos"))
    assert set(re.findall(r"class trainyard-(\d)\n    set qos-group \1\n", text)) == {str(q) for q in found.values()}
    levels = re.findall(r"priority level (\d)", text)
    assert levels == sorted(levels), "the queue that is served first comes first"
    assert sum(map(int, re.findall(r"remaining percent (\d+)", text))) == 100


@pytest.mark.parametrize("settings", SETTINGS)
def test_ovs_leads_each_dscp_of_both_families_to_its_queue(settings: str) -> None:
    of = plan(settings, "ovs")
    by_id = {queue.number: ovs.queue_id(of, queue) for queue in of.queues}
    flows = [line for line in commands(settings, "ovs") if line.startswith("cookie=")]
    for family in ("ip", "ipv6"):
        found = {
            int(match[1]): int(match[2])
            for flow in flows
            if (match := re.search(rf",{family},ip_dscp=(\d+),actions=set_queue:(\d),normal$", flow))
        }
        assert found == {dscp: by_id[number] for dscp, number in wanted(of).items() if number}
    assert ("in_port=2,actions=set_queue:0," in "".join(flows)) == (settings == "dcb")
