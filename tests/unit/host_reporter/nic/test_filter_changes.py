"""Which changes the filters of a host's tree get: only those that a new order needs."""

from __future__ import annotations

from controller.code_points import code_points
from host_reporter.nic.filter_changes import changes
from host_reporter.nic.filters import ARP_PREF, DSCP_PREF, of_plan, words
from host_reporter.nic.rtnetlink import FILTER
from host_reporter.nic.state import Filter
from host_reporter.nic.tree import leaf

OF_JOBS = code_points((8, 16, 24), 63, jobs=(3, 46, 7))
TABLE = 0x801


def installed(order: dict[int, int]) -> list[Filter]:
    wanted = of_plan(OF_JOBS.in_order(order))
    found = [Filter(w.pref, w.number, TABLE, leaf(w.service_class), words(w.keys) or "") for w in wanted]
    return [*found, Filter(ARP_PREF, 0, 0x800, leaf(0), "ARP")]


def changed(before: dict[int, int], after: dict[int, int]) -> list[tuple[str, int, int]]:
    """Returns what is done to each filter, its preference and its number."""
    found = []
    for kind, flags, (handle, _, info), _ in changes(installed(before), OF_JOBS.in_order(after)):
        what = "remove" if kind != FILTER else "add" if flags else "lead"
        assert handle >> 20 == (0 if what == "add" else TABLE), "the kernel chooses the table of a new filter"
        found.append((what, info >> 16, handle & 0xFFF))
    return found


def test_an_order_that_is_there_needs_nothing() -> None:
    assert changed({3: 0, 46: 1}, {3: 0, 46: 1}) == []


def test_a_job_whose_class_changes_is_led_elsewhere_and_no_other() -> None:
    done = changed({3: 0, 46: 1}, {3: 0, 46: 2})
    assert [what for what, _, _ in done] == ["lead"] * 4, "over IPv4 and IPv6, with and without a VLAN"
    assert ("lead", DSCP_PREF, 46) in done


def test_a_job_that_goes_and_one_that_comes_change_only_their_own_filters() -> None:
    done = changed({3: 0, 46: 1}, {3: 0, 7: 1})
    assert [what for what, _, _ in done] == ["remove"] * 4 + ["add"] * 4
    assert {number & 0x3F for what, _, number in done if what == "add"} == {7}
    assert {number & 0x3F for what, _, number in done if what == "remove"} == {46}


def test_filters_of_others_stay_and_one_of_ours_that_compares_something_else_is_made_anew() -> None:
    of_others = Filter(1, 2, 0x800, leaf(0), "something else")
    spoiled = Filter(DSCP_PREF, 3, 0x800, leaf(0), "something else")
    present = [each for each in installed({3: 0}) if each[:2] != spoiled[:2]]
    kinds = [
        (kind == FILTER, flags != 0)
        for kind, flags, _, _ in changes([*present, of_others, spoiled], OF_JOBS.in_order({3: 0}))
    ]
    assert kinds == [(False, False), (True, True)]
