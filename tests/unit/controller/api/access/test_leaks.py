"""Tokens are nowhere but where they were given: not in logs, answers, addresses, process lists, or the journal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controller.access.tokens.hashes import new_token
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import spec
from tests.support.controller.api.from_address import ask
from tests.support.controller.api.roles_yard import RolesYard
from tests.support.controller.tls.signer import rsa_key, signed

SECRETS = ["settings-" + new_token(), "of-host-" + new_token()]
GUESSES = ["guess-" + new_token(), signed(rsa_key()), "Basic-" + new_token()]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    folder = tmp_path_factory.mktemp("leaks")
    api = {"token": SECRETS[0], "host_tokens": {"h2": SECRETS[1]}, "metrics_port": free_port()}
    controller = RolesYard(folder, api=api, journal=str(folder / "journal"), audit={"file": str(folder / "audit")})
    controller.start(wrapper=["env"])  # a process of its own, with its own arguments
    yield controller
    controller.stop()


def secrets(yard: RolesYard) -> list[str]:
    return [*SECRETS, *GUESSES, *yard.tokens.values()]


def assert_clean(yard: RolesYard, text: str, where: str) -> None:
    for secret in secrets(yard):
        assert secret[:30] not in text, where


def in_wrong_places(yard: RolesYard, token: str) -> Iterator[tuple[Path, str]]:
    """Yields files and texts in which somebody has put a token where none belongs."""
    for line in (
        f"a: {token}",
        f"a: {{role: {token}}}",
        f"a: {{role: viewer, certificate: {token}}}",
        f"a: {{role: viewer, expires: {token}, certificate: a}}",
        f"a: {{role: tenant, users: [{token}], certificate: a}}",
        f"{token}: {{role: viewer, certificate: a}}",
        f"a: *{token}",
        f"{token}",
    ):
        yield yard.tokens_file, f"{line}\n"
    for name in ("host", "port", "tokens_file", "tls_certificate", "client_authority", "host_jobs", token):
        yield yard.config, yaml.safe_dump(yard.settings | {"api": yard.settings["api"] | {name: token}})
    for name in ("policy", "ovsdb", "hosts", "untrusted_hosts", "mode", token):
        yield yard.config, yaml.safe_dump(yard.settings | {name: [token] if name == "untrusted_hosts" else token})


def test_no_answer_log_metric_or_file_shows_a_token(yard: RolesYard) -> None:
    answers = []
    for token in secrets(yard):
        for method, path, body in (
            ("GET", "/v1/jobs", None),
            ("PUT", "/v1/jobs/a", spec(5000)),
            ("PUT", "/v1/jobs/a", {"wrong": 1}),
            ("GET", "/v1/nothing", None),
            ("GET", f"/v1/jobs?token={token}", None),
            ("GET", "/v1/settings", None),
            ("GET", "/openapi.json", None),
        ):
            answers.append(yard.call(method, path, body, token))
        answers.append(yard.call("GET", "/v1/jobs", headers={"Authorization": f"Basic {token}"}))
        answers.append(yard.call("GET", "/v1/jobs", headers={"Authorization": f"Bearer  {token} x"}))
    assert {401, 404, 422, 429} <= {answer.status_code for answer in answers}
    for answer in answers:
        assert_clean(yard, answer.text + str(answer.headers), answer.request.method)
    # The address of before is slowed down by now.
    metrics = ask("127.0.0.2", yard.url + "/metrics", SECRETS[0])
    assert metrics.ok
    assert_clean(yard, metrics.text, "metrics")
    for file, text in in_wrong_places(yard, yard.tokens["night"]):
        before = file.read_text()
        file.write_text(text)
        refused = ask("127.0.0.2", yard.url + "/v1/reload", yard.tokens["night"], method="POST")
        file.write_text(before)
        assert refused.status_code == 422, text
        assert refused.json()["errors"][0]["line"]
        assert_clean(yard, refused.text, text)
        status = ask("127.0.0.2", yard.url + "/v1/status", yard.tokens["board"])
        assert any("the changed settings are refused" in problem for problem in status.json()["problems"])
        assert_clean(yard, status.text, text)
    assert_clean(yard, yard.log(), "log")
    audit = ask("127.0.0.2", yard.url + "/v1/audit?limit=1000", SECRETS[0])
    assert {401, 403, 422, 429} <= {record.get("status") for record in audit.json()["records"]}
    assert_clean(yard, audit.text, "audit")
    wait_until(lambda: audit.json()["newest_hash"] in (yard.config.parent / "audit").read_text())
    assert_clean(yard, (yard.config.parent / "audit").read_text(), "the audit's file")
    journal = [path.read_bytes() for path in yard.config.parent.glob("journal*")]
    assert journal
    for secret in secrets(yard):
        assert not any(secret.encode() in content for content in journal)


def test_no_process_has_a_token_in_its_arguments(yard: RolesYard) -> None:
    assert yard.process is not None
    seen = [Path(f"/proc/{yard.process.pid}/cmdline").read_bytes()]
    for child in Path(f"/proc/{yard.process.pid}/task/{yard.process.pid}/children").read_text().split():
        seen.append(Path(f"/proc/{child}/cmdline").read_bytes())
    assert len(seen) > 1, "the process that checks bodies"
    assert_clean(yard, b"\n".join(seen).decode(), "arguments")


def command(yard: RolesYard, *arguments: str, token: str) -> str:
    environment = os.environ | {"TRAINYARD_TOKEN": token, "TRAINYARD_URL": yard.url}
    ran = subprocess.run(
        [sys.executable, "-m", "controller.cli.main", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


def test_the_command_shows_no_token(yard: RolesYard) -> None:
    token = yard.tokens["night"]
    for arguments in (
        ["jobs"],
        ["jobs", "--help"],
        ["explain", "nobody"],
        ["audit"],
        ["pause", "--json"],
        ["resume"],
        ["jobs", "--url", f"http://me:{token}@127.0.0.1:1"],
        ["jobs", "--url", "http://127.0.0.1:1"],
        ["jobs", "--token", token],
        ["jobs", f"--token={token}"],
        ["check-config", str(yard.config)],
        ["check-config", "--json", str(yard.config)],
    ):
        assert_clean(yard, command(yard, *arguments, token=token), " ".join(arguments[:2]))
    assert_clean(yard, command(yard, "jobs", token="wrong " + GUESSES[0]), "a wrong one")
