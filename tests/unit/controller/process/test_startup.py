from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from controller.config.config import Config
from controller.config.values import socket_name
from controller.dataplane.values import Settings
from controller.process.startup import StartError, control_endpoints, dataplane_settings, free_port
from controller.rules.compiler import Endpoint
from evaluation.bench.support.waiting import wait_until

OPENFLOW_HELLO = b"\x04\x00"
"""The version (1.3) and the type of the message with which a connection begins."""
HOST = {"name": "h1", "address": "10.0.0.1", "switch": 1, "port": 3, "ingress_bps": 5e7}


def config(**settings: object) -> Config:
    return Config.model_validate(settings)


def settings_of(**settings: object) -> Settings:
    made = config(**settings)
    return dataplane_settings(made, made.host_map())


def test_a_hosts_ingress_is_the_rate_of_its_switch_port() -> None:
    assert settings_of(hosts=[HOST]).rates_bps == {(1, 3): 5e7}


def test_a_links_rate_is_that_of_the_ports_at_both_ends() -> None:
    links = [{"a": 1, "a_port": 9, "b": 2, "b_port": 8, "rate_bps": 4e7}, {"a": 1, "a_port": 7, "b": 3, "b_port": 1}]
    assert settings_of(hosts=[HOST], links=links).rates_bps == {(1, 3): 5e7, (1, 9): 4e7, (2, 8): 4e7}


def test_untrusted_hosts_are_known_by_their_ports() -> None:
    assert settings_of(hosts=[HOST], untrusted_hosts=["h1"]).untrusted == {(1, 3)}


def test_ports_of_control_traffic_reach_the_dataplane() -> None:
    made = settings_of(control_traffic={"ports": [{"switch": "0000000000000002", "port": 9}], "share": 0.05})
    assert (made.control_ports, made.control_share) == ({(2, 9)}, 0.05)
    assert (settings_of().control_ports, settings_of().control_share) == (frozenset(), 0.01)


def test_the_controllers_own_sockets_count_where_others_can_reach_them() -> None:
    assert control_endpoints(config()) == ()
    reachable = config(api={"host": "10.0.0.9", "token": "0123456789"}, openflow={"host": "10.0.0.9", "insecure": True})
    assert control_endpoints(reachable) == (Endpoint("10.0.0.9", 8080), Endpoint("10.0.0.9", 6653))
    assert control_endpoints(config(openflow={"host": "0.0.0.0", "insecure": True})) == ()


def test_what_listens_everywhere_is_known_by_the_addresses_that_are_given() -> None:
    everywhere = {"api": {"host": "0.0.0.0", "token": "0123456789"}, "openflow": {"host": "0.0.0.0", "insecure": True}}
    assert control_endpoints(config(**everywhere, control_addresses=["10.0.0.9", "10.1.0.9"])) == (
        Endpoint("10.0.0.9", 8080),
        Endpoint("10.1.0.9", 8080),
        Endpoint("10.0.0.9", 6653),
        Endpoint("10.1.0.9", 6653),
    )
    one = {"openflow": {"host": "10.0.0.9", "port": 6653, "insecure": True}}
    assert control_endpoints(config(**one, control_addresses=["10.0.0.9"])) == (Endpoint("10.0.0.9", 6653),)
    assert control_endpoints(config(control_addresses=["10.0.0.9"])) == (), "loopback reaches nobody"


def test_the_controllers_own_sockets_may_have_ipv6_addresses() -> None:
    one = {"openflow": {"host": "fd00:0::9", "port": 6653, "insecure": True}}
    assert control_endpoints(config(**one)) == (Endpoint("fd00::9", 6653),)
    everywhere = {"openflow": {"host": "::", "port": 6653, "insecure": True}}
    assert control_endpoints(config(**everywhere)) == ()
    given = config(**everywhere, control_addresses=["FD00::9", "10.0.0.9"])
    assert control_endpoints(given) == (Endpoint("fd00::9", 6653), Endpoint("10.0.0.9", 6653))
    assert control_endpoints(config(openflow={"host": "fe80::9%eth0", "insecure": True})) == ()


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"OpenFlow cannot listen on 127.0.0.1:{port}"):
            free_port("OpenFlow", "127.0.0.1", port)
    assert free_port("OpenFlow", "127.0.0.1", port) == port
    assert free_port("OpenFlow", "127.0.0.1", 0) > 0


