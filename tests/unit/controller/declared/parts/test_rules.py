"""Which parts may join a job."""

from __future__ import annotations

from typing import Any

import pytest

from controller.declared.parts import rules
from controller.declared.parts.host_part import HostPart
from controller.declared.parts.launches import Launch, is_meant, is_of_launch, launch_of
from controller.declared.parts.part import Part
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.declared.parts.rules import Verdict, verdict_on

BOTH = frozenset({"h1", "h2"})
ALL = frozenset({"h1", "h2", "h3"})


def parts_of(**told: Any) -> PartsOfJob:
    """The parts of a job, by host."""
    return PartsOfJob(HostPart(host, Part("slurm")._replace(**part), 1.0) for host, part in told.items())


def verdict(parts: PartsOfJob, host: str, silent: str = "", **told: Any) -> Verdict:
    return verdict_on("a", parts, host, Part("slurm")._replace(**told), lambda name: name == silent)


def problem(parts: PartsOfJob, host: str, silent: str = "", **told: Any) -> tuple[str, str]:
    found = verdict(parts, host, silent, **told).problem
    return ("", "") if found is None else (found.field, found.text)


NONE = ("", "")


def test_the_first_part_and_parts_that_agree_may_join() -> None:
    assert problem(parts_of(), "h1", is_first=True, hosts=BOTH) == NONE
    assert problem(parts_of(h1={"is_first": True, "hosts": BOTH}), "h2", hosts=BOTH) == NONE
    assert problem(parts_of(h1={"is_first": True}), "h1", is_first=True, hosts=BOTH) == NONE, "the own part again"
    assert problem(parts_of(h1={"hosts": BOTH}), "h1", hosts=ALL) == NONE, "the own list may change"


@pytest.mark.parametrize(("theirs", "mine"), [("alice", "bob"), ("alice", None), (None, "bob")])
def test_another_users_part_may_not(theirs: str | None, mine: str | None) -> None:
    found = verdict(parts_of(h1={"user": theirs}), "h2", user=mine).problem
    assert found is not None
    assert found.is_of_another_user
    assert found.text == "job a belongs to another user"


def test_rank_0_runs_on_one_host() -> None:
    parts = parts_of(h1={"is_first": True}, h2={})
    assert problem(parts, "h2", is_first=True)[0] == "is_first"
    assert "only one part has is_first" in problem(parts, "h2", is_first=True)[1]
    assert verdict(parts, "h2", "h1", is_first=True) == (None, {"h1"}), "its host is silent: rank 0 has moved"
    assert problem(parts, "h2", "h3", is_first=True)[0] == "is_first"


def test_a_host_that_the_launcher_does_not_name_may_not() -> None:
    parts = parts_of(h1={"hosts": BOTH}, h2={})
    assert problem(parts, "h3") == (
        "(path)",
        "the launcher of job a names its hosts elsewhere, and h3 is not among them",
    )
    assert verdict(parts, "h3", "h1") == (None, {"h1"}), "who told that list is silent"
    assert problem(parts, "h3", "h2")[0] == "(path)"


def test_nobody_may_leave_out_the_hosts_of_others() -> None:
    parts = parts_of(h1={}, h2={})
    assert problem(parts, "h3", hosts=frozenset({"h3", "h4"})) == (
        "hosts",
        "they leave out 2 hosts that have a part of job a; name all hosts of the job, or none",
    )
    assert problem(parts, "h3", hosts=ALL) == NONE
    assert problem(parts, "h3", "h2", hosts=frozenset({"h1", "h3"}))[0] == "hosts", "a silent host that told no list"


def test_few_different_lists_are_kept() -> None:
    names = [f"h{i}" for i in range(rules.MAX_LISTS + 2)]
    lists = [frozenset([*names, f"more-{i}"]) for i in range(rules.MAX_LISTS + 1)]
    parts = parts_of(**{names[i]: {"hosts": lists[i]} for i in range(rules.MAX_LISTS)})
    assert "different sets of hosts already" in problem(parts, names[-1], hosts=lists[-1])[1]
    assert problem(parts, names[-1], hosts=lists[0]) == NONE
    assert problem(parts, names[0], hosts=lists[-1]) == NONE, "it takes the place of the own list"


def test_a_job_has_so_many_parts_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_PARTS", 2)
    parts = parts_of(h1={}, h2={})
    assert "2 parts already, which is the most" in problem(parts, "h3")[1]
    assert problem(parts, "h2") == NONE


def known(arrival: float | None, over_at: float | None = None) -> HostPart:
    return HostPart(
        "h1", Part("slurm", arrival=arrival), 100.0, over=None if over_at is None else "ended", over_at=over_at
    )


@pytest.mark.parametrize(
    ("before", "arrival", "launch"),
    [
        (None, None, Launch.NEW),
        (known(None), None, Launch.SAME),
        (known(100.0), None, Launch.SAME),
        (known(None), 100.0, Launch.SAME),
        (known(100.0), 100.0, Launch.SAME),
        (known(100.0), 101.5, Launch.SAME),
        (known(100.0), 98.5, Launch.SAME),
        (known(100.0), 103.0, Launch.NEW),
        (known(100.0), 90.0, Launch.LATE),
        (known(100.0, 200.0), 100.0, Launch.LATE),
        (known(100.0, 200.0), 90.0, Launch.LATE),
        (known(100.0, 200.0), 150.0, Launch.NEW),
        (known(100.0, 200.0), None, Launch.UNTOLD),
        (known(None, 200.0), 150.0, Launch.LATE),
        (known(None, 200.0), 201.0, Launch.NEW),
    ],
)
def test_launches_are_told_apart_by_their_arrival(
    before: HostPart | None, arrival: float | None, launch: Launch
) -> None:
    began = 300.0 if arrival is None else arrival
    assert launch_of(Part("slurm", arrival=arrival), before, began) is launch


def test_an_end_is_of_the_launch_that_began_before_it() -> None:
    assert is_of_launch(known(100.0), 100.0)
    assert is_of_launch(known(100.0), 98.5), "the start of a process is known to about a second"
    assert not is_of_launch(known(100.0), 97.0)
    assert is_of_launch(known(None), 0.0)


def test_a_removal_is_of_the_launch_that_it_names_and_those_before() -> None:
    assert is_meant(known(100.0), 100.0)
    assert is_meant(known(100.0), 98.5)
    assert is_meant(known(100.0), 500.0)
    assert not is_meant(known(100.0), 97.0)
    assert is_meant(known(None), 0.0)
