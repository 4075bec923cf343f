"""The audit where callers have roles: who was refused by name, who guessed, and what was changed without a request."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.access.audit.pace import A_MINUTE
from controller.access.throttle import BURST
from controller.access.tokens.hashes import hashed, new_token
from evaluation.bench.support.api_client import HOST, OPERATOR
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, spec
from tests.support.controller.api.from_address import ask
from tests.support.controller.api.roles_yard import LINES, RolesYard


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    folder = tmp_path_factory.mktemp("audit-roles")
    controller = RolesYard(folder, audit={"file": str(folder / "audit.jsonl")})
    controller.start()
    yield controller
    controller.stop()


def records(yard: RolesYard, since: int) -> list[dict[str, Any]]:
    return list(yard.call("GET", f"/v1/audit?since={since}").json()["records"])


def head(yard: RolesYard) -> int:
    return int(yard.call("GET", "/v1/audit").json()["newest"])


def test_a_tenants_tries_at_a_job_of_others_have_its_name(yard: RolesYard) -> None:
    yard.by("speech", "PUT", "/v1/jobs/theirs", spec(5000, user="cem"))
    since = head(yard)
    assert yard.by("vision", "PUT", "/v1/jobs/theirs", spec(5000, user="ann")).status_code == 403
    assert yard.by("vision", "DELETE", "/v1/jobs/theirs").status_code == 404
    assert yard.by("vision", "PATCH", "/v1/settings", {"pause": True}).status_code == 403
    taken, removed, paused = records(yard, since)
    for record in (taken, removed, paused):
        assert (record["who"], record["role"], record["outcome"]) == ("vision", "tenant", "refused")
        assert record["address"] == "127.0.0.1"
        assert (record["before"], record["after"]) == (None, None)
    assert (taken["action"], taken["path"], taken["status"]) == ("PUT /v1/jobs/{id}", "/v1/jobs/theirs", 403)
    assert taken["detail"] == "vision cannot have the name theirs; choose another"
    assert (removed["action"], removed["status"]) == ("DELETE /v1/jobs/{id}", 404)
    assert paused["status"] == 403
    assert yard.call("GET", "/v1/settings").json()["pause"] is False
    yard.by("speech", "DELETE", "/v1/jobs/theirs")


def test_only_operators_read_it_and_who_else_tries_is_in_it(yard: RolesYard) -> None:
    for name, role in (("board", "viewer"), ("vision", "tenant"), ("h1", "host")):
        since = head(yard)
        assert_problem(yard.by(name, "GET", "/v1/audit"), 403, "GET /v1/audit is for: operator")
        (record,) = records(yard, since)
        assert (record["who"], record["role"], record["action"]) == (name, role, "GET /v1/audit")


def test_guesses_that_are_slowed_down_are_in_it_and_cannot_fill_it(yard: RolesYard) -> None:
    since = head(yard)
    statuses = [ask("127.0.0.2", yard.url + "/v1/jobs", f"guess-{n}").status_code for n in range(BURST + 40)]
    found = records(yard, since)
    assert {(record["who"], record["address"]) for record in found} == {("unknown", "127.0.0.2")}
    recorded = [record["status"] for record in found]
    assert (recorded.count(401), recorded.count(429)) == (A_MINUTE, A_MINUTE)
    skipped = sum(record["skipped"] or 0 for record in found)
    yard.by("board", "GET", "/v1/audit")
    (record,) = records(yard, since + len(found))
    assert skipped + record["skipped"] == len(statuses) - 2 * A_MINUTE
    assert "guess-" not in json.dumps(found)


def test_a_changed_tokens_file_is_in_it_without_any_token(yard: RolesYard) -> None:
    since = head(yard)
    yard.keep(*(name for name in LINES if name != "speech"))
    try:
        (changed,) = records(yard, since)
        assert (changed["who"], changed["role"], changed["outcome"]) == ("night", "operator", "done")
        assert changed["action"] == "POST /v1/reload"
        assert changed["before"]["api.tokens_file:speech"]["users"] == ["cem"]
        assert changed["after"]["api.tokens_file:speech"] is None
        # Each is hashed anew, with another salt.
        night = "api.tokens_file:night"
        assert changed["before"][night]["token"] != changed["after"][night]["token"]
        since = head(yard)
        yard.tokens_file.write_text(f"night: {yard.tokens['night']}\n")
        assert yard.by("night", "POST", "/v1/reload").status_code == 422
        (wrong,) = records(yard, since)
        assert (wrong["who"], wrong["outcome"]) == ("night", "refused")
        assert "it must be a mapping with a role and a hash" in wrong["detail"]
        since = head(yard)
        assert yard.process is not None
        yard.process.send_signal(signal.SIGHUP)
        wait_until(lambda: records(yard, since), every=0.2, what="the record of the signal")
        (wrong,) = records(yard, since)
        assert (wrong["who"], wrong["role"], wrong["action"]) == ("signal", "machine", "reload")
        assert (wrong["address"], wrong["outcome"]) == (socket.gethostname(), "refused")
    finally:
        yard.keep(*LINES)
    assert yard.by("speech", "GET", "/v1/jobs").status_code == 200
    newest = yard.call("GET", "/v1/audit").json()
    file = Path(yard.settings["audit"]["file"])
    wait_until(lambda: newest["newest_hash"] in file.read_text())
    hashes = [line.partition('hash: "')[2].partition('"')[0] for line in yard.tokens_file.read_text().splitlines()]
    assert len(hashes) == len(LINES)
    for secret in (*yard.tokens.values(), *hashes, *(part for text in hashes for part in text.split(":")[1:])):
        assert secret not in file.read_text()


def test_who_has_the_name_of_another_keeps_no_try_of_that_one_out(tmp_path: Path) -> None:
    yard = RolesYard(tmp_path, api={"token": OPERATOR, "host_tokens": {"h2": HOST}})
    namesake = new_token()
    with yard.tokens_file.open("a") as stream:
        stream.write(f'h2: {{role: viewer, hash: "{hashed(namesake)}"}}\n')
    yard.start()
    try:
        for _ in range(A_MINUTE + 5):
            assert yard.call("GET", "/v1/audit", token=namesake).status_code == 403
        since = head(yard)
        assert yard.call("GET", "/v1/audit", token=HOST).status_code == 403
        (record,) = records(yard, since)
        assert (record["who"], record["role"], record["proof"]) == ("h2", "host", "token")
    finally:
        yard.stop()
