"""What ``scripts/evaluate sasp`` measures and how it adds up: real PyTorch jobs with and without SaSP.

A group is a link rate and a seed: three families of models under BSP, SSP and ASP, each as it is and with SaSP, one
after the other on the same network. BSP is there with ``+overlap`` too: gradients leave as the backward pass frees
them, in that order. What SaSP adds to that is its order, and its computing ahead.

Every family has a target accuracy on pictures that nobody trains on. Targets, learning rates and iterations were
chosen before SaSP first ran on the testbed, by synchronous training in one process on other seeds, which reached the
targets after 28 (MLP), 80 (CNN) and 20 (Transformer) iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from simulator.reports.statistics import reduction, reduction_interval
from topologies import sasp_lab, summary
from topologies.claim import Setting
from topologies.sasp_request import FAMILIES, ArmResult, Family, SaspRequest, SaspResult, Training

TESTBED = True

WORKERS = 4
RATES_BPS = (25e6, 100e6)
SEEDS = range(21, 26)
"""Seeds that nothing was trained on before."""
PAIRS = {"bsp+overlap": "bsp", "bsp+sasp": "bsp", "ssp:2+sasp": "ssp:2", "asp+sasp:2": "asp"}
"""Each scheme, and the one that it is compared with."""
SASP = ("bsp+sasp", "ssp:2+sasp", "asp+sasp:2")
SCHEMES = ("bsp", "bsp+overlap", "bsp+sasp", "ssp:2", "ssp:2+sasp", "asp", "asp+sasp:2")
QUICK_SCHEMES = ("bsp", "bsp+sasp")
LIMIT_SECONDS = 900.0

BASE: Mapping[Family, Training] = {
    "mlp": Training("mlp", "bsp", iterations=60, batch=256, learning_rate=0.1),
    "cnn": Training("cnn", "bsp", iterations=110, batch=128, learning_rate=0.03),
    "transformer": Training("transformer", "bsp", iterations=50, batch=128, learning_rate=0.01),
}
TARGET: Mapping[Family, float] = {"mlp": 0.9, "cnn": 0.9, "transformer": 0.9}
MEASURES = ("iteration_seconds", "target_seconds")


@dataclass(frozen=True, slots=True)
class Group:
    """Arms that share a network: one rate and seed."""

    link_bps: float
    seed: int
    schemes: tuple[str, ...] = SCHEMES
    iterations: int | None = None

    @property
    def name(self) -> str:
        """What the group's folder is called."""
        return f"{self.link_bps / 1e6:.0f}mbit-{self.seed}"

    @property
    def arms(self) -> int:
        """One a family and scheme."""
        return len(self.asked().trainings)

    def asked(self) -> SaspRequest:
        """What the lab is asked. The order of schemes turns with the seed, so that none always goes first."""
        turn = self.seed % len(self.schemes)
        turned = self.schemes[turn:] + self.schemes[:turn]
        trainings = tuple(
            replace(BASE[family], scheme=scheme, iterations=self.iterations or BASE[family].iterations)
            for family in FAMILIES
            for scheme in turned
        )
        return SaspRequest(self.link_bps, self.seed, WORKERS, trainings, LIMIT_SECONDS)

    def run(self, setting: Setting) -> SaspResult:
        """Measure. Raises one of the lab's EXPECTED_ERRORS."""
        return sasp_lab.LAB.run(self.asked(), setting.wanted, setting.folder, stop=setting.stop)

    def read(self, folder: Path) -> SaspResult:
        """The result that ``run`` left. Raises OSError, ValueError."""
        return sasp_lab.LAB.read(folder)


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """All of the claim, the slowest network first; quick: one seed, BSP with and without SaSP, the faster network.

    ``others`` of False: BSP with and without SaSP alone.
    """
    schemes = SCHEMES if others else QUICK_SCHEMES
    if quick:
        return [Group(RATES_BPS[-1], 1, QUICK_SCHEMES, iterations=40)]
    return [Group(rate, seed, schemes) for rate in RATES_BPS for seed in SEEDS]


