"""What ``scripts/evaluate tensorlights`` claims and writes, up to the box's process boundary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation import evaluate, summary
from evaluation.tensorlights import claim
from evaluation.tensorlights.groups import AS_CLAIMED, BANDED, EACH, FAIR, ONE, PUBLISHED, SENT, TOGETHER, Group
from tests.support.fake_kernel import FakeKernel
from tests.support.tensorlights_results import arm, job, lab

JCTS = {"fair": 50.0, "tls-one": 40.0, "tls-rr": 30.0, "tls-each": 25.0}
ALONE = ("mean_jct", "mean_barrier_wait", "barrier_wait_variance", "mean_server_wait", "server_wait_variance")
"""What is claimed of a band for each job, which is measured where all servers stand on one host."""


def test_completion_times_are_claimed_everywhere_and_waits_where_all_servers_are_together() -> None:
    fields = claim.add_up(
        [
            (
                Group(placement, 3, iterations=2, variant=variant),
                lab(*(arm(choice.name, 3, job(JCTS[choice.name])) for choice in arms)),
            )
            for placement, arms, variant in (
                (TOGETHER, PUBLISHED, AS_CLAIMED),
                (TOGETHER, (FAIR, EACH), BANDED),
                ((1,) * 21, PUBLISHED, AS_CLAIMED),
            )
        ]
    )
    claims = claim.headline(fields)
    assert [entry["metric"] for entry in claims] == [
        *("mean_jct",) * 2, *("mean_barrier_wait",) * 2, *("barrier_wait_variance",) * 2, *("mean_server_wait",) * 2,
        *("server_wait_variance",) * 2, *("mean_jct",) * 2, *ALONE,
    ]  # fmt: skip
    assert "TLs-One" in claims[0]["claim"]
    each = claims[-len(ALONE)]
    assert each["claim"].startswith("TLs-One with a band for each job shortens the mean job completion time")
    assert each["reduction"] == pytest.approx(0.5)
    assert claims[0]["claim"].endswith("21 parameter servers on one host")
    assert claims[1]["reduction"] == pytest.approx(0.4)
    assert claims[-len(ALONE) - 1]["claim"].endswith("21 parameter servers on 21 hosts, one each")


def test_tables_say_what_no_order_can_save_and_what_a_variant_changes() -> None:
    arms = [arm(choice.name, 3, job(80.0)) for choice in PUBLISHED]
    fields = claim.add_up(
        [
            (Group(TOGETHER, 3, iterations=2), lab(*arms)),
            (Group(TOGETHER, 3, iterations=2, policies=(FAIR, ONE), variant=SENT), lab(*arms[:2])),
        ]
    )
    titles = [str(table.title) for table in claim.tables(fields)]
    assert len(titles) == 8
    assert "no order saves more than" in titles[0]
    assert titles[1] == "21 parameter servers on one host: waits at barriers"
    assert titles[2].endswith("simulated, a stream for each connection")
    assert titles[3].endswith("of the jobs in each band of TLs-One")
    assert "the server sends the model" in titles[4]


def test_the_command_measures_quickly_and_writes_all(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "out"
    arguments = ["tensorlights", "--quick", "--datapath", "uml", "--results", str(folder)]
    assert evaluate.main(arguments) == 0
    assert kernel.runs() == ["servers-21-1"]
    made = json.loads((folder / "summary.json").read_text())
    assert (made["quick"], made["arms"], made["seeds"]) == (True, 3, [1])
    assert list(made["placements"]["21"]["arms"]) == ["fair", "tls-one", "tls-rr"]
    assert all("quick" in entry["claim"] for entry in made["headline"])
    assert (folder / "tensorlights.png").read_bytes().startswith(b"\x89PNG")
    assert "not to be quoted" in capsys.readouterr().out
    kernel.forget()
    assert evaluate.main([*arguments, "--resume"]) == 0
    assert kernel.runs() == [], "its result answers the same request"


def test_the_docs_may_quote_only_what_the_summary_has(tmp_path: Path) -> None:
    results = [
        (
            Group(TOGETHER, seed, iterations=2),
            lab(*(arm(choice.name, seed, job(40.0 + seed)) for choice in PUBLISHED)),
        )
        for seed in (61, 62, 63)
    ]
    made = evaluate.document(claim, results, "scripts/evaluate tensorlights", 1, commits=["a"], quick=False)
    summary.write(tmp_path / "summary.json", made)
    document = json.loads((tmp_path / "summary.json").read_text())
    assert {"command", "commit", "machine", "seeds", "headline", "placements", "why", "quick"} <= set(document)
    assert document["seeds"] == [61, 62, 63]
    for entry in document["headline"]:
        assert {"claim", "metric", "unit", "baseline", "value", "reduction", "ci95"} <= set(entry)
