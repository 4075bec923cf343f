"""How what one server sends to another is spread over their interfaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.endpoints.servers import Servers
from controller.endpoints.spread import shares, spread
from controller.model import Demand, Host, server_of


def hosts(**rates: list[float]) -> dict[str, Host]:
    """Returns servers with an interface for each rate, in both directions."""
    found = {}
    for server, each in rates.items():
        for k, rate in enumerate(each):
            name = f"{server}/r{k}" if len(each) > 1 else server
            found[name] = Host(name, rate, rate, f"10.{k}.0.{ord(server[0])}", interface=f"r{k}")
    return found


def test_a_server_with_one_interface_is_its_own_endpoint() -> None:
    servers = Servers(hosts(a=[1e9], b=[1e9]))
    assert not servers.have_several
    assert spread(servers, (Demand("a", "b", 5.0),)) == (Demand("a", "b", 5.0),)


def test_two_servers_with_as_many_interfaces_send_rail_to_rail() -> None:
    servers = Servers(hosts(a=[1e9, 1e9], b=[1e9, 1e9]))
    assert servers.have_several and list(servers) == ["a", "b"]
    assert spread(servers, (Demand("a", "b", 6.0),)) == (Demand("a/r0", "b/r0", 3.0), Demand("a/r1", "b/r1", 3.0))


def test_a_rail_takes_part_by_its_slower_end() -> None:
    servers = Servers(hosts(a=[4e9, 4e9], b=[3e9, 1e9]))
    assert spread(servers, (Demand("a", "b", 8.0),)) == (Demand("a/r0", "b/r0", 6.0), Demand("a/r1", "b/r1", 2.0))


def test_other_servers_send_over_all_by_rate() -> None:
    servers = Servers(hosts(a=[3e9, 1e9], b=[1e9], c=[1e9, 1e9, 2e9]))
    assert spread(servers, (Demand("a", "b", 8.0),)) == (Demand("a/r0", "b", 6.0), Demand("a/r1", "b", 2.0))
    assert spread(servers, (Demand("a", "c", 8.0),)) == (
        Demand("a/r0", "c/r0", 2.0),
        Demand("a/r0", "c/r1", 2.0),
        Demand("a/r0", "c/r2", 2.0),
        Demand("a/r1", "c/r2", 2.0),
    )


@pytest.mark.parametrize(
    ("src", "dst", "expected"),
    [
        ("a/r1", "b/r0", [("a/r1", "b/r0")]),
        ("a", "b/r1", [("a/r1", "b/r1")]),
        ("a/r0", "b", [("a/r0", "b/r0")]),
        ("a/gone", "b/r1", [("a/r1", "b/r1")]),
        ("unknown", "b/r1", [("unknown", "b/r1")]),
        ("unknown", "b", [("unknown", "b/r0"), ("unknown", "b/r1")]),
        ("unknown", "other", [("unknown", "other")]),
    ],
)
def test_what_is_known_of_an_end_stays(src: str, dst: str, expected: list[tuple[str, str]]) -> None:
    found = shares(Servers(hosts(a=[1e9, 1e9], b=[1e9, 1e9])), src, dst)
    assert [(share.src, share.dst) for share in found] == expected
    assert sum(share.share for share in found) == pytest.approx(1.0)


RATES = st.lists(st.floats(1e3, 1e13), min_size=1, max_size=16)


@given(RATES, RATES)
def test_nothing_is_lost_and_there_are_few_pairs(out: list[float], into: list[float]) -> None:
    known = hosts(a=out, b=into)
    found = spread(Servers(known), (Demand("a", "b", 1000.0),))
    assert sum(demand.bytes for demand in found) == pytest.approx(1000.0)
    assert all(demand.bytes > 0 for demand in found)
    assert len(found) <= len(out) + len(into)
    assert {server_of(demand.src) for demand in found} == {"a"} and {demand.dst for demand in found} <= known.keys()
    if len(out) != len(into):
        for name in (name for name in known if server_of(name) == "a"):
            sent = sum(demand.bytes for demand in found if demand.src == name)
            assert sent == pytest.approx(1000.0 * known[name].egress_bps / sum(out), rel=1e-6, abs=1e-6)
