"""What a sentence about a wrong file may show: names and paths, and nothing that looks random."""

from __future__ import annotations

import base64
import random
import secrets
import uuid

import pytest

from controller.access.tokens.hashes import new_token
from controller.documents.likely_secrets import HIDDEN, without_secrets


@pytest.mark.parametrize(
    "secret",
    [
        new_token(),
        new_token()[:40],
        secrets.token_hex(16),
        secrets.token_hex(16).upper(),
        str(uuid.uuid4()),
        "7855098b-c2a2-4bb7-aacc-966807192910",
        "Zm9vYmFyYmF6cXV4+Zm9vYg==",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl",
        "correctHorseBatteryStaple",
        "trainyard_wTTBu3L1-YB6N_cw0B6No-AP1M41L7Oa",
        "wTTBu3L1-YB6N_cw0B6No-AP1M41L7Oa",
    ],
    # Named, because two workers must collect the same tests, and these values differ from run to run.
    ids=[
        "token",
        "half a token",
        "hex",
        "upper hex",
        "uuid",
        "ends in digits",
        "base64",
        "jwt",
        "words",
        "dashes",
        "no prefix",
    ],
)
def test_what_looks_random_is_hidden_wherever_it_stands(secret: str) -> None:
    for sentence in (
        "is the text {!r}; it should be right",
        "unknown host '{}', there are: h1",
        "{}.role: wrong",
        "api.{}: unknown key",
    ):
        shown = without_secrets(sentence.format(secret))
        assert secret[10:20] not in shown
        assert HIDDEN in shown


def test_no_token_of_many_is_shown_where_it_is_a_key() -> None:
    for token in (new_token() for _ in range(2000)):
        assert HIDDEN in without_secrets(f"api.{token}: unknown key; there are: host, port")


def test_few_random_texts_without_a_prefix_are_shown() -> None:
    source = random.Random(7)
    texts = [base64.urlsafe_b64encode(source.randbytes(24)).decode() for _ in range(10_000)]
    assert sum(HIDDEN not in without_secrets(f"api.{text}: unknown key") for text in texts) <= 10


@pytest.mark.parametrize(
    "sentence",
    [
        "/etc/trainyard/tokens-of-2026a1b2c3d4e5f6.yaml cannot be read: No such file or directory",
        "certificates2026-11-26of/controller.pem has no certificate of an authority in PEM form",
        "/var/lib/trainyard_journal2026 names a folder",
        "unknown host 'gpu-a100-rack12-node-0042'; hosts has: storage-node-17.lab2.example.org",
        "unknown policy 'tensorlights'; there are: tensorlights-one, tensorlights-rr",
        "switch 0000000000000001 is named twice; each has one database",
        "listens on 0.0.0.0, which others can reach, without a token; set api.token, or api.host to 127.0.0.1",
        "it should be at most 65535.000000000000",
    ],
)
def test_names_paths_and_numbers_stay(sentence: str) -> None:
    assert without_secrets(sentence) == sentence
