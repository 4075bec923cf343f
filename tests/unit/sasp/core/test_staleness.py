"""What is done about late gradients: what is refused, and with which words."""

from __future__ import annotations

import pytest

from sasp.core.errors import SaspError
from sasp.core.staleness import PLAIN, StalenessOptions, from_json


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"prediction": "adam"}, "prediction is 'adam'; choose from none, momentum, local"),
        ({"rates": "small"}, "rates is 'small'; choose from plain, staleness, gap"),
        ({"delay_compensation": -1}, "delay_compensation is -1; it must be a number from 0 to 1000000"),
        ({"delay_compensation": float("nan")}, "delay_compensation is nan"),
        ({"delay_compensation": True}, "delay_compensation is True"),
        ({"delay_compensation": "2"}, "delay_compensation is '2'"),
    ],
)
def test_an_option_that_is_none_is_refused(options, why) -> None:
    with pytest.raises(SaspError, match=why):
        StalenessOptions(**options)


def test_what_would_let_ranks_part_is_refused() -> None:
    StalenessOptions("local").check_all_reduce()
    StalenessOptions("momentum", 2.0, "gap").check_all_reduce()
    for options in (StalenessOptions("local", 2.0), StalenessOptions("local", rates="gap")):
        with pytest.raises(SaspError, match="would let the ranks' parameters part; use prediction='momentum'"):
            options.check_all_reduce()


def test_what_a_server_cannot_do_is_refused() -> None:
    StalenessOptions("momentum").check_server()
    StalenessOptions("none", 2.0, "gap").check_server()
    StalenessOptions("local").check_server()
    with pytest.raises(SaspError, match="go only with prediction='none'"):
        StalenessOptions("momentum", rates="staleness").check_server()


def test_the_server_is_told_what_it_does() -> None:
    options = StalenessOptions("none", 2.5, "gap")
    assert from_json(options.as_json()) == options
    with pytest.raises(SaspError, match="is not understood"):
        from_json({"rates": "gap"})


def test_other_options_are_other_numbers() -> None:
    options = [
        PLAIN, StalenessOptions("momentum"), StalenessOptions(delay_compensation=2.0),
        StalenessOptions(delay_compensation=2.5), StalenessOptions(rates="gap"),
    ]  # fmt: skip
    assert len({tuple(one.as_numbers()) for one in options}) == len(options)
    assert all(0 <= number < 2**32 for one in options for number in one.as_numbers())
