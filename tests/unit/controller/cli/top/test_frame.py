"""From a picture to the lines of a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.cli.top.document import document
from controller.cli.top.frame import Paper, frame, paper_of
from controller.cli.top.picture import Picture, Reading, after_reading
from tests.support.controller.cli.pictures import SETTINGS, history, job, jobs, network, plan, status, target

READING = Reading(
    status=status("h3", problems=["switch 1 is not ready: gone"]),
    settings=SETTINGS,
    plan=plan(("b",), ("a",), ("c",)),
    network=network(h1={"0": 6e8, "2": 3e8, "other": 1e6}, h2={"0": 1e8}),
    history=history(a=[None, 5e6, None], b=[1e7], c=[None]),
    jobs=jobs(
        job("a", 1, ("h2", "h1", 1e6), spec={"iterations": 40, "stage": "rung-1"}, targets={"t90": target(30, 28, 35)}),
        job("b", 0, ("h3", "h1", 1e6), spec={"iterations": 200, "user": "ann"}),
        job("c", 2, ("h2", "h1", 1e6), last_metric=None),
        job("gone", None, state="ended", iterations_done=7.0),
        job("ready", 2, state="waiting", iterations_done=0.0, last_metric=None),
    ),
)
PICTURE = after_reading(Picture(), READING, 100.0)


def shown(
    picture: Picture = PICTURE, width: int = 130, height: int | None = None, gone: str | None = None
) -> list[str]:
    lines = frame(picture, 103.0, Paper(width, height), gone=gone)
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def test_a_wide_picture_says_it_all() -> None:
    assert shown() == [
        "policy jpas, a plan each 5 s, enforced at switches and hosts",
        "plan 7 for at least 5 s; jobs are served after 12 s in the mean, no order is below 10 s (20 % above it)",
        "! switch 1 is not ready: gone",
        "1 of 3 hosts silent: h3",
        "",
        "cl  job    of      progress         pace  metric        target                     sends  waits for",
        "0   b      ann     #......... 10 %     -  accuracy 0.5  -                      2.00 MB/s  -",
        "1   a      rung-1  #####..... 50 %     -  accuracy 0.5  t90 0.9 at 30 (28-35)  1.00 MB/s  b at h1 in",
        "2   c      -       20 done             -  -             -                              -  b +1 at h1 in",
        "2   ready  -       waiting             -  -             -                              -  -",
        "-   gone   -       ended, 7 done       -  accuracy 0.5  -                              -  -",
        "",
        "port       use        load  by class",
        "1:1 > h1  90 %  901 Mbit/s  0: 67 %, 2: 33 %",
        "1:2 > h2  10 %  100 Mbit/s  0: 100 %",
    ]


def test_who_shares_a_port_waits_beside_others() -> None:
    alike = jobs(*(job(name, 1, ("h2", "h1", 1e6)) for name in "xyz"))
    lines = shown(after_reading(Picture(), replace(READING, plan=None, network=None, jobs=alike), 100.0))
    assert [line.endswith("2 beside at h2 out") for line in lines if line.startswith("1   ")] == [True] * 3


@pytest.mark.parametrize("width", [80, 60, 40, 10, 1])
@pytest.mark.parametrize("height", [60, 24, 12, 8, 3, 1])
def test_it_fits_any_terminal(width: int, height: int) -> None:
    many = replace(
        PICTURE,
        jobs=PICTURE.jobs | {f"job-{i}": job(f"job-{i}", i % 7, ("h2", "h1", 1e6)) for i in range(30)},
    )
    lines = shown(many, width, height)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)


def test_what_does_not_fit_is_counted() -> None:
    lines = shown(height=12, width=80)
    assert len(lines) == 12
    assert lines[5].startswith("cl  job")
    assert "3 more" in lines
    assert any(line.startswith("port ") for line in lines)


def test_80_columns_keep_the_interval_and_who_is_before() -> None:
    busy = replace(
        PICTURE,
        jobs={
            name: job(
                name, place, ("h2", "h1", 1e6), spec={"iterations": 400, "user": "ann"},
                targets={"t90": target(152, 131, 216)}, last_metric=0.80264,
            )
            for place, name in enumerate(("job10", "job11"))
        },
        sent={"job10": 1.96e7, "job11": 1.96e7},
        loads=dict.fromkeys(("job10", "job11"), PICTURE.loads["a"]),
    )  # fmt: skip
    line = next(line for line in shown(busy, 80) if "job11" in line and "job10" in line)
    assert "t90 152 (131-216)" in line and "job10 at h2 out" in line and "0.8026" in line


def test_a_long_name_is_cut_before_other_columns_are_narrower() -> None:
    long = "training-of-" + "a" * 50
    names = (long, "job11")
    busy = replace(
        PICTURE,
        jobs={name: job(name, place, ("h2", "h1", 1e6), last_metric=0.8) for place, name in enumerate(names)},
        loads=dict.fromkeys(names, PICTURE.loads["a"]),
    )
    first, second = (line for line in shown(busy, 100) if "training-of-" in line)
    assert "0   training-of-" in first and first.count("…") == 1, "the name alone is cut"
    assert second.endswith(f"{long[:19]}… at h2 out"), "who is before is cut, and not the port"


def test_a_controller_that_is_gone_is_said_first() -> None:
    assert shown(gone="controller gone since 12 s; trying again")[0] == "controller gone since 12 s; trying again"


def test_paused_and_observing_are_said() -> None:
    paused = replace(PICTURE, status=status(paused=True))
    assert shown(paused)[0] == "policy jpas, a plan each 5 s, paused: nothing is enforced"
    observing = replace(PICTURE, status=status(enforce=[]))
    assert shown(observing)[0] == "policy jpas, a plan each 5 s, observing: nothing is enforced"


def test_where_no_two_jobs_meet_it_says_that_ordering_cannot_help() -> None:
    alone = replace(PICTURE, jobs={name: PICTURE.jobs[name] for name in ("a", "gone")})
    assert "no two jobs send or receive at the same port: ordering cannot help here" in shown(alone)
    assert not any("ordering cannot help" in line for line in shown())


def test_a_tenant_sees_its_jobs_and_no_gaps_where_the_rest_would_be() -> None:
    own = Reading(status=None, settings=None, plan=None, network=None, history=history(a=[5e6]), jobs=READING.jobs)
    lines = shown(after_reading(Picture(), own, 100.0))
    assert lines[0] == "" and lines[1].startswith("cl  job")
    assert not any("None" in line or "hosts" in line for line in lines)


def test_many_problems_are_counted_and_what_they_say_does_not_control_the_terminal() -> None:
    many = replace(PICTURE, status=status(problems=["\x1b[2Jclear", *(f"problem {i}" for i in range(9))]))
    lines = shown(many)
    assert "! ?[2Jclear" in lines
    assert "! 6 more problems" in lines


def test_bars_are_blocks_where_the_terminal_has_them() -> None:
    assert paper_of("UTF-8", 80, 24) == Paper(80, 24, "█", "░")
    assert paper_of("utf8", 80, 24).full == "█"
    assert paper_of("ascii", 80, 24) == Paper(80, 24)
    assert paper_of(None, 80, 24) == Paper(80, 24)


def test_the_document_has_the_same_numbers() -> None:
    found = document(PICTURE)
    assert found["policy"] == "jpas"
    assert found["silent_hosts"] == ["h3"]
    a, b = (next(job for job in found["jobs"] if job["id"] == name) for name in "ab")
    assert (a["before"], a["busiest_port"], a["bytes_per_second"]) == (["b"], "h1 ingress", 1e6)
    assert (b["before"], b["user"], b["targets"]) == ([], "ann", {})
    assert a["targets"]["t90"] == target(30, 28, 35) | {"reached": False}
    assert found["ports"][0] == {
        "port": "1:1 > h1",
        "rate_bps": 1e9,
        "load_bps": 901e6,
        "by_class_bps": {"0": 6e8, "2": 3e8, "other": 1e6},
    }
    nothing = document(Picture())
    assert (nothing["ports"], nothing["problems"], nothing["jobs"]) == (None, None, [])
