"""What launchers put before a line is taken away; what the training wrote stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.formats.prefixes.cleaning import Cleaned, Cleaner, plain
from host_reporter.formats.prefixes.dates import shift

LINE = "epoch 3 loss 0.5"


def cleaned(line: str) -> Cleaned:
    found = Cleaner().feed(line)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("", None),
        ("[rank0]:", 0),
        ("[rank12]: ", 12),
        ("[default3]:", 3),
        ("[trainer0]: ", 0),
        ("0: ", 0),
        (" 3: ", 3),
        ("[1,0]<stdout>:", 0),
        ("[1,17]<stderr>: ", 17),
        ("[prterun-gpu01-4711@1,2]<stdout>: ", 2),
        ("[3]<stdout>:", 3),
        ("Mon Oct 19 20:44:09 2020[1]<stderr>:", 1),
        ("0: [default0]:", 0),
        ("1: [rank0]: ", 1 << 20),
        ("worker-1: ", None),
        ("gpu01.example.org: [2024-05-01 12:00:00,123] ", None),
        ("0: [rank3]: ", 3),
        ("(pid=123) ", None),
        ("(train_fn pid=123, ip=10.0.0.1) ", None),
        ("(RayTrainWorker pid=7) [rank0]: ", 0),
        ("[rank1]: 2024-05-01 12:00:00,123 ", 1),
    ],
)
def test_launchers_labels_are_taken_away(prefix: str, rank: int | None) -> None:
    found = cleaned(prefix + LINE)
    assert (found.text, found.rank) == (LINE, rank)


@pytest.mark.parametrize(
    "stamp",
    [
        "2024-05-01T12:00:00+00:00 ",
        "2024-05-01T12:00:00.000Z ",
        "[2024-05-01 12:00:00+0000] ",
        "2024-05-01 12:00:00,000Z: ",
    ],
)
def test_a_date_is_the_lines_time(stamp: str) -> None:
    assert cleaned(stamp + LINE) == Cleaned(LINE, stamp + LINE, 1714564800.0, is_zoned=True)


@pytest.mark.parametrize(
    "stamp",
    [
        "[12:00:00] ",
        "12:00:00 | ",
        "I0501 12:00:00.123456 12345 train.py:12] ",
        "May  1 12:00:00 host7 python[812]: ",
        "May 01 12:00:00 ",
        "Wed May  1 12:00:00 2024: ",
    ],
)
def test_a_time_without_a_year_is_taken_away(stamp: str) -> None:
    assert cleaned(stamp + LINE) == Cleaned(LINE, stamp + LINE)


def test_a_number_behind_a_label_is_no_label() -> None:
    assert cleaned("0: 12: loss 0.5").text == "12: loss 0.5"


@pytest.mark.parametrize(
    "line",
    [
        "Epoch [3]: loss 0.5",
        "[epoch3]: loss 0.5",
        "12/100 loss: 3",
        "step:3",
        "3",
        "2024",
        "top1: 70.2 loss 0.5",
        "acc5: 81%",
        "epoch1: loss 0.5",
        "f1: .5, loss: 2",
    ],
)
def test_what_looks_like_a_label_stays(line: str) -> None:
    assert cleaned(line).text == line


def test_colours_backspaces_and_controls_go() -> None:
    assert plain("\x1b[1;32mloss\x1b[0m 0.5\x00\x07") == "loss 0.5"
    assert plain("\x1b]0;title\x07loss 0.5") == "loss 0.5"
    assert plain("10%\b\b\b20% done") == "20% done"
    assert plain("\b\bx") == "x"
    # The cursor goes back; what stands there stays until something is written over it.
    assert plain("20% done\b\b\b\b") == "20% done"
    assert plain("20% done\b\b\b\bleft") == "20% left"
    assert plain("10% |#\r20% |##\r") == "20% |##"


def test_the_parts_of_a_line_of_cri_are_joined_stream_by_stream() -> None:
    cleaner = Cleaner()
    stamp = "2024-05-01T12:00:00.123456789Z"
    assert cleaner.feed(f"{stamp} stdout P epoch 3 ") is None
    time = 1714564800.123456
    assert cleaner.feed(f"{stamp} stderr F a warning") == Cleaned("a warning", "a warning", time, is_zoned=True)
    assert cleaner.feed(f"{stamp} stdout P loss") is None
    assert cleaner.feed(f"{stamp} stdout F  0.5") == Cleaned(LINE, LINE, time, is_zoned=True)


def test_dockers_json_lines_are_unwrapped() -> None:
    cleaner = Cleaner()
    whole = '{"log":"epoch 3 loss 0.5\\n","stream":"stdout","time":"2024-05-01T12:00:00.123456789Z"}'
    assert cleaner.feed(whole) == Cleaned(LINE, LINE, 1714564800.123456, is_zoned=True)
    assert cleaner.feed('{"log":"epoch 3 ","stream":"stdout"}') is None
    assert cleaner.feed('{"log":"loss 0.5\\n","stream":"stdout"}') == Cleaned(LINE, LINE)
    assert cleaner.feed('{"log":5}') == Cleaned('{"log":5}', '{"log":5}')


def test_a_bar_in_dockers_lines_is_seen_before_its_line_ends() -> None:
    cleaner = Cleaner()
    assert cleaner.feed('{"log":"\\r 1%| 1/99 [\\r 2%| 2/99 [\\r 3%| 3/9","stream":"stderr"}') == Cleaned(
        " 2%| 2/99 [", " 2%| 2/99 ["
    )
    assert cleaner.feed('{"log":"9 [\\r 4%| 4/99 [\\n","stream":"stderr"}') == Cleaned(" 4%| 4/99 [", " 4%| 4/99 [")


@given(st.lists(st.text(max_size=60), max_size=5))
def test_no_line_raises_and_none_grows(lines: list[str]) -> None:
    cleaner = Cleaner()
    for line in lines:
        found = cleaner.feed(line)
        assert found is None or len(found.text) <= len(found.raw)


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    Cleaner().feed(data.decode(errors="replace"))


def test_parts_without_end_take_no_memory() -> None:
    cleaner = Cleaner()
    for _ in range(100):
        assert cleaner.feed("2024-05-01T12:00:00Z stdout P " + "x" * 10_000) is None
    found = cleaner.feed("2024-05-01T12:00:00Z stdout F end")
    assert found is not None
    assert len(found.text) <= 64 * 1024


def test_a_date_without_a_zone_is_said_to_be_one() -> None:
    found = cleaned(" [2024-05-01 12:00:00] epoch 3 loss 0.5")
    assert (found.text, found.is_zoned) == (LINE, False)
    assert found.time is not None


@pytest.mark.parametrize(
    ("late", "expected"),
    [(0, 0), (60, 0), (-5, 0), (3600, 3600), (-7200 + 30, -7200), (5 * 3600 + 1800, 19800), (300, None), (10**7, None)],
)
def test_dates_are_shifted_by_whole_time_zones_or_not_used(late: float, expected: float | None) -> None:
    assert shift(1e9, 1e9 + late) == expected


def test_ranks_in_brackets_are_labels_only_where_a_launcher_writes_them() -> None:
    line = "[3] [10]\ttrain-rmse:0.5"
    assert (cleaned := Cleaner(ranks_in_brackets=True).feed(line)) is not None
    assert (cleaned.rank, cleaned.text) == (3, "[10]\ttrain-rmse:0.5")
    assert (cleaned := Cleaner().feed("[10] train-rmse:0.5")) is not None
    assert (cleaned.rank, cleaned.text) == (None, "[10] train-rmse:0.5")


@pytest.mark.parametrize(
    "prefix",
    [
        "2024-05-01 12:00:00,123 - INFO - ",
        "2024-05-01 12:00:00,123 - train - INFO - ",
        "05/01/2024 12:00:00 - INFO - __main__ - ",
        "2024-05-01 12:00:00,123 INFO: ",
        "2024-05-01 12:00:00,123 - WARNING - my.package.train:12 - ",
        "2024-05-01 12:00:00.123 | INFO     | __main__:main:12 - ",
        "[2024-05-01 12:00:00,123 INFO] ",
        "[2024-05-01 12:00:00,123][__main__][INFO] - ",
        "[2024-05-01 12:00:00,123][INFO][my.module] ",
        "[INFO|trainer.py:2134] 2024-05-01 12:00:00,123 >> ",
        "[INFO] ",
        "INFO:root:",
        "INFO:my.module:",
        "0: 2024-05-01 12:00:00,123 - INFO - ",
    ],
)
def test_what_a_logger_puts_before_a_line(prefix: str) -> None:
    assert cleaned(prefix + LINE).text == LINE
    assert cleaned(prefix + "[10]\ttrain-rmse:0.5").text == "[10]\ttrain-rmse:0.5"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("2023-01-01 12:00:00,000 - mmcv - INFO - Epoch [1][50/100]", "- mmcv - INFO - Epoch [1][50/100]"),
        ("INFO:tensorflow:loss = 0.5, step = 100", "INFO:tensorflow:loss = 0.5, step = 100"),
        ("2023-01-01 12:00:00 | INFO | train_inner | {}", "INFO | train_inner | {}"),
        ("INFO - epoch 3", "INFO - epoch 3"),
        ("2023-01-01 12:00:00 - epoch - 3", "- epoch - 3"),
    ],
)
def test_what_tells_the_format_of_a_line_stays(line: str, text: str) -> None:
    assert cleaned(line).text.lstrip("| ") == text
