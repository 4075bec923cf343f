"""Addresses that send wrong tokens are slowed down, and no others."""

from __future__ import annotations

from controller.access.throttle import BURST, LOG_SECONDS, MAX_ADDRESSES, MAX_LINES, Throttle

GUESSER, GOOD = "10.0.0.66", "10.0.0.1"


def guesses(throttle: Throttle, address: str, seconds: float, each: float) -> int:
    """Returns how many guesses were looked at, of one each so many seconds."""
    looked_at = 0
    for step in range(int(seconds / each)):
        now = step * each
        if throttle.wait(address, now) == 0.0:
            looked_at += 1
            throttle.wrong(address, now)
    return looked_at


def test_who_guesses_gets_a_guess_a_second_after_the_first_ones() -> None:
    throttle = Throttle()
    assert BURST + 98 <= guesses(throttle, GUESSER, seconds=100.0, each=0.001) <= BURST + 101


def test_others_are_not_slowed() -> None:
    throttle = Throttle()
    guesses(throttle, GUESSER, seconds=0.5, each=0.001)
    assert throttle.wait(GUESSER, 0.5) > 0.0
    assert throttle.wait(GOOD, 0.5) == 0.0


def test_an_address_is_forgiven_with_time() -> None:
    throttle = Throttle()
    for _ in range(BURST):
        throttle.wrong(GUESSER, 0.0)
    assert throttle.wait(GUESSER, 0.0) == 1.0
    assert throttle.wait(GUESSER, 0.25) == 0.75
    assert throttle.wait(GUESSER, 1.0) == 0.0
    throttle.wrong(GUESSER, 1.0)
    assert throttle.wait(GUESSER, 1.0) == 1.0
    for _ in range(BURST - 1):
        assert throttle.wait(GUESSER, 1000.0) == 0.0
        throttle.wrong(GUESSER, 1000.0)


def test_the_memory_is_bounded_and_the_latest_are_remembered() -> None:
    throttle = Throttle()
    for number in range(3 * MAX_ADDRESSES):
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        throttle.wrong(address, float(number))
        for _ in range(2 * BURST if number % 1000 == 0 else 0):
            throttle.wrong(GUESSER, float(number))
    assert len(throttle) == MAX_ADDRESSES
    assert throttle.wait(GUESSER, 3.0 * MAX_ADDRESSES - 288) > 0.0, "who goes on is not forgotten"


def test_an_ipv6_network_and_an_ipv4_address_in_ipv6_count_as_one() -> None:
    throttle = Throttle()
    for number in range(BURST):
        throttle.wrong(f"2001:db8::{number:x}", 0.0)
    assert throttle.wait("2001:db8::ffff:1", 0.0) > 0.0
    assert throttle.wait("2001:db8:0:1::1", 0.0) == 0.0
    for _ in range(BURST):
        throttle.wrong("::ffff:10.0.0.66", 0.0)
    assert throttle.wait(GUESSER, 0.0) > 0.0


def test_a_line_is_due_once_a_minute_and_address() -> None:
    throttle = Throttle()
    assert throttle.to_log(GUESSER, 0.0) == 1
    assert [throttle.to_log(GUESSER, 1.0) for _ in range(5)] == [None] * 5
    assert throttle.to_log(GOOD, 1.0) == 1
    assert throttle.to_log(GUESSER, LOG_SECONDS) == 6
    assert throttle.to_log(GUESSER, LOG_SECONDS) is None


def test_many_addresses_do_not_fill_the_log() -> None:
    throttle = Throttle()
    addresses = [f"10.1.{n >> 8}.{n & 255}" for n in range(10_000)]
    assert sum(throttle.to_log(address, 1.0) is not None for address in addresses) == MAX_LINES
    assert throttle.to_log(GUESSER, 1.0 + LOG_SECONDS) == 1
