"""The text for tc and iptables: pure, so that what it must never say can be tried at length."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.code_points import CLASS_SELECTORS, POOL_2, code_points
from controller.wire import Mark
from host_reporter.marking.rules_text import MarkError, SentBytes, counts, removal, switch_over
from host_reporter.nic.tree import HANDLE, MTU, burst_bytes, htb_tree


@given(
    rate=st.floats(1e3, 1e12),
    classes=st.integers(1, 7),
    floor=st.floats(0.0, 0.1),
    other=st.floats(0.0, 0.3),
)
def test_a_tree_has_a_leaf_and_a_filter_a_class_and_floors_within_the_link(
    rate: float, classes: int, floor: float, other: float
) -> None:
    lines = htb_tree("eth0", rate, POOL_2.first(classes), floor, other)
    leaves = [line for line in lines if f"parent {HANDLE}:1 classid" in line]
    assert [re.findall(r"prio (\d)", line) for line in leaves] == [[str(k)] for k in range(classes)] + [["7"]]
    floors = sum(int(re.findall(r"rate (\d+)bit", line)[0]) for line in leaves)
    assert floors <= round(rate) + 16 * len(leaves)
    assert sum("match ip tos" in line for line in lines) == classes + 1
    assert f"match ip tos 0xfc 0xfc flowid {HANDLE}:10" in "".join(lines), "acknowledgements go with class 0"
    assert all(int(limit) >= 2 * 65536 for line in lines for limit in re.findall(r"limit (\d+)", line))
    assert not any("\n" in line for line in lines)


def test_a_tree_serves_the_dscps_of_the_plan() -> None:
    lines = "\n".join(htb_tree("eth0", 1e8, CLASS_SELECTORS.first(2), 0.01, 0.1))
    assert re.findall(r"match ip tos (\S+) 0xfc flowid \S+:(\S+)", lines) == [("0xe0", "10"), ("0xc0", "11")]


def test_a_tree_serves_the_dscps_of_jobs_with_the_class_of_the_moment() -> None:
    points = replace(POOL_2.first(3), jobs=(3, 46), order=((3, 2), (46, 0)))
    lines = "\n".join(htb_tree("eth0", 1e8, points, 0.01, 0.1))
    found = re.findall(r"match ip tos (\S+) 0xfc flowid \S+:(\S+)", lines)
    assert found == [("0x0c", "12"), ("0xb8", "10"), ("0xfc", "10")]
    assert lines.count("bfifo") == 4, "each class has its leaf, whether a job is in it or not"
    no_jobs = "\n".join(htb_tree("eth0", 1e8, replace(POOL_2, acknowledgements=None, jobs=()), 0.01, 0.1))
    assert "match ip tos" not in no_jobs


@pytest.mark.parametrize(
    ("rate", "burst"), [(1e6, 2 * MTU), (10e6, 2 * MTU), (25e6, 3_125), (100e6, 12_500), (10e9, 1_250_000)]
)
def test_a_burst_is_a_millisecond_of_the_link_and_at_least_two_packets(rate: float, burst: int) -> None:
    assert burst_bytes(rate) == burst


@pytest.mark.parametrize(
    ("rate", "dscps", "floor", "other"),
    [
        (1e8, (), 0.01, 0.1),
        (1e8, tuple(range(1, 9)), 0.01, 0.1),
        (1e8, (8, 8), 0.01, 0.1),
        (1e8, (0,), 0.01, 0.1),
        (1e8, (64,), 0.01, 0.1),
        (1e8, (63,), 0.01, 0.1),
        (1e8, (8, 16), 0.5, 0.1),
        (1e8, (8,), -0.1, 0.1),
        (1e8, (8,), float("nan"), 0.1),
        (0.0, (8,), 0.01, 0.1),
        (float("nan"), (8,), 0.01, 0.1),
    ],
)
def test_a_tree_that_cannot_be(rate: float, dscps: tuple[int, ...], floor: float, other: float) -> None:
    with pytest.raises(ValueError, match=r"class|DSCP|floor|rate"):
        htb_tree("eth0", rate, code_points(dscps, 63), floor, other)


@given(st.text(min_size=1, max_size=40))
def test_a_mark_puts_nothing_but_an_address_into_the_text(remote: str) -> None:
    mark = Mark(job="a", service_class=0, dscp=8, remote=remote)
    try:
        text = switch_over([mark], 0, jump=True)
    except MarkError:
        return
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", remote)
    assert f"-d {remote} " in text


def test_counts_live_on_over_a_change_and_are_forgotten_with_the_job() -> None:
    a, b = (Mark(job=job, service_class=0, dscp=8, local_port=1) for job in "ab")
    sent = SentBytes()

    def counted() -> dict[str, float]:
        return {job: count.bytes for job, count in sent.totals().items()}

    sent.count([a, a, b], [1, 2, 4])
    sent.change([b, a])
    sent.count([b, a], [8, 16])
    assert counted() == {"a": 19, "b": 12}
    sent.count([b, a], [1])
    assert counted() == {"a": 19, "b": 12}, "counters that do not fit the marks are not believed"
    sent.change([a])
    assert counted() == {"a": 19}


def test_only_our_own_chains_are_counted_and_removed() -> None:
    saved = (
        "*mangle\n:OUTPUT ACCEPT [0:0]\n:TRAINYARD - [0:0]\n:TRAINYARD-A - [0:0]\n:TRAINYARDS - [0:0]\n"
        "[5:500] -A OUTPUT -j TRAINYARD\n[3:300] -A TRAINYARD-A -p tcp -g TRAINYARD-D8\n[1:9] -A TRAINYARDS -j DROP\n"
    )
    assert counts(saved) == {"TRAINYARD-A": (300,)}
    assert "TRAINYARDS" not in removal(saved)
    assert removal(saved).count("-D OUTPUT") == 1
