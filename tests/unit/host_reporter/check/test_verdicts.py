"""What the checks of a host conclude from what they have seen, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from host_reporter.check import interface, kernel, modules, rights
from host_reporter.check.interface import Facts
from host_reporter.check.modules import Modules
from host_reporter.check.verdict import Verdict, exit_status, lines, missing, note, ok
from host_reporter.discovery.cgroups import Hierarchy
from host_reporter.options import Options


def options(**given: Any) -> Options:
    return Options.model_validate(given)


def states(verdicts: Any) -> list[str]:
    return [verdict.state for verdict in verdicts]


def of(verdicts: Any, word: str) -> Verdict:
    (found,) = [verdict for verdict in verdicts if word in verdict.text]
    return found


def test_a_line_for_each_check_and_one_for_what_would_help() -> None:
    found = [
        ok("kernel", "it is there"),
        missing("nic", "there is no eth9", "name another"),
        note("clock", "it is late"),
    ]
    assert lines(found) == [
        "ok       kernel: it is there",
        "missing  nic: there is no eth9",
        "         would help: name another",
        "note     clock: it is late",
    ]
    assert exit_status(found) == 1
    assert exit_status(found[::2]) == 0


@pytest.mark.parametrize(
    ("given", "held", "needed"),
    [
        ({}, set(), {"CAP_NET_ADMIN", "CAP_NET_RAW"}),
        ({}, {"CAP_NET_ADMIN", "CAP_NET_RAW"}, set()),
        ({"marking": False}, set(), set()),
        ({"marking": False, "interface": "eth0"}, set(), {"CAP_NET_ADMIN"}),
        ({"marking": False, "enrol_token_file": "/x"}, set(), set()),
    ],
)
def test_only_rights_that_the_options_ask_for_are_missing(given: Any, held: set[str], needed: set[str]) -> None:
    found = list(rights.verdicts(frozenset(held), options(**given)))
    assert {each.text.split()[0] for each in found if each.state == "missing"} == needed
    assert {"CAP_SYS_PTRACE", "CAP_SYS_ADMIN"} <= {each.text.split()[0] for each in found}


def test_rights_are_those_that_the_kernel_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000003000\n")
    monkeypatch.setattr(rights, "STATUS", status)
    found = list(rights.check(options()))
    assert [each.text.split()[0] for each in found if each.state == "ok"] == ["CAP_NET_ADMIN", "CAP_NET_RAW"]


def test_modules_are_read_from_the_kernels_lists(tmp_path: Path) -> None:
    folder, loaded = tmp_path / "modules", tmp_path / "loaded"
    folder.mkdir()
    (loaded / "xt_cgroup").mkdir(parents=True)
    (folder / "modules.builtin").write_text("kernel/net/sched/sch_htb.ko\n")
    (folder / "modules.dep").write_text(
        "kernel/net/netfilter/xt_DSCP.ko.xz: kernel/net/netfilter/x_tables.ko.xz\nkernel/net/sched/cls-u32.ko:\n"
    )
    found = modules.read(loaded, folder)
    wanted = {
        "sch_htb": "is built in",
        "xt_cgroup": "is loaded",
        "xt_dscp": "can be loaded",
        "cls_u32": "can be loaded",
        "sch_fq": "not there",
    }
    assert {name: found.presence(name) for name in wanted} == wanted
    nothing = modules.read(tmp_path / "none", tmp_path / "none")
    assert nothing.presence("sch_htb") == "not known"


EVERYTHING = Modules(frozenset({"xt_dscp", "xt_cgroup", "sch_htb", "cls_u32"}), frozenset(), frozenset(), True)
NOTHING = Modules(frozenset(), frozenset(), frozenset(), True)
UNKNOWN = NOTHING._replace(is_listed=False)


@pytest.mark.parametrize(
    ("present", "which", "said"),
    [
        (EVERYTHING, True, ["ok", "ok", "ok"]),
        (NOTHING, False, ["missing", "missing", "note"]),
        (UNKNOWN, True, ["ok", "note", "note"]),
    ],
)
def test_what_marks_need(present: Modules, which: bool, said: list[str]) -> None:
    assert states(kernel.marking(present, lambda name: name if which else None)) == said


@pytest.mark.parametrize(
    ("present", "which", "said"),
    [(EVERYTHING, True, ["ok"] * 3), (NOTHING, False, ["missing"] * 3), (UNKNOWN, True, ["ok", "note", "note"])],
)
def test_what_an_ordered_interface_needs(present: Modules, which: bool, said: list[str]) -> None:
    assert states(kernel.ordering(present, lambda name: name if which else None)) == said


def test_cgroups_and_sockets() -> None:
    first, second = (Hierarchy(Path("/sys/fs/cgroup"), "/", is_second=is_second) for is_second in (False, True))
    assert states([kernel.groups((second, first)), kernel.groups((first,)), kernel.groups(())]) == [
        "ok",
        "note",
        "note",
    ]
    assert states([kernel.sockets(None), kernel.sockets("it may not")]) == ["ok", "missing"]


UP = Facts(is_up=True, rate_bps=25e9, offloads={"TSO": False, "GSO": True, "GRO": True})


@pytest.mark.parametrize(
    ("facts", "wanted", "said"),
    [
        (None, None, ["missing"]),
        (UP, None, ["ok", "ok"]),
        (UP._replace(is_up=False), None, ["missing", "ok", "ok"]),
        (UP, 20e9, ["ok", "ok"]),
        (UP, 40e9, ["missing", "ok"]),
        (UP._replace(rate_bps=None), None, ["note", "ok"]),
        (UP._replace(rate_bps=None), 1e9, ["ok", "ok"]),
        (UP._replace(offloads={"TSO": True}), None, ["ok", "note"]),
        (UP._replace(offloads={}), None, ["ok"]),
    ],
)
def test_what_is_said_of_an_interface(facts: Facts | None, wanted: float | None, said: list[str]) -> None:
    assert states(interface.verdicts("eth0", facts, wanted)) == said


def test_the_loopback_is_looked_at_as_it_is() -> None:
    facts = interface.look("lo")
    assert facts is not None
    assert (facts.is_up, facts.rate_bps) == (True, None)
    assert set(facts.offloads) <= set(interface.OFFLOADS)
    assert interface.look("no-such-if") is None
