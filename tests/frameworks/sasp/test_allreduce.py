"""SaSP over all-reduce beside plain DDP: real torch, two ranks of Gloo on loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.support.frameworks import sasp_ranks
from tests.support.paths import ROOT, SUPPORT

RANKS = SUPPORT / "frameworks" / "sasp_ranks.py"
KINDS = ("plain", "adam", "tangled", "accumulate", "mixed")
TWO = (*(f"{kind}-{how}" for kind in KINDS for how in ("ddp", "0")), "refused", "twice", "hooks", "loads", "ahead")
WAYS = ("momentum-1", "local-2", "corrected-2", "partial-local-1", "partial-momentum-2", "halves-1")
THREE = ("slow-evaluate-1", "slow-evaluate-3", *(f"slow-evaluate-adam-{way}" for way in WAYS), "momentum-ddp",
         *(f"{way}-0" for way in ("momentum", "local", "corrected")))  # fmt: skip


def start(cases: Sequence[str], folder: Path, world: int) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, str(RANKS), ",".join(cases), str(rank), str(world), str(folder)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]


def run(cases: Sequence[str], folder: Path, world: int) -> dict[str, list[dict]]:
    """All cases, one after the other in the same processes: to load torch takes longer than to train."""
    ranks = start(cases, folder, world)
    said = [rank.communicate(timeout=280)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world, "\n".join(said)
    return {case: [torch.load(folder / f"{case}.{rank}.pt") for rank in range(world)] for case in cases}


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:
    return run(TWO, tmp_path_factory.mktemp("two"), 2)


@pytest.fixture(scope="module")
def three_ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:
    return run(THREE, tmp_path_factory.mktemp("three"), 3)


def assert_close(one: list, other: list, tolerance: float) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_without_staleness_the_parameters_are_those_of_ddp(kind: str, two_ranks: dict[str, list[dict]]) -> None:
    ddp, sasp = two_ranks[f"{kind}-ddp"], two_ranks[f"{kind}-0"]
    assert_close(ddp[0]["parameters"], sasp[0]["parameters"], 2e-6)
    for a, b in zip(sasp[0]["parameters"], sasp[1]["parameters"], strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("staleness", [1, 3])
def test_with_staleness_the_bound_is_kept_and_a_flush_makes_all_ranks_the_same(
    staleness: int, three_ranks: dict[str, list[dict]]
) -> None:
    found = three_ranks[f"slow-evaluate-{staleness}"]
    for rank in found:
        # Right after step(), before the next forward pass waits, one more is on its way.
        assert max(rank["leads"]) <= staleness + 1
        for a, b in zip(found[0]["parameters"], rank["parameters"], strict=True):
            assert torch.equal(a, b)
    assert max(lead for rank in found for lead in rank["leads"]) >= 1


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_done_about_late_gradients_a_flush_makes_all_ranks_the_same(
    way: str, three_ranks: dict[str, list[dict]]
) -> None:
    found = three_ranks[f"slow-evaluate-adam-{way}"]
    staleness = int(way[-1])
    for rank in found:
        assert max(rank["leads"]) <= staleness + 1
        for a, b in zip(found[0]["parameters"], rank["parameters"], strict=True):
            assert torch.equal(a, b)
        if "partial" in way:
            assert rank["late"] == found[0]["late"]
            assert (0, 0, 0) in rank["late"]
            assert max(max(leads) for leads in rank["late"]) <= staleness


@pytest.mark.parametrize("way", ["momentum", "local", "corrected"])
def test_without_staleness_nothing_is_done(way: str, three_ranks: dict[str, list[dict]]) -> None:
    assert_close(three_ranks["momentum-ddp"][0]["parameters"], three_ranks[f"{way}-0"][0]["parameters"], 2e-6)


def test_what_the_ranks_disagree_on_is_said(two_ranks: dict[str, list[dict]]) -> None:
    for said in two_ranks["refused"]:
        assert said["staleness"] == "the ranks differ in their staleness: 0 in one, 1 in another"
        assert "differ in their chunk_bytes" in said["chunks"]
        assert "at least 1024" in said["small chunks"]
        assert "whole number of 0 or more" in said["negative"]
        assert "a patience of 0.0 s" in said["impatient"]
        assert "prediction is 'adam'; choose from none, momentum, local" in said["way"]
        assert "would let the ranks' parameters part" in said["ways"]
        assert "differ in their prediction, delay_compensation or rates" in said["other ways"]
        assert "needs a staleness of 1 or more" in said["needless"]
        assert "halves=True with a staleness of 0; it needs 1" in said["halves"]
        assert "goes with no other way" in said["halves and more"]


def test_a_second_backward_pass_is_refused_with_what_would_be_right(two_ranks: dict[str, list[dict]]) -> None:
    for said in two_ranks["twice"]:
        assert "no_sync" in said["said"]


def test_what_is_loaded_amid_a_training_stays(two_ranks: dict[str, list[dict]]) -> None:
    for rank in two_ranks["loads"]:
        for found, wanted in zip(rank["found"], rank["wanted"], strict=True):
            assert torch.equal(found, wanted)


def test_hooks_are_of_iterations_and_not_of_layers(two_ranks: dict[str, list[dict]]) -> None:
    for counts in two_ranks["hooks"]:
        assert counts == dict.fromkeys(("inner", "wrapped", "all"), sasp_ranks.ITERATIONS)


def test_a_layer_has_come_though_the_next_round_waits_for_a_rank_that_computes(
    two_ranks: dict[str, list[dict]],
) -> None:
    assert two_ranks["ahead"] == [{"reached": 1, "sums": {3.0}}] * 2


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_a_rank_that_is_lost_ends_the_job_for_the_others_with_one_line(how: str, tmp_path: Path) -> None:
    """Its process is killed, which its peers' sockets tell; or it is stopped, which only patience does."""
    ranks = start([how], tmp_path, 2)
    try:
        said = ranks[0].communicate(timeout=120)[0]
        assert ranks[0].returncode == 0, said
    finally:
        ranks[1].kill()
        ranks[1].communicate()
    found = torch.load(tmp_path / f"{how}.0.pt")
    assert found["said"].startswith("the gradients cannot be exchanged: ")
    assert 5 <= found["number"] <= 8, "at most so many iterations ahead"
    assert found["seconds"] < 20