def start(tmp_path: Path, settings: str) -> subprocess.Popen[str]:
    path = tmp_path / "controller.yaml"
    path.write_text(settings)
    manager = str(Path(sys.executable).parent / "ryu-manager")
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", manager, "controller.app"],
        env=os.environ | {"TRAINYARD_CONFIG": str(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_wrong_settings_are_one_line_and_status_2(tmp_path: Path) -> None:
    with start(tmp_path, "policy: fair\nclases: 3\n") as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"trainyard: {tmp_path}/controller.yaml:2: clases" in out
    assert "Traceback" not in out


def answers(process: subprocess.Popen[str], url: str) -> bool:
    """Whether the API answers yet; a controller that has ended will not."""
    assert process.poll() is None, process.communicate()[0]
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.ConnectionError:
        return False


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_starts_answers_and_ends_cleanly(tmp_path: Path, host: str) -> None:
    port, openflow = free_port("the API", host, 0), free_port("OpenFlow", host, 0)
    url = f"http://{socket_name(host, port)}"
    settings = f'api: {{host: "{host}", port: {port}}}\nopenflow: {{host: "{host}", port: {openflow}}}\n'
    with start(tmp_path, settings) as process:
        wait_until(lambda: answers(process, url), 60, what="the controller's first answer")
        assert requests.get(f"{url}/readyz", timeout=5).status_code == 503
        with socket.create_connection((host, openflow), 20) as switch:
            assert switch.recv(2) == OPENFLOW_HELLO
        with start(tmp_path, settings) as second:
            assert second.wait(60) == 1
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in out
    assert f"the API listens on {url}\n" in out


WAYS = {"ryu-manager": ["controller.app"], "trainyard": ["controller"]}
"""Programs that start the controller, and their arguments."""


def begin(way: str, settings: Path) -> subprocess.Popen[str]:
    """As a user does: nothing asks Python for warnings, or for none."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    return subprocess.Popen(
        [str(Path(sys.executable).with_name(way)), *WAYS[way]],
        env=environment | {"TRAINYARD_CONFIG": str(settings)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def lines_until(process: subprocess.Popen[str], said: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if said in line:
            return lines
    raise AssertionError(f"it has ended and said {lines}")


def test_it_does_and_says_the_same_however_it_is_started(tmp_path: Path) -> None:
    settings = tmp_path / "controller.yaml"
    settings.write_text("policy: fair\nclases: 3\n")
    said: dict[str, list[str]] = {}
    wrong: dict[str, tuple[int, str]] = {}
    for way in WAYS:
        with begin(way, settings) as process:
            out, _ = process.communicate(timeout=60)
            wrong[way] = process.returncode, out.splitlines()[-1]
    port = free_port("the API", "127.0.0.1", 0)
    settings.write_text(f"api: {{port: {port}}}\nopenflow: {{port: 0}}\n")
    for way in WAYS:
        with begin(way, settings) as process:
            lines = lines_until(process, "the API listens")
            process.send_signal(signal.SIGHUP)
            lines += lines_until(process, "the settings have been read again for SIGHUP; changes: 0")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)
            said[way] = [*lines, *out.splitlines(), f"status {process.returncode}"]
    assert (
        wrong["ryu-manager"]
        == wrong["trainyard"]
        == (2, f"trainyard: {settings}:2: clases: unknown key; did you mean classes?")
    )
    assert said["ryu-manager"] == said["trainyard"]
    assert said["trainyard"][-1] == "status 0"
    assert not [line for line in said["trainyard"] if "arning" in line or "RLock" in line or "Traceback" in line]


@pytest.mark.parametrize(("way", "number"), [("ryu-manager", signal.SIGTERM), ("trainyard", signal.SIGINT)])
def test_a_stop_while_it_starts_is_a_clean_end(tmp_path: Path, way: str, number: signal.Signals) -> None:
    settings = tmp_path / "controller.yaml"
    settings.write_text("openflow: {port: 0}\n")
    with begin(way, settings) as process:
        lines_until(process, "loading app controller.app")
        process.send_signal(signal.SIGHUP)
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in out


COLLECTED = """
import gc
import eventlet
from controller.process.startup import steady_the_interpreter
def whole():
    return gc.get_stats()[2]["collections"]
steady_the_interpreter(collect_seconds={seconds})
before = whole()
kept = [[n] for n in range(2_000_000)]
middle = gc.get_stats()[1]["collections"]
print(whole() - before, middle > 0)
eventlet.sleep(0.2)
print(whole() > before)
"""


@pytest.mark.parametrize(("seconds", "collected"), [("3600.0", "False"), ("0.05", "True")])
def test_no_request_waits_for_a_collection_of_everything(seconds: str, collected: str) -> None:
    """It comes with the time, and not with the memory that a request takes."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COLLECTED.format(seconds=seconds)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "True", collected], done.stderr
