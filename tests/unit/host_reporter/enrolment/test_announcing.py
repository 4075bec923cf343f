"""A host that was approved goes on to announce itself, with what it has kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.wire.announcement import Announcement
from evaluation.bench.support.waiting import wait_until
from host_reporter.enrolment.announcing import Announcing
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts
from host_reporter.enrolment.kept_secret import KeptSecret
from host_reporter.notices import Notices

SECRET = "0123456789abcdef" * 2
FACTS = InterfaceFacts("eth0", ("10.0.0.7",), "02:00:00:00:00:07", 25e9)


class World:
    def __init__(
        self, facts: Callable[[], tuple[InterfaceFacts, ...]] = lambda: (FACTS,), answer: str | None = None
    ) -> None:
        self.sent: list[tuple[str, str, Announcement]] = []
        self.faults: list[Exception] = []
        self._answer = answer
        notices = Notices(logging.getLogger("test"))
        self.announcing = Announcing(
            "h7", SECRET, facts, notices, failed=self.faults.append, send=self._send, again_seconds=0.02
        )
        self.announcing.start()

    def _send(self, interface: str, host: str, announcement: Announcement) -> str | None:
        self.sent.append((interface, host, announcement))
        return self._answer


def test_it_is_announced_again_and_again_until_the_agent_stops() -> None:
    world = World()
    wait_until(lambda: len(world.sent) > 2, 10)
    world.announcing.stop()
    count = len(world.sent)
    assert set(world.sent) == {("eth0", "h7", Announcement("02:00:00:00:00:07", SECRET))}
    assert (world.faults, len(world.sent)) == ([], count)


def test_an_interface_that_is_away_for_a_while_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[InterfaceFacts] = []

    def facts() -> tuple[InterfaceFacts, ...]:
        if not answers:
            raise InterfaceError("eth0 has no address")
        return tuple(answers)

    with caplog.at_level(logging.WARNING):
        world = World(facts)
        wait_until(lambda: caplog.records, 10)
        assert not world.sent
        answers.append(FACTS)
        wait_until(lambda: world.sent, 10)
        world.announcing.stop()
    assert [record.message for record in caplog.records] == [
        "the host cannot be found at its switch: eth0 has no address"
    ]


def test_each_interface_is_announced_and_one_without_mac_is_said(caplog: pytest.LogCaptureFixture) -> None:
    rail = FACTS._replace(name="eth1", mac="02:00:00:00:01:07")
    with caplog.at_level(logging.WARNING):
        world = World(lambda: (FACTS._replace(mac=None), rail, FACTS))
        wait_until(lambda: len(world.sent) > 3, 10)
        world.announcing.stop()
    assert {(name, announcement.mac) for name, _, announcement in world.sent} == {
        ("eth0", FACTS.mac), ("eth1", rail.mac)
    }  # fmt: skip
    assert caplog.messages == ["the host cannot be found at its switch: eth0 has no MAC address"]


def test_why_it_cannot_be_announced_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        world = World(answer="the agent may not send it")
        wait_until(lambda: len(world.sent) > 3, 10)
        world.announcing.stop()
    assert [record.message for record in caplog.records] == [
        "the host cannot be found at its switch: the agent may not send it"
    ]


def test_what_it_announces_itself_with_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    kept = KeptSecret(tmp_path, "h7")
    assert kept.read() is None
    kept.write(SECRET)
    kept.write(SECRET)
    assert KeptSecret(tmp_path, "h7").read() == SECRET
    assert KeptSecret(tmp_path, "h8").read() is None
    assert kept.path.stat().st_mode & 0o777 == 0o600
    kept.write("f" * 32)
    assert kept.read() == "f" * 32
    assert [file.name for file in tmp_path.iterdir()] == ["h7.announcement"]


@pytest.mark.parametrize("text", [b"", b"../../etc/passwd", b"\xff" * 32, b"0" * 33])
def test_what_is_no_secret_is_not_sent(tmp_path: Path, text: bytes) -> None:
    kept = KeptSecret(tmp_path, "h7")
    kept.path.write_bytes(text)
    assert kept.read() is None


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    kept = KeptSecret(tmp_path, "h7")
    (tmp_path / "other").write_text(SECRET)
    kept.path.symlink_to(tmp_path / "other")
    assert kept.read() is None
