"""Ten thousand wrong and right messages through the check, with Ryu's parser and handlers behind it."""

from __future__ import annotations

import pytest

from evaluation.bench.support.openflow.messages import Case, Generator, recorded
from evaluation.bench.support.openflow.reader import Reader, faults_without_check

MESSAGES = 10_000


@pytest.mark.usefixtures("frozen_heap")
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


def test_without_the_check_the_same_messages_hang_ryu_or_make_it_raise() -> None:
    that_hello = Case(bytes.fromhex("0400000c0000000100010000"), early=True)
    faults = faults_without_check([*Generator(seed=1).cases(1000), that_hello])
    hangs = [fault for fault in faults if "HangError" in fault]
    assert that_hello.data.hex() in hangs[-1]
    assert len(faults) - len(hangs) > 100, "the fuzz does not find what the check is for"
