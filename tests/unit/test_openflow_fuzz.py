"""Ten thousand wrong and right messages through the check, with Ryu's parser and handlers behind it."""

from __future__ import annotations

import pytest

from tests import openflow_reader
from tests.openflow_messages import Case, Generator, recorded
from tests.openflow_reader import Reader

MESSAGES = 10_000


def test_what_passes_the_check_neither_hangs_ryu_nor_makes_it_raise() -> None:
    reader = Reader()
    for case in Generator(seed=1).cases(MESSAGES):
        reader.read(case)
    tally = reader.tally
    assert tally.faults == []
    assert tally.outcomes.total() == MESSAGES
    assert tally.outcomes["passed"] > MESSAGES / 5, "what is never read tests no reader"
    assert tally.outcomes["refused"] > MESSAGES / 5
    assert tally.check_seconds < 3 * tally.parse_seconds


def test_every_message_of_a_real_switch_is_read() -> None:
    reader = Reader()
    outcomes = [outcome for session in recorded() for outcome in reader.replay(session)]
    assert reader.tally.faults == []
    assert set(outcomes) == {"passed", "answered", "dropped"}
    assert outcomes.count("dropped") == 2, "the two packets"
    assert outcomes.count("passed") > 50


def test_without_the_check_the_same_messages_hang_ryu_or_make_it_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openflow_reader, "HANG_SECONDS", 0.02)
    reader = Reader()
    cases = [*Generator(seed=1).cases(1000), Case(bytes.fromhex("0400000c0000000100010000"), early=True)]
    for case in cases:
        length = int.from_bytes(case.data[2:4], "big")
        if len(case.data) >= 8 and case.data[0] == 4:
            reader.parse(case.data[:length])
    hangs = [fault for fault in reader.tally.faults if "HangError" in fault]
    assert hangs, "the fuzz does not find what the check is for"
    assert len(reader.tally.faults) - len(hangs) > 100
