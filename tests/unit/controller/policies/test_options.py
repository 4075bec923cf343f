"""Messages about a policy's options: the same words everywhere, and never those of Python."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from controller.cli.main import main
from controller.config.config import Config
from controller.journal.store import Store
from controller.loop.run_settings import RunSettings
from controller.model import Ordering, Snapshot
from controller.policies.base import Policy
from controller.policies.parts.options import HostName, Number, Whole
from controller.policies.registry import PolicyError, available, make
from controller.refusals import Invalid
from controller.wire import Settings

if TYPE_CHECKING:
    from decimal import Decimal

LAS = (
    "policy las has no option size; there are: first_seconds (a number from 1e-06 to 1e+09; default 1), "
    "factor (a number from 1.01 to 1e+06; default 2)"
)


def test_every_door_lists_a_policys_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*command: str) -> str:
        assert main(list(command)) == 2
        return capsys.readouterr().err

    config, snapshot = tmp_path / "conf.yaml", tmp_path / "snapshot.json"
    config.write_text("policy: las\npolicy_options: {size: 1}\n")
    snapshot.write_text(json.dumps({"hosts": [], "jobs": []}))
    assert f"conf.yaml:2: policy_options: {LAS}" in refused("check-config", str(config))
    assert LAS in refused("order", "--policy", "las", "--option", "size=1", str(snapshot))
    assert LAS in refused(
        "sim", "--policy", "las", "--option", "las.size=1", "--workload", "training-middle", "--jobs", "1"
    )
    settings = RunSettings(Config.default(), Store(None))
    with pytest.raises(Invalid) as caught:
        settings.change(Settings(policy="las", policy_options={"size": 1}))
    assert caught.value.errors == (("policy_options", LAS),)


@pytest.mark.parametrize("name", available())
def test_each_option_is_described_with_its_kind_and_its_default(name: str) -> None:
    with pytest.raises(PolicyError) as caught:
        make(name, {"no_such": 1})
    listed = str(caught.value)
    for option, value in available()[name]().options().items():
        default = "null" if value is None else str(value).lower().removesuffix(".0")
        assert f"{option} (" in listed
        assert f"; default {default})" in listed, "the listed default is the one in force"
    assert "argument" not in listed


class Theirs(Policy):
    """A policy as another package may have it. Some of its types exist only for a type checker."""

    name = "theirs"

    def __init__(self, share: Decimal | None = None, deep: object = None, *, on: bool = True) -> None:
        if share == "?":
            raise ValueError("share: '?'; it must be a share")
        self.given = (share, deep, on)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        raise NotImplementedError


class Typed(Theirs):
    name = "typed"

    def __init__(
        self,
        server: Annotated[str, HostName()],
        rate: float = 1.5,
        at_most: Annotated[int | None, Whole(1, 5)] = None,
        level: Annotated[float, Number(above=True)] = 2.0,
        word: str = "a",
    ) -> None:
        self.given = (server, rate, at_most, level, word)


class Anything(Theirs):
    name = "anything"

    def __init__(self, **given: object) -> None:
        self.given = tuple(given.items())


THEIRS = {"theirs": Theirs, "typed": Typed, "anything": Anything}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("theirs", {"x": 1}, "policy theirs has no option x; there are: share (default null), deep (default null), "
         "on (default true)"),
        ("theirs", {"share": "?"}, "policy theirs: share: '?'; it must be a share"),
        ("theirs", {"deep": {"a": [1.0, math.nan]}}, "policy theirs: deep: a number in it is infinite or none at all"),
        ("theirs", {"share": math.inf}, "policy theirs: share: a number in it is infinite or none at all"),
        ("typed", {}, "policy typed needs the option server; there are: server (the name of a host; required), "
         "rate (a number; default 1.5), at_most (a whole number from 1 to 5; default null), "
         "level (a number above 0 and at most 1e+09; default 2), word (a text; default a)"),
        ("anything", {"x": math.inf}, "policy anything: x: a number in it"),
    ],
)  # fmt: skip
def test_the_options_of_other_packages_are_described_as_far_as_they_say(name: str, options: Any, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        make(name, options, policies=THEIRS)
    assert str(caught.value).startswith(words)


def test_what_a_policy_of_another_package_takes_is_given_to_it() -> None:
    assert vars(make("anything", {"x": 1}, policies=THEIRS))["given"] == (("x", 1),)
    assert vars(make("theirs", {"deep": {"a": [1.0]}}, policies=THEIRS))["given"] == (None, {"a": [1.0]}, True)


@pytest.mark.parametrize("name", ["fifo", "jpas"])
def test_a_policy_is_made_again_with_little_memory(name: str) -> None:
    """Large short-lived parts between what the controller keeps would leave holes in the memory of the process."""
    make(name)
    tracemalloc.start()
    try:
        make(name)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000
