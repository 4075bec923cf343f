"""What the history makes of counts that rise, begin anew, or change their owner."""

from __future__ import annotations

import math

import numpy as np
import pytest

from controller.events.history import JOB_FIELDS, History, JobSample, texts
from controller.events.rings import SAMPLE_SECONDS, slot_of
from controller.model import Prediction


def job(sent: float | None, user: str | None = "ann") -> JobSample:
    return JobSample(user, sent, 2, 30.0, 0.5, (Prediction("t90", 0.9, 70.0, 60.0, 80.0),))


def field(history: History, name: str, at: str, first: float, count: int, step: int = 1) -> list[float]:
    return list(history.job(name, slot_of(first), count, step)[:, JOB_FIELDS.index(at)].tolist())


def test_counts_become_the_bytes_of_a_sample() -> None:
    history = History()
    for number, sent in enumerate((100.0, 160.0, 160.0, 40.0)):
        history.sample(1000.0 + SAMPLE_SECONDS * number, {"a": job(sent)}, {"s1:1": {0: number * 10, None: 7}})
    assert field(history, "a", "bytes", 1000.0, 4)[1:] == [60.0, 0.0, 40.0]
    assert math.isnan(field(history, "a", "bytes", 1000.0, 4)[0]), "what it sent before is not of this sample"
    assert field(history, "a", "bytes", 1000.0, 4, step=2) == [60.0, 40.0]
    assert field(history, "a", "service_class", 1000.0, 4, step=4) == [2.0]
    assert field(history, "a", "t90", 1000.0, 1) == [70.0]
    assert math.isnan(field(history, "a", "t95", 1000.0, 1)[0])
    ports = history.port("s1:1", slot_of(1000.0), 4, 4)
    assert (ports[0, 0], ports[0, -1]) == (30.0, 0.0)
    assert history.port_bps("s1:1")["0"] == pytest.approx(10 * 8 / SAMPLE_SECONDS)
    assert history.port_bps("s1:2") == {}


def test_a_name_that_another_user_takes_shows_nothing_of_the_one_before() -> None:
    history = History()
    history.sample(1000.0, {"a": job(100.0)}, {})
    history.sample(1005.0, {"a": job(200.0, "cem")}, {})
    assert history.users == {"a": "cem"}
    assert math.isnan(field(history, "a", "metric", 1000.0, 1)[0])
    assert field(history, "a", "metric", 1005.0, 1) == [0.5]


def test_jobs_that_are_gone_stay_for_the_hour_with_their_user() -> None:
    history = History()
    history.sample(1000.0, {"a": job(100.0)}, {})
    history.sample(1005.0, {"b": job(1.0, None)}, {})
    assert history.users == {"a": "ann", "b": None}
    history.sample(1000.0 + 3600.0, {}, {})
    assert history.users == {"b": None}


def test_a_new_name_takes_the_place_of_none_that_has_a_sample_now() -> None:
    history = History(most_jobs=2)
    history.sample(1000.0, {"a": job(1.0), "b": job(1.0)}, {})
    history.sample(1005.0, {"c": job(1.0), "a": job(2.0)}, {})
    assert set(history.users) == {"a", "c"}
    assert field(history, "a", "metric", 1000.0, 2) == [0.5, 0.5]


def test_a_second_sample_in_a_slot_takes_no_bytes_from_the_next_one() -> None:
    history = History()
    for moment, sent in ((1000.0, 100.0), (1001.0, 130.0), (1005.0, 160.0)):
        history.sample(moment, {"a": job(sent)}, {})
    assert field(history, "a", "bytes", 1005.0, 1) == [60.0]


def test_only_so_many_have_room() -> None:
    history = History(most_jobs=2, most_ports=1)
    history.sample(1000.0, {name: job(1.0) for name in "abc"}, {"p": {0: 1}, "q": {0: 1}})
    assert history.left_out == 2
    assert set(history.users) == {"a", "b"}


def test_a_number_that_has_no_place_in_four_bytes_is_none() -> None:
    history = History()
    with np.errstate(all="raise"):
        history.sample(1000.0, {"a": job(1.0)._replace(metric=-1e300, iterations_done=1e39)}, {"p": {0: 1}})
        history.sample(1005.0, {"a": job(math.inf)}, {"p": {0: 10**60}})
    for values in (history.job("a", slot_of(1000.0), 2, 1), history.job("a", slot_of(1000.0), 2, 2)):
        assert not np.isinf(values).any()
    assert math.isnan(field(history, "a", "metric", 1000.0, 1)[0])
    assert math.isnan(field(history, "a", "bytes", 1005.0, 1)[0])
    assert "0" not in history.port_bps("p")
    assert texts(history.job("a", slot_of(1000.0), 1, 1)[0].tolist()) == "[null,2,null,null,70,null,null]"


def test_a_clock_that_was_set_back_leaves_no_hour_without_samples() -> None:
    history = History()
    for moment in (1000.0, 1005.0, 1600.0, 1010.0, 1015.0):
        history.sample(moment, {"a": job(moment)}, {"p": {0: int(moment)}})
    assert field(history, "a", "bytes", 1005.0, 3)[::2] == [5.0, 5.0]
    assert math.isnan(field(history, "a", "metric", 1600.0, 1)[0])
    assert history.port_bps("p")["0"] == 8.0


def test_what_a_port_receives_is_a_rate_since_the_sample_before() -> None:
    history = History()
    history.sample(1000.0, {}, {}, {"p": 100, "q": 7})
    assert history.received_bps("p") is None, "one count is no rate"
    history.sample(1005.0, {}, {}, {"p": 1100})
    assert (history.received_bps("p"), history.received_bps("q")) == (1000 * 8 / SAMPLE_SECONDS, None)
    history.sample(1020.0, {}, {}, {"p": 4100, "q": 8})
    assert history.received_bps("p") == 3000 * 8 / 15, "two samples are missing"
    assert history.received_bps("q") is None
    history.sample(1025.0, {}, {}, {"p": 50})
    assert history.received_bps("p") == 50 * 8 / SAMPLE_SECONDS, "its switch counts from 0 again"
    history.sample(1000.0, {}, {}, {"p": 90})
    assert history.received_bps("p") is None, "the clock was set back"
    history.sample(1005.0, {}, {})
    assert history.received_bps("p") is None, "it is not counted any more"


def test_numbers_as_json() -> None:
    assert texts([1.0, math.nan, 0.1, 123456789.0, 1e30]) == "[1,null,0.1,1.234568e+08,1e+30]"
