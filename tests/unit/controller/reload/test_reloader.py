from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.config.file import read_settings
from controller.documents.mapping_file import ConfigError
from controller.refusals import Invalid
from controller.reload.part import Prepare, Prepared
from controller.reload.reloader import NoFileError, Reloader
from controller.reload.watch import FileWatch

FIRST = "policy: fifo\nhosts:\n  - {name: h1, address: 10.0.0.1}\n"


class Part:
    """A part that keeps the settings which it was given, and refuses a policy."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.applied: list[Config] = []

    def __call__(self, config: Config) -> Prepared:
        if config.policy == self.refuses:
            raise Invalid([("policy", "this part cannot use it")])
        return Prepared(lambda: self.applied.append(config))


class Yard:
    def __init__(self, path: Path | None, *parts: Prepare, last: Prepare | None = None) -> None:
        loaded = read_settings(path)
        self.outcomes: list[str] = []
        self.current = CurrentSettings(loaded.config)
        self.part, self.last = Part(), last or Part()
        self.reloader = Reloader(
            loaded,
            self.current,
            [self.part, *parts],
            self.last,
            between=self.between,
            count=self.outcomes.append,
            clock=lambda: 100.0,
        )
        self.is_between = False

    def watch(self) -> FileWatch:
        def reload() -> None:
            with contextlib.suppress(ConfigError):
                self.reloader.run("a changed file")

        return FileWatch(self.reloader, self.current, reload)

    def between(self, act: Callable[[], None]) -> None:
        self.is_between = True
        act()
        self.is_between = False


@pytest.fixture(name="path")
def a_file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(FIRST)
    return path


def write(path: Path, text: str) -> None:
    """Replace a file as editors do, so that its stamp differs."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_all_parts_take_a_changed_file(path: Path) -> None:
    yard = Yard(path)
    write(path, FIRST.replace("fifo", "las"))
    outcome = yard.reloader.run("ann")
    assert [str(change) for change in outcome.changed] == ['policy: "fifo" -> "las"']
    assert outcome.waiting == ()
    assert yard.current.config.policy == "las"
    assert [config.policy for config in yard.part.applied] == ["las"]
    digest = sha256(path.read_bytes()).hexdigest()
    assert (outcome.sha256, yard.reloader.sha256, outcome.loaded_at) == (digest, digest, 100.0)
    assert yard.outcomes == ["done"]
    assert yard.reloader.problems() == ()


@pytest.mark.parametrize("text", ["policy: [", "policy: none-such\n", "- a list\n", "classes: 3\nnonsense: 1\n"])
def test_a_wrong_file_changes_nothing(path: Path, text: str) -> None:
    yard = Yard(path)
    before = yard.current.config
    write(path, text)
    with pytest.raises(ConfigError, match=f"{path}:") as caught:
        yard.reloader.run("ann")
    assert caught.value.faults
    assert yard.current.config is before
    assert yard.part.applied == []
    assert yard.outcomes == ["refused"]
    (problem,) = yard.reloader.problems()
    assert problem.startswith("the changed settings are refused")
    write(path, FIRST)
    yard.reloader.run("ann")
    assert yard.reloader.problems() == ()


def test_a_file_that_is_gone_changes_nothing(path: Path) -> None:
    yard = Yard(path)
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        yard.reloader.run("ann")
    assert yard.current.config.policy == "fifo"


@pytest.mark.parametrize("is_last", [False, True])
def test_a_part_that_refuses_leaves_all_as_they_are(path: Path, is_last: bool) -> None:
    refusing = Part(refuses="las")
    yard = Yard(path, last=refusing) if is_last else Yard(path, refusing)
    write(path, "hosts:\n  - {name: h1, address: 10.0.0.1}\npolicy: las\n")
    with pytest.raises(ConfigError) as caught:
        yard.reloader.run("ann")
    (fault,) = caught.value.faults
    assert (fault.line, fault.field) == (3, "policy")
    assert yard.part.applied == refusing.applied == []
    assert yard.current.config.policy == "fifo"


def test_what_needs_a_restart_waits_and_the_rest_changes(path: Path) -> None:
    yard = Yard(path)
    write(path, FIRST.replace("fifo", "las") + "classes: 3\nopenflow: {port: 7000}\nfloors: {other: 0.2}\n")
    outcome = yard.reloader.run("ann")
    assert {change.field for change in outcome.changed} == {"policy", "floors.other"}
    assert {change.field for change in outcome.waiting} == {"classes", "openflow.port"}
    assert (yard.current.config.classes, yard.current.config.openflow.port) == (7, 6653)
    assert yard.reloader.problems() == ("settings wait for a restart: classes, openflow.port",)
    assert {change.field for change in yard.reloader.run("ann").waiting} == {"classes", "openflow.port"}
    write(path, FIRST.replace("fifo", "las"))
    outcome = yard.reloader.run("ann")
    assert [change.field for change in outcome.changed] == ["floors.other"]
    assert outcome.waiting == ()
    assert yard.reloader.problems() == ()


def test_a_change_that_fits_only_to_what_needs_a_restart_is_refused(path: Path) -> None:
    yard = Yard(path)
    write(path, "classes: 2\nfloors:\n  job_class: 0.3\n")
    with pytest.raises(ConfigError, match=rf"{path}:2: floors: .*until a restart, as classes can"):
        yard.reloader.run("ann")
    assert yard.current.config.floors.job_class == 0.01


