"""Tokens and their hashes, and the entries of a tokens file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from controller.access.caller import Role
from controller.access.tokens.entries import MAX_ENTRIES, TokenTable, parse
from controller.access.tokens.hashes import TokenHash, WeakTokenError, hashed, new_token
from controller.documents.yaml_lines import read_yaml


def entries(text: str) -> tuple[Any, list[tuple[Any, str]]]:
    return parse(read_yaml(text), ["h1", "h2"])


def table(text: str) -> TokenTable:
    found, faults = entries(text)
    assert faults == []
    return TokenTable(found)


def test_a_hash_is_of_its_token_and_of_no_other() -> None:
    token = new_token()
    one, other = hashed(token), hashed(token)
    assert one != other, "each has its own salt"
    assert TokenHash(one).is_of(token.encode())
    assert TokenHash(other).is_of(token.encode())
    for wrong in (token[:-1], token + "x", token.swapcase(), "", one):
        assert not TokenHash(one).is_of(wrong.encode())


def test_tokens_are_random_and_long() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {len("trainyard_") + 32}, "192 bits"


@pytest.mark.parametrize(
    "token", ["", "short", "a" * 40, "abcabcabcabcabcabcabcabc", "with a space in it, but long", "größer" * 9]
)
def test_what_can_be_guessed_is_not_hashed(token: str) -> None:
    with pytest.raises(WeakTokenError) as caught:
        hashed(token)
    assert token not in str(caught.value) or not token


def test_each_role_has_its_bounds() -> None:
    tokens = {name: new_token() for name in ("night", "board", "vision", "bare", "h1", "spare")}
    h = {name: hashed(token) for name, token in tokens.items()}
    found = table(
        f"""
night: {{role: operator, hash: "{h["night"]}"}}
board: {{role: viewer, hash: "{h["board"]}"}}
vision: {{role: tenant, users: [ann, bob], prefix: vision-, max_jobs: 3, max_weight: 2.5, hash: "{h["vision"]}"}}
bare: {{role: tenant, hash: "{h["bare"]}"}}
h1: {{role: host, hash: "{h["h1"]}"}}
spare: {{role: host, host: h2, hash: "{h["spare"]}"}}
"""
    )
    callers = {name: found.of_token(token.encode(), 0.0) for name, token in tokens.items()}
    assert {name: caller.role for name, caller in callers.items() if caller} == {
        "night": Role.OPERATOR,
        "board": Role.VIEWER,
        "vision": Role.TENANT,
        "bare": Role.TENANT,
        "h1": Role.HOST,
        "spare": Role.HOST,
    }
    vision, bare = callers["vision"], callers["bare"]
    assert vision is not None and vision.tenancy is not None
    assert (vision.tenancy.users, vision.tenancy.prefix) == (("ann", "bob"), "vision-")
    assert (vision.tenancy.max_jobs, vision.tenancy.max_weight) == (3, 2.5)
    assert bare is not None and bare.tenancy is not None
    assert bare.tenancy.users == ("bare",), "without users it is its own user"
    assert [caller.host for caller in callers.values() if caller] == [None, None, None, None, "h1", "h2"]
    assert found.of_token(new_token().encode(), 0.0) is None


def test_an_entry_is_valid_until_its_last_day_is_over() -> None:
    token = new_token()
    found = table(f'a: {{role: viewer, expires: 2026-03-01, hash: "{hashed(token)}"}}\n')
    after = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    assert found.of_token(token.encode(), after - 1.0) is not None
    assert found.of_token(token.encode(), after) is None


def test_a_certificate_is_found_by_its_name() -> None:
    found = table("ops: {role: operator, certificate: ops.example.org, expires: 2026-03-01}\n")
    caller = found.of_certificate("ops.example.org", 0.0)
    assert caller is not None
    assert (caller.name, caller.proof) == ("ops", "certificate")
    assert found.of_certificate("ops.example.org", 2e9) is None
    assert found.of_certificate("other.example.org", 0.0) is None
    assert found.of_token(b"ops.example.org", 0.0) is None


SECRET = "Sup3r-secret-that-was-pasted-here"
HASH = hashed(SECRET, b"0123456789abcdef")


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        (f"a: {SECRET}", "a", "it must be a mapping with a role and a hash"),
        (f"a: {{role: viewer, hash: {SECRET}}}", "a.hash", "it is no hash of a token"),
        ("a: {role: viewer, hash: 1234567890123456}", "a.hash", "it must be a text in quotes"),
        (f"- {SECRET}", "", "it must hold entries as 'name: {role: ..., hash: ...}'"),
        (SECRET, "", "it must hold entries"),
        (f'a: {{hash: "{HASH}"}}', "a.role", "is missing"),
        (
            f'a: {{role: king, hash: "{HASH}"}}',
            "a.role",
            "it should be 'operator', 'viewer', 'tenant', 'host' or 'enrol'",
        ),
        ("a: {role: viewer}", "a", "an entry has either a hash or a certificate"),
        (f'a: {{role: viewer, hash: "{HASH}", certificate: x}}', "a", "either a hash or a certificate"),
        (f'a: {{role: viewer, prefix: x, hash: "{HASH}"}}', "a", "prefix is for the role tenant only"),
        (f'a: {{role: viewer, host: h1, hash: "{HASH}"}}', "a", "host is for the role host only"),
        (f'a: {{role: host, hash: "{HASH}"}}', "a", "a is no host in the settings"),
        (f'a: {{role: tenant, max_jobs: -1, hash: "{HASH}"}}', "a.max_jobs", "greater than or equal to 0"),
        (f'a: {{role: tenant, max_weight: .inf, hash: "{HASH}"}}', "a.max_weight", "finite"),
        (f'a: {{role: tenant, user: [x], hash: "{HASH}"}}', "a.user", "unknown key; did you mean users?"),
        (f'a: {{role: viewer, expires: someday, hash: "{HASH}"}}', "a.expires", "date"),
        (f'"a b": {{role: viewer, hash: "{HASH}"}}', "a b", "the name of an entry has letters"),
        ("a: {role: viewer, certificate: x}\nb: {role: viewer, certificate: x}", "b.certificate", "another entry"),
    ],
)
def test_what_is_wrong_is_named_and_no_token_is_shown(text: str, field: str, said: str) -> None:
    _, faults = entries(text)
    ((at, problem),) = faults
    assert ".".join(map(str, at)) == field
    assert said in problem
    assert SECRET not in problem and SECRET[:12] not in problem and "1234567890123456" not in problem


def test_there_are_only_so_many_entries_and_a_thousand_cost_few_times_their_hashes() -> None:
    one = 'a{}: {{role: viewer, hash: "' + HASH + '"}}\n'
    found, faults = entries("".join(one.format(n) for n in range(MAX_ENTRIES + 1)))
    assert found == {} and "1000 is the most" in faults[0][1]
    full = table("".join(one.format(n) for n in range(MAX_ENTRIES)))
    assert len(full) == MAX_ENTRIES

    def hashes() -> None:
        for _ in range(MAX_ENTRIES):
            hashlib.sha256(b"wrong").hexdigest()

    def least_seconds(of: Callable[[], object]) -> float:
        seconds = []
        for _ in range(20):
            began = time.perf_counter()
            of()
            seconds.append(time.perf_counter() - began)
        return min(seconds)

    assert least_seconds(lambda: full.of_token(b"wrong", 0.0)) < 6 * least_seconds(hashes)
