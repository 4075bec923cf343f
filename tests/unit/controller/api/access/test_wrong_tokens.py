"""Wrong tokens are counted, logged once, and slowed down by their address, without slowing others."""

from __future__ import annotations

import re
import statistics
import time

from controller.access.throttle import BURST
from controller.access.tokens.hashes import new_token
from tests.support.controller.api.cases import assert_problem
from tests.support.controller.api.from_address import ask
from tests.support.controller.api.roles_yard import RolesYard


def counted(yard: RolesYard, proof: str) -> int:
    found = re.search(rf'trainyard_wrong_tokens_total{{proof="{proof}"}} (\d+)', yard.call("GET", "/metrics").text)
    return int(found.group(1)) if found else 0


def test_guesses_are_slowed_while_a_client_at_another_address_is_not(yard: RolesYard) -> None:
    url, good = yard.url + "/v1/jobs", yard.tokens["board"]
    before = statistics.median(_seconds("127.0.0.3", url, good) for _ in range(20))
    began = time.monotonic()
    statuses, meanwhile = [], []
    for _ in range(BURST + 40):
        statuses.append(ask("127.0.0.2", url, new_token()).status_code)
        meanwhile.append(_seconds("127.0.0.3", url, good))
    seconds = time.monotonic() - began
    assert set(statuses) == {401, 429}
    assert statuses.count(401) <= BURST + seconds + 1, "one guess a second"
    assert statistics.median(meanwhile) < 3 * before + 0.01
    slowed = ask("127.0.0.2", url, good)
    assert_problem(slowed, 429, "too many wrong tokens have come from 127.0.0.2")
    assert slowed.headers["Retry-After"] == "1"
    assert ask("127.0.0.2", url).status_code == 401, "without a token nothing is guessed"
    assert counted(yard, "token") == statuses.count(401)
    assert counted(yard, "slowed") >= statuses.count(429)


def _seconds(address: str, url: str, token: str) -> float:
    began = time.monotonic()
    assert ask(address, url, token).status_code == 200
    return time.monotonic() - began


def test_a_peer_is_logged_once_a_minute(yard: RolesYard) -> None:
    for number in range(8):
        assert ask("127.0.0.4", yard.url + "/v1/jobs", f"guess-number-{number}").status_code == 401
    assert ask("127.0.0.5", yard.url + "/v1/jobs", "guess").status_code == 401
    lines = [line for line in yard.log().splitlines() if "is refused" in line]
    assert sum("127.0.0.4" in line for line in lines) == 1
    assert sum("127.0.0.5" in line for line in lines) == 1
    assert "guess" not in yard.log()


def test_an_address_that_was_slowed_is_heard_again(yard: RolesYard) -> None:
    url, good = yard.url + "/v1/jobs", yard.tokens["board"]
    while ask("127.0.0.6", url, "wrong").status_code == 401:
        pass
    time.sleep(1.1)
    assert ask("127.0.0.6", url, good).status_code == 200