def add_up(results: Sequence[tuple[Group, SaspResult]]) -> dict[str, Any]:
    """By rate: of each scheme and family the means over seeds, and what it saves against its partner."""
    rates: dict[str, Any] = {}
    for rate in sorted({group.link_bps for group, _ in results}):
        of_rate = [(group.seed, _table(result)) for group, result in results if group.link_bps == rate]
        schemes = [one for one in SCHEMES if all((FAMILIES[0], one) in arms for _, arms in of_rate)]
        rates[f"{rate / 1e6:.0f} Mbit/s"] = {
            scheme: {
                "families": {family: _family(family, scheme, of_rate) for family in FAMILIES},
                "all": {measure: _all(scheme, measure, of_rate) for measure in MEASURES if scheme in PAIRS},
            }
            for scheme in schemes
        }
    return {
        "torch": sorted({result.torch for _, result in results}),
        "targets": dict(TARGET),
        "least_cpu_idle_share": min(arm.cpu_idle_share for _, result in results for arm in result.arms),
        "rates": rates,
    }


_Arms = Mapping[tuple[Family, str], ArmResult]


def _table(result: SaspResult) -> _Arms:
    return {(arm.training.family, arm.training.scheme): arm for arm in result.arms}


def _value(arm: ArmResult, measure: str) -> float | None:
    if measure == "iteration_seconds":
        return arm.seconds_an_iteration
    return arm.seconds_until(TARGET[arm.training.family])


_Pair = tuple[float | None, float | None]
"""A partner's value and the scheme's own, of one family and seed; None: that arm never reached the target."""


def _family(family: Family, scheme: str, of_rate: Sequence[tuple[int, _Arms]]) -> dict[str, Any]:
    made: dict[str, Any] = {"seeds": [seed for seed, _ in of_rate]}
    for measure in MEASURES:
        found = [_value(arms[family, scheme], measure) for _, arms in of_rate]
        known = [value for value in found if value is not None]
        made[measure] = {"mean": fmean(known) if known else None, "by_seed": found, "censored": found.count(None)}
        if scheme in PAIRS:
            pairs = [_pair(arms, family, scheme, measure) for _, arms in of_rate]
            made[measure] |= _counted(pairs) | _saved(_compared(pairs))
    made["iterations_a_second"] = 1 / made["iteration_seconds"]["mean"]
    made["cpu_idle_share"] = fmean(arms[family, scheme].cpu_idle_share for _, arms in of_rate)
    made["last_accuracy"] = fmean(arms[family, scheme].workers[0].points[-1][2] for _, arms in of_rate)
    return made


def _all(scheme: str, measure: str, of_rate: Sequence[tuple[int, _Arms]]) -> dict[str, Any]:
    """All families together: the mean over families of a seed, where scheme and partner both have one."""
    by_seed = [[_pair(arms, family, scheme, measure) for family in FAMILIES] for _, arms in of_rate]
    rows = [
        (fmean(base for base, _ in both), fmean(own for _, own in both))
        for pairs in by_seed
        if (both := _compared(pairs))
    ]
    counted = _counted([pair for pairs in by_seed for pair in pairs])
    return {"against": PAIRS[scheme]} | counted | _saved(rows)


def _pair(arms: _Arms, family: Family, scheme: str, measure: str) -> _Pair:
    return _value(arms[family, PAIRS[scheme]], measure), _value(arms[family, scheme], measure)


def _compared(pairs: Sequence[_Pair]) -> list[tuple[float, float]]:
    return [(base, own) for base, own in pairs if base is not None and own is not None]


def _counted(pairs: Sequence[_Pair]) -> dict[str, int]:
    """How many pairs could be compared of how many, and in how many of the others which side has no value."""
    return {
        "pairs": len(pairs),
        "pairs_compared": len(_compared(pairs)),
        "baseline_never": sum(base is None for base, _ in pairs),
        "own_never": sum(own is None for _, own in pairs),
    }


