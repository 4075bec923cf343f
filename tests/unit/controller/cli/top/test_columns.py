"""Tables that fit a width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.cli.top.columns import Column, Line, cut, fitted, table

COLUMNS = [
    Column("cl", [("0", "green"), ("1", "cyan")], 0, 2),
    Column("job", [("resnet-50-of-ann", ""), ("b", "")], 1, 6),
    Column("of", [("ann", ""), ("rung-1", "")], 3),
    Column("sends", [("1.00 MB/s", ""), ("-", "")], 2, 9, is_right=True),
]


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_a_wide_table_shows_all() -> None:
    assert texts(table(COLUMNS, 80)) == [
        "cl  job               of          sends",
        "0   resnet-50-of-ann  ann     1.00 MB/s",
        "1   b                 rung-1          -",
    ]


def test_in_a_narrow_one_columns_shrink_and_then_go_and_others_have_their_room() -> None:
    assert texts(table(COLUMNS, 32))[1] == "0   resnet-50-…  ann   1.00 MB/s"
    assert texts(table(COLUMNS, 26)) == [
        "cl  job              sends",
        "0   resnet-50-…  1.00 MB/s",
        "1   b                    -",
    ]
    assert texts(table(COLUMNS, 10)) == ["cl  job", "0   resne…", "1   b"]
    assert texts(table(COLUMNS, 1)) == ["…", "0", "1"]


def test_a_column_that_has_enough_is_cut_first() -> None:
    job = Column("job", COLUMNS[1].cells, 1, 6, enough=12)
    columns = [COLUMNS[0], job, *COLUMNS[2:]]
    assert texts(table(columns, 80)) == texts(table(COLUMNS, 80))
    assert texts(table(columns, 37))[1] == "0   resnet-50-of-…  ann     1.00 MB/s"
    assert texts(table(columns, 34))[1] == "0   resnet-50-o…  ann    1.00 MB/s"


@given(
    width=st.integers(1, 100),
    cells=st.lists(st.lists(st.text("abc", max_size=30), min_size=2, max_size=2), min_size=1, max_size=6),
    least=st.integers(1, 12),
)
def test_no_row_is_wider_than_the_table(width: int, cells: list[list[str]], least: int) -> None:
    columns = [
        Column("title", [(text, "") for text in column], rank, least, is_right=rank % 2 == 1)
        for rank, column in enumerate(cells)
    ]
    lines = table(columns, width)
    assert len(lines) == 3
    assert all(len(line) <= width for line in texts(lines))


def test_a_line_is_cut_where_the_width_ends() -> None:
    assert cut("abcdef", 4) == "abc…"
    assert cut("abcd", 4) == "abcd"
    assert cut("abcd", 0) == ""
    assert fitted((("abc", "red"), ("defg", ""), ("h", "")), 5) == (("abc", "red"), ("d…", ""))
