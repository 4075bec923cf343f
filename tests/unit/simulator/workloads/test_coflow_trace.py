"""Coflow traces: what is read, and what each malformed line is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.jobs import Transfer
from simulator.workloads.coflow_trace import MEGABYTE, parse, read

GOOD = "4 2\n1 0 2 0 1 2 2:10.5 3:4\n7 1500 1 3 1 3:1\n"


def flows(text: str, number: int) -> list[tuple[str, str, float]]:
    (step,) = parse(text, "t").jobs[number].lanes[0]
    assert isinstance(step, Transfer)
    return [(flow.src, flow.dst, flow.bytes) for flow in step.flows]


def test_bytes_come_in_equal_parts_from_the_mappers() -> None:
    mb = MEGABYTE
    assert flows(GOOD, 0) == [
        ("0", "2", 5.25 * mb), ("1", "2", 5.25 * mb), ("0", "3", 2 * mb), ("1", "3", 2 * mb),
    ]  # fmt: skip
    assert flows(GOOD, 1) == [("3", "3", mb)]


def test_arrivals_ids_and_hosts() -> None:
    workload = parse(GOOD, "t", port_rate_bps=2e9)
    assert [(job.id, job.arrival, job.iterations) for job in workload.jobs] == [("1", 0.0, 1), ("7", 1.5, 1)]
    assert list(workload.hosts) == ["0", "1", "2", "3"]
    assert {rate for host in workload.hosts.values() for rate in (host.ingress_bps, host.egress_bps)} == {2e9}
    assert [job.arrival for job in parse(GOOD, "t", offline=True).jobs] == [0.0, 0.0]


@pytest.mark.parametrize("first", ["1700000000000", "1.7e12", "17e11"])
def test_arrivals_count_from_the_first_and_lose_no_digits(first: str) -> None:
    def trace(*arrivals: str) -> str:
        return f"2 {len(arrivals)}\n" + "".join(f"{i} {arrival} 1 0 1 1:1\n" for i, arrival in enumerate(arrivals))

    near = parse(trace("0", "0.1", "123", "1e-999999999999999999999"), "t").jobs
    far = parse(trace(first, "1700000000000.1", "1700000000123", "1.7e12"), "t").jobs
    assert [job.arrival for job in far] == [job.arrival for job in near] == [0.0, 1e-4, 0.123, 0.0]


@pytest.mark.parametrize(
    "text",
    [
        "1 0",
        "1 0\n\n  \n",
        "2 1\r\n1 0 1 0 1 1:1\r\n",
        "2 1\n1 0 1 0 1 1:0",
        "2 1\n1 0 0 0\n",
        "2 1\n1 0 0 1 1:0\n",
        "2 1\n1 0.5 1 0 1 1:1e-3\n",
    ],
)
def test_unusual_but_right_traces_are_read(text: str) -> None:
    parse(text, "t")


def test_a_coflow_without_bytes_has_no_flows() -> None:
    assert flows("2 1\n1 0 1 0 1 1:0", 0) == []


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("", 1, "ports"),
        ("4", 1, "coflows"),
        ("4 x", 1, "coflows"),
        ("0 0", 1, "ports"),
        ("-1 0", 1, "ports"),
        ("99999999999999 0", 1, "ports"),
        ("4 1 9\n1 0 1 0 1 1:1", 1, "word 3"),
        ("4 2\n1 0 1 0 1 1:1", 1, "coflows"),
        ("4 0\n1 0 1 0 1 1:1", 1, "coflows"),
        ("4 1\n\x1b[31m 0 1 0 1 1:1", 2, "id"),
        (f"4 1\n{'x' * 256} 0 1 0 1 1:1", 2, "id"),
        ("4 1\nx 0 2 3 3 1 1:1", 2, "mapper 2"),
        ("4 1\nx 0 1 0 3 1:1 2:1 1:0", 2, "reducer 3"),
        ("# four ports\n\n4 1 # one coflow\n\n# it\nx 0 1 9 1 1:1", 6, "mapper 1"),
        ("4 1\n1", 2, "arrival"),
        ("4 1\n1 -5 1 0 1 1:1", 2, "arrival"),
        ("4 1\n1 soon 1 0 1 1:1", 2, "arrival"),
        ("4 1\n1 1e999 1 0 1 1:1", 2, "arrival"),
        ("4 1\n1 nan 1 0 1 1:1", 2, "arrival"),
        ("4 1\n1 0", 2, "mappers"),
        ("4 1\n1 0 1.5 0 1 1:1", 2, "mappers"),
        ("4 1\n1 0 9 0 1 1:1", 2, "mappers"),
        ("4 1\n1 0 2 0 1 1:1", 2, "reducers"),
        ("4 1\n1 0 1 4 1 1:1", 2, "mapper 1"),
        ("4 1\n1 0 2 0 x 1 1:1", 2, "mapper 2"),
        ("4 1\n1 0 1 0", 2, "reducers"),
        ("4 1\n1 0 1 0 2 1:1", 2, "reducers"),
        ("4 1\n1 0 1 0 1 1:1 2:1", 2, "word 7"),
        ("4 1\n1 0 1 0 1 1", 2, "reducer 1"),
        ("4 1\n1 0 1 0 1 4:1", 2, "reducer 1 port"),
        ("4 1\n1 0 1 0 1 :1", 2, "reducer 1 port"),
        ("4 1\n1 0 1 0 1 1:-1", 2, "reducer 1 megabytes"),
        ("4 1\n1 0 1 0 1 1:", 2, "reducer 1 megabytes"),
        ("4 1\n1 0 1 0 1 1:1_0", 2, "reducer 1 megabytes"),
        ("4 1\n1 0 1 0 1 1:inf", 2, "reducer 1 megabytes"),
        ("4 1\n1 0 0 1 1:1", 2, "mappers"),
        ("4 2\n1 0 1 0 1 1:1\n1 0 1 0 1 1:1", 3, "id"),
        ("4 3\n1 0 1 0 1 1:1\n\n2 0 1 0 1 1:1", 1, "coflows"),
        ("4 2\n\n#2 0 1 0 1 1:1\n2 0 1 0 1 1:1", 1, "coflows"),
    ],
)
def test_a_malformed_line_is_named_with_its_field(text: str, line: int, field: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, "trace.txt")
    assert str(error.value).startswith(f"trace.txt:{line}: {field}: ")


def test_files_that_are_none_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.txt: cannot be read: No such file"):
        read(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "binary").write_bytes(b"4 1\n\xff")
    with pytest.raises(InputError, match=r"binary:2: byte 5 of the file \(0xff\) is no UTF-8 text"):
        read(tmp_path / "binary")
    (tmp_path / "empty").write_bytes(b" \n")
    with pytest.raises(InputError, match="empty:1: is empty; it must hold a trace: a line with two counts"):
        read(tmp_path / "empty")


def test_comments_and_empty_lines_are_passed_over() -> None:
    told = "# of a run\n\n4 2 # ports, coflows\n\t\n1 0 2 0 1 2 2:10.5 3:4\n  # the second\n7 1500 1 3 1 3:1 #9:9\n\n"
    assert parse(told, "t") == parse(GOOD, "t")


def test_ids_may_be_words() -> None:
    told = "4 4\nresnet-50/1 0 1 0 1 1:1\n007 0 1 0 1 1:1\n7 0 1 0 1 1:1\na#1 0 1 0 1 1:1"
    assert [job.id for job in parse(told, "t").jobs] == ["resnet-50/1", "007", "7", "a#1"]


def test_a_port_may_be_mapper_and_reducer() -> None:
    assert flows("4 1\n1 0 1 3 1 3:1", 0) == [("3", "3", MEGABYTE)]


def test_a_trace_is_read_gzipped_and_with_a_byte_order_mark(tmp_path: Path) -> None:
    for name, raw in (("t.gz", gzip.compress(GOOD.encode())), ("marked", b"\xef\xbb\xbf" + GOOD.encode())):
        (tmp_path / name).write_bytes(raw)
        assert parse(read(tmp_path / name), "t") == parse(GOOD, "t")
