"""``trainyard token``: what it makes lets its owner in, and is nowhere but where it was asked for."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.access.caller import Role
from controller.access.tokens.file import read_tokens
from controller.access.tokens.hashes import new_token
from controller.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: str) -> tuple[int, str, str]:
        status = main(["token", *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return command


def test_the_token_is_on_stdout_and_its_line_beside_it(run: Any, tmp_path: Path) -> None:
    status, out, err = run("--name", "board", "--role", "viewer")
    assert (status, out.count("\n"), err.count("\n")) == (0, 1, 1)
    token = out.strip()
    assert token not in err
    file = tmp_path / "tokens.yaml"
    file.write_text(err)
    caller = read_tokens(file, []).of_token(token.encode(), 0.0)
    assert caller is not None
    assert (caller.name, caller.role) == ("board", Role.VIEWER)


def test_the_lines_of_all_roles_make_a_file(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    tokens = []
    for options in (
        ["--role", "operator", "--name", "night", "--expires", "30"],
        ["--role", "enrol", "--name", "racks", "--expires", "7"],
        [
            "--role",
            "tenant",
            "--name",
            "vision",
            "--user",
            "ann",
            "--user",
            "bob b",
            "--prefix",
            "v-",
            "--max-jobs",
            "3",
        ],
        ["--role", "host", "--name", "gpu01"],
        [],
    ):
        _, out, err = run(*options)
        tokens.append(out.strip())
        with file.open("a") as stream:
            stream.write(err)
    table = read_tokens(file, ["gpu01"])
    now = datetime.now(UTC).timestamp()
    night, racks, vision, host, plain = (table.of_token(token.encode(), now) for token in tokens)
    assert night is not None and night.role is Role.OPERATOR
    assert racks is not None and racks.role is Role.ENROL
    assert vision is not None and vision.tenancy is not None
    assert (vision.tenancy.users, vision.tenancy.prefix, vision.tenancy.max_jobs) == (("ann", "bob b"), "v-", 3)
    assert host is not None and host.host == "gpu01"
    assert plain is not None and plain.role is Role.VIEWER
    later = (datetime.now(UTC) + timedelta(days=32)).timestamp()
    assert table.of_token(tokens[0].encode(), later) is None, "it has expired"


def test_a_token_of_somebody_else_is_hashed_from_stdin(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_token()

    class Stdin:
        buffer = io.BytesIO(token.encode() + b"\n")

    monkeypatch.setattr(sys, "stdin", Stdin())
    status, out, err = run("--hash", "--name", "mine")
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert token not in out
    (tmp_path / "tokens.yaml").write_text(out)
    assert read_tokens(tmp_path / "tokens.yaml", []).of_token(token.encode(), 0.0) is not None


def test_a_weak_token_is_refused_and_not_shown() -> None:
    command = [sys.executable, "-m", "controller.cli.main", "token", "--hash"]
    ran = subprocess.run(command, input="Passw0rd", capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "at least 22 characters" in ran.stderr
    assert "Passw0rd" not in ran.stderr


def test_check_config_checks_the_tokens_file_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tokens, settings = tmp_path / "tokens.yaml", tmp_path / "settings.yaml"
    settings.write_text(f"api: {{tokens_file: {tokens}}}\n")
    tokens.write_text("ops: {role: operator, certificate: ops.example.org}\n")
    assert main(["check-config", str(settings)]) == 0
    tokens.write_text("\nops: {role: operator}\n")
    assert main(["check-config", str(settings)]) == 2
    assert capsys.readouterr().err.startswith(f"{tokens}:2: ops: an entry has either a hash or a certificate")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--name", "a b"], "name: the name of an entry has letters"),
        (["--prefix", "x"], "prefix is for the role tenant only"),
        (["--expires", "-1"], "--expires takes 0 to 36500 days"),
        (["--role", "tenant", "--max-jobs", "-1"], "max_jobs: "),
    ],
)
def test_what_the_file_would_refuse_is_refused_at_once(run: Any, options: list[str], said: str) -> None:
    status, out, err = run(*options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
