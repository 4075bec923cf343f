"""A described network: what other jobs leave of it, and its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.wire import DemandSpec
from deepprophet.errors import InputError
from deepprophet.predict import network
from deepprophet.predict.network import GOODPUT, Load, Placement
from tests.support.prophet_links import even


def test_other_jobs_leave_the_rest_but_never_less_than_a_fair_share() -> None:
    busy = (Load(src="h1", dst="h2", bps=4e6 / GOODPUT),)
    net = even(2).model_copy(update={"loads": busy})
    left = network.left_bps(net)
    assert network.seconds(left, [DemandSpec(src="h1", dst="h2", bytes=1e6)]) == pytest.approx(2.0)
    assert network.seconds(left, [DemandSpec(src="h2", dst="h1", bytes=1e6)]) == pytest.approx(1.0)
    flood = (Load(src="h1", dst="h2", bps=9e15 / 10, flows=3),)
    net = even(2).model_copy(update={"loads": flood})
    left = network.left_bps(net)
    assert network.seconds(left, [DemandSpec(src="h1", dst="h2", bytes=1e6)]) == pytest.approx(4.0)


def test_network_file(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(
        "hosts:\n  - {name: a, ingress_bps: 1.0e+9, egress_bps: 2.0e+9}\n  - {name: b, machine: m, cores: 2}\n"
        "latency_seconds: 0.001\nloads:\n  - {src: a, dst: b, bps: 1000000}\nworkers: [b, a]\nps: [a]\n"
    )
    found = network.read(path)
    assert network.place(found, 3, "ps") == Placement(("b", "a", "b"), ("a",))
    assert [(host.machine, host.cores) for host in found.hosts] == [(None, None), ("m", 2)]
    assert {host.egress_bps for host in network.at_rate(found, 5e6).hosts} == {5e6}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hosts: []\n", ":1: hosts: "),
        ("hosts:\n  - {name: a}\n  - {name: a}\n", ":1: two hosts have the same name"),
        ("hosts:\n  - {name: a}\nworkers: [b]\n", ":1: b is none of the hosts; there are a"),
        ("hosts:\n  - {name: a}\n  - {name: b, egress_bps: -1}\n", ":3: hosts[1].egress_bps: "),
        ("hosts:\n  - {name: a}\nspeed: 7\n", ":3: speed: "),
        ("hosts: [\n", ":"),
        ("- a\n", ":1: it must be keys"),
        ("", ":1: is empty; it must hold a network: hosts"),
    ],
)
def test_wrong_network_file(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        network.read(path)
    assert str(refused.value).startswith(f"{path}{told}")
    assert "\n" not in str(refused.value)


def test_network_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        network.read(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="no UTF-8"):
        network.read(tmp_path / "x.yaml")