def _saved(rows: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The reduction of the mean over rows, and the interval of just that."""
    if not rows:
        return {"baseline": None, "value": None, "reduction": None, "reduction_ci95": [None, None]}
    bases, owns = [base for base, _ in rows], [own for _, own in rows]
    return {
        "baseline": fmean(bases),
        "value": fmean(owns),
        "reduction": reduction(bases, owns),
        "reduction_ci95": list(reduction_interval(bases, owns)),
    }


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of every rate and scheme with SaSP: seconds an iteration, and seconds to the target.

    Where a target was not always reached, the claim says in how many pairs it was, and who failed; nothing can be
    claimed where it was in none.
    """
    said = {
        "iteration_seconds": "{} takes less time an iteration than {}, three families of PyTorch models, {}",
        "target_seconds": "{} reaches the target accuracy sooner than {}, three families of PyTorch models, {}",
    }
    return [
        summary.claim(
            said[measure].format(scheme, PAIRS[scheme], rate) + _left_out(scheme, found),
            metric=measure,
            unit="s",
            baseline=found["baseline"],
            value=found["value"],
            interval=tuple(found["reduction_ci95"]),
        )
        for rate, schemes in fields["rates"].items()
        for scheme in SASP
        if scheme in schemes
        for measure in MEASURES
        if (found := schemes[scheme]["all"][measure])["baseline"] is not None
    ]


def _left_out(scheme: str, found: Mapping[str, Any]) -> str:
    if found["pairs_compared"] == found["pairs"]:
        return ""
    never = f"{PAIRS[scheme]} {found['baseline_never']}, {scheme} {found['own_never']}"
    return f" ({found['pairs_compared']} of {found['pairs']} pairs; never there: {never})"


_COLUMNS = (
    "scheme", "model", "iterations/s", "saved", "95 %", "to target (s)", "saved", "95 %", "pairs", "censored"
)  # fmt: skip
"""``pairs``: those in which both reached the target, of all; ``censored``: seeds at which the scheme never did."""


def tables(fields: Mapping[str, Any]) -> Iterable[Table]:
    """A table a rate: a row a scheme and family."""
    for rate, schemes in fields["rates"].items():
        table = Table(title=rate)
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in {"scheme", "model"} else "right")
        for scheme, found in schemes.items():
            for family, of_family in found["families"].items():
                steps, target = of_family["iteration_seconds"], of_family["target_seconds"]
                table.add_row(
                    scheme,
                    family,
                    f"{of_family['iterations_a_second']:.2f}",
                    *_shown(steps),
                    "" if target["mean"] is None else f"{target['mean']:.1f}",
                    *_shown(target),
                    _pairs(target),
                    f"{target['censored']}/{len(of_family['seeds'])}",
                )
            if found["all"]:
                steps, target = found["all"]["iteration_seconds"], found["all"]["target_seconds"]
                name = f"all, against {steps['against']}"
                table.add_row("", name, "", *_shown(steps), "", *_shown(target), _pairs(target))
        yield table


def _shown(found: Mapping[str, Any]) -> tuple[str, str]:
    if found.get("reduction") is None:
        return "", ""
    low, high = found["reduction_ci95"]
    return f"{found['reduction']:.0%}", f"{low:.0%} to {high:.0%}"


def _pairs(found: Mapping[str, Any]) -> str:
    """Pairs that could be compared, of all."""
    return f"{found['pairs_compared']}/{found['pairs']}" if "pairs" in found else ""


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """Seconds saved by scheme, with intervals, a panel a rate, into ``sasp.png``."""
    from topologies import sasp_plot  # noqa: PLC0415 (matplotlib takes a second to load)

    sasp_plot.saved(fields["rates"], SCHEMES, folder / "sasp.png")
