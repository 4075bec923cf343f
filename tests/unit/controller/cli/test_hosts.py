"""``trainyard hosts`` against a real controller: the list, decisions on one and on many, and removal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from controller.cli.main import main
from tests.support.controller.api.roles_yard import RolesYard


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    yard = RolesYard(tmp_path_factory.mktemp("cli-hosts"), enrolment={})
    try:
        yield yard.start()
    finally:
        yard.stop()


@pytest.fixture
def yard(shared: RolesYard) -> Iterator[RolesYard]:
    yield shared
    for host in shared.call("GET", "/v1/hosts").json()["hosts"]:
        shared.call("DELETE", f"/v1/hosts/{host['name']}?force=true")


@pytest.fixture
def run(yard: RolesYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("TRAINYARD_URL", yard.url)
    monkeypatch.setenv("TRAINYARD_TOKEN", yard.tokens["night"])

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main(("hosts", *arguments))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return command


def ask(yard: RolesYard, number: int, **changed: Any) -> None:
    told = {"addresses": [f"10.0.0.{number}"], "token_sha256": f"{number:064x}"} | changed
    assert yard.by("rack", "PUT", f"/v1/hosts/h{number}", {"request": told}).ok


def states(yard: RolesYard) -> dict[str, str]:
    return {host["name"]: host["state"] for host in yard.call("GET", "/v1/hosts").json()["hosts"]}


def test_the_list_has_all_hosts(yard: RolesYard, run: Any) -> None:
    ask(yard, 7)
    status, out, err = run()
    assert (status, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert "listed" in rows["h1"]
    assert "pending" in rows["h7"] and "1 Gbit/s (not told)" in rows["h7"]
    status, out, _ = run("--json")
    assert [host["name"] for host in json.loads(out)["hosts"]] == ["h1", "h2", "h3", "h7"]


def test_one_is_approved_with_what_the_operator_knows(yard: RolesYard, run: Any) -> None:
    ask(yard, 7)
    status, out, _ = run("approve", "h7", "--rate-bps", "25e9", "--switch", "a1", "--port", "4", "--json")
    (host,) = json.loads(out)["hosts"]
    assert (status, host["state"], host["switch"], host["port"]) == (0, "approved", f"{0xA1:016x}", 4)
    assert (host["ingress_bps"], host["egress_bps"], host["found_by"]) == (25e9, 25e9, "operator")


def test_all_without_problems_are_approved_together(yard: RolesYard, run: Any) -> None:
    for number in (7, 8, 9):
        ask(yard, number)
    ask(yard, 10, addresses=["10.0.0.9"])
    status, _, err = run("approve", "--all")
    assert status == 0
    assert {name: states(yard)[name] for name in ("h7", "h8", "h9", "h10")} == {
        "h7": "approved",
        "h8": "approved",
        "h9": "pending",
        "h10": "pending",
    }
    assert "h9 is left out: the address 10.0.0.9 is that of h10, which waits too" in err
    assert run("refuse", "--all")[0] == 0
    assert states(yard)["h9"] == states(yard)["h10"] == "refused"


def test_what_is_refused_is_said_and_the_others_go_on(yard: RolesYard, run: Any) -> None:
    ask(yard, 7)
    status, out, err = run("approve", "nobody", "h7", "h1")
    assert status == 2
    assert "h7" in out and "approved" in out
    assert "nobody: " in err and "no host nobody has asked to be enrolled" in err
    assert "h1 is a host of the settings" in err


def test_a_host_with_jobs_is_removed_by_force(yard: RolesYard, run: Any) -> None:
    ask(yard, 7)
    run("approve", "h7")
    tasks = [{"role": "ps", "host": "h7", "port": 5000}, {"role": "worker", "host": "h1"}]
    assert yard.call("PUT", "/v1/jobs/a", {"tasks": tasks}).ok
    status, _, err = run("remove", "h7")
    assert (status, "jobs run on h7: a;" in err) == (1, True)
    assert run("remove", "h7", "--force")[0] == 0
    assert "h7" not in states(yard)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("approve",), "hosts approve: name the hosts"),
        (("remove", "--all"), "--all is for approve and refuse"),
        (("approve", "h7", "--all"), "--all is for approve and refuse, without names"),
        (("approve", "h7", "--force"), "--force is for remove"),
        (("refuse", "h7", "--port", "3"), "--port is for approve, with one NAME"),
        (("approve", "h7", "h8", "--rate-bps", "1e9"), "--rate-bps is for approve, with one NAME"),
        (("approve", "h7", "--port", "3"), "a port needs its switch"),
        (("approve", "h7", "--switch", "xyz", "--port", "3"), "'xyz' is no datapath id"),
    ],
)
def test_options_that_do_not_fit_are_wrong_input(run: Any, arguments: tuple[str, ...], said: str) -> None:
    status, _, err = run(*arguments)
    assert status == 2
    assert said in err


def test_the_list_says_where_each_interface_is(yard: RolesYard, run: Any) -> None:
    links = [{"interface": f"eth{n}", "addresses": [f"10.{n}.0.7"], "mac": f"02:00:00:00:0{n}:07"} for n in (0, 1)]
    ask(yard, 7, interface="eth0", mac="02:00:00:00:00:07", links=links)
    status, out, err = run("approve", "h7", "--switch", "0x2", "--port", "7")
    assert (status, err) == (0, "")
    assert "eth0 0000000000000002:7, eth1 -" in out and "10.0.0.7, 10.1.0.7" in out