WHO = "enforce: [switches]\nmode: marked\n"


@pytest.mark.parametrize(
    ("text", "waiting"),
    [
        ("enforce: [hosts]\n", {"enforce", "identity", "mode"}),
        ("enforce: [switch]\nidentity: flows\n", {"identity", "mode"}),
        ("identity: classes\n", {"enforce"}),
        ("enforce: []\nidentity: classes\n", {"enforce"}),
        ("enforce: [switches]\nidentity: dscp\n", {"identity", "mode"}),
        ("", {"enforce", "identity", "mode"}),
    ],
)
def test_who_enforces_waits_for_a_restart_whatever_it_is_called(path: Path, text: str, waiting: set[str]) -> None:
    write(path, FIRST + WHO)
    yard = Yard(path)
    before = yard.current.config.enforcement
    write(path, FIRST.replace("fifo", "las") + text)
    answer = yard.reloader.run("reload")
    assert {change.field for change in answer.waiting} == waiting
    assert yard.current.config.enforcement == before
    assert yard.current.config.policy == "las"


PRESET = {"dscp.preset", "dscp.classes", "dscp.acknowledgements"}


@pytest.mark.parametrize(
    ("text", "changed", "waiting"),
    [
        ("dscp: {preset: class-selectors, jobs: [3, 7]}\n", {"dscp.jobs"}, set()),
        ("dscp: {preset: dcb, jobs: [3, 7]}\n", {"dscp.jobs"}, PRESET),
        ("dscp: dcb\n", set(), PRESET),
        ("", set(), PRESET),
        ("dscp: class-selectors\n", set(), set()),
    ],
)
def test_only_the_dscps_of_jobs_change_at_once(path: Path, text: str, changed: set[str], waiting: set[str]) -> None:
    write(path, FIRST + "dscp: class-selectors\n")
    yard = Yard(path)
    write(path, FIRST + text)
    answer = yard.reloader.run("reload")
    assert {change.field for change in answer.changed} == changed
    assert {change.field for change in answer.waiting} == waiting
    dscp = yard.current.config.dscp
    assert (dscp.preset, dscp.classes[0], dscp.acknowledgements) == ("class-selectors", 56, None)
    assert dscp.jobs == ((3, 7) if changed else None)


@pytest.mark.parametrize("text", ["identity: flows\nmode: marked\n", "enforce: [hosts]\nidentity: dscp\n"])
def test_a_file_that_says_two_things_of_who_enforces_changes_nothing(path: Path, text: str) -> None:
    yard = Yard(path)
    before = yard.current.config
    write(path, FIRST.replace("fifo", "las") + text)
    with pytest.raises(ConfigError):
        yard.reloader.run("reload")
    assert yard.current.config is before


def test_without_a_file_there_is_nothing_to_reload() -> None:
    with pytest.raises(NoFileError, match="TRAINYARD_CONFIG"):
        Yard(None).reloader.run("ann")


def test_the_parts_change_between_two_plans(path: Path) -> None:
    seen: list[bool] = []
    yard = Yard(path, last=lambda _config: Prepared(lambda: seen.append(yard.is_between)))
    yard.reloader.run("ann")
    assert seen == [True]


def test_a_changed_file_is_said_once_and_not_put_in_force(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    yard = Yard(path)
    watch = yard.watch()
    caplog.set_level(logging.WARNING)
    watch.look()
    assert yard.reloader.problems() == ()
    write(path, FIRST.replace("fifo", "las"))
    for _ in range(4):
        watch.look()
    assert len([record for record in caplog.records if "have changed on the disk" in record.message]) == 1
    assert yard.current.config.policy == "fifo"
    (problem,) = yard.reloader.problems()
    assert f"not in force: {path}; trainyard reload" in problem
    yard.reloader.run("ann")
    assert yard.reloader.problems() == ()


def test_a_changed_file_is_put_in_force_where_the_settings_say_so(path: Path) -> None:
    write(path, FIRST + "reload: automatic\n")
    yard = Yard(path)
    watch = yard.watch()
    write(path, FIRST.replace("fifo", "las") + "reload: automatic\n")
    watch.look()
    assert yard.current.config.policy == "fifo", "it may still be being written"
    watch.look()
    assert yard.current.config.policy == "las"
    write(path, "policy: [")
    for _ in range(5):
        watch.look()
    assert yard.outcomes == ["done", "refused"], "a wrong file is tried once"
    write(path, FIRST + "reload: automatic\n")
    for _ in range(2):
        watch.look()
    assert yard.current.config.policy == "fifo"


def test_files_that_the_settings_name_are_watched(path: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text("{}")
    journal = tmp_path / "journal.sqlite"
    write(path, FIRST + f"journal: {journal}\napi: {{tokens_file: {tokens}}}\n")
    yard = Yard(path)
    journal.write_text("anything")
    assert yard.reloader.news() == ()
    os.utime(tokens, ns=(1, 1))
    assert yard.reloader.news() == (tokens,)
    outcome: Any = yard.reloader.run("ann")
    assert outcome.changed == ()
    assert yard.reloader.news() == ()
