from __future__ import annotations

import json

from pydantic import SecretStr

from controller.access.audit.facts import MOST_CHARACTERS, SECRET, differing, plain
from controller.config.config import Api, Config


def test_only_what_differs_is_kept() -> None:
    before, after = {"a": 1, "b": 2, "gone": 3}, {"a": 1, "b": 5, "new": [1, 2]}
    assert differing(before, after) == ({"b": 2, "gone": 3}, {"b": 5, "new": [1, 2]})
    assert differing(None, after) == (None, after)
    assert differing(before, None) == (before, None)


def test_no_secret_is_in_a_record() -> None:
    api = Api(token=SecretStr("the-operators-token"), host_tokens={"h1": SecretStr("the-token-of-h1")})
    config = Config.model_validate({"hosts": [{"name": "h1", "address": "10.0.0.1"}], "api": api})
    sides = differing({"api": None}, {"api": config.api, "config": config, "raw": b"the-operators-token"})
    text = json.dumps(sides)
    assert "the-operators-token" not in text
    assert "the-token-of-h1" not in text
    assert SECRET in text
    many = {f"h{n}": SecretStr(f"the-token-of-h{n}") for n in range(100)}
    # A hash of them could be guessed from a guess of them.
    assert plain(many) == plain({name: SecretStr("another-token") for name in many})


def test_a_record_stays_small() -> None:
    huge = {"text": "x" * 10_000, "list": list(range(10_000)), "deep": {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}}
    for side in (huge, {str(n): "x" * 190 for n in range(1000)}):
        assert len(json.dumps(differing(None, side)[1])) <= MOST_CHARACTERS
    assert plain(float("nan")) == "nan"
    assert plain({"b", "a"}) == ["a", "b"]
