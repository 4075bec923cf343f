"""What ``scripts/evaluate sasp`` measures and how it adds up: real PyTorch jobs with and without SaSP.

A group is a link rate and a seed: three families of models under BSP, SSP and ASP, one after the other on the same
network, each in three ways: as it is; with ``+overlap``, where gradients leave as the backward pass frees them, in that
order; and with SaSP. What SaSP adds to overlapping is its order, and its computing ahead.

Every family has a target accuracy on pictures that nobody trains on. Targets, learning rates and iterations were
chosen by ``evaluation.sasp.pilot``, which trains in one process, on other seeds: of each family one rate for BSP, and
one for SSP and ASP, whose gradients are late; there as late as SSP's bound lets them be. All three ways of a scheme
train alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from evaluation import summary
from evaluation.claim import Setting
from evaluation.sasp import lab
from evaluation.sasp.request import FAMILIES, ArmResult, Family, SaspRequest, SaspResult, Training
from sasp.core.scheme import parse
from simulator.reports.statistics import reduction, reduction_interval
from topologies.box.datapath import Wanted

DATAPATH: Wanted = "auto"

WORKERS = 4
RATES_BPS = (30e6, 60e6)
SEEDS = range(31, 35)
"""Seeds that nothing was trained on before."""
SCHEMES = (
    "bsp", "bsp+overlap", "bsp+sasp", "ssp:2", "ssp:2+overlap", "ssp:2+sasp", "asp", "asp+overlap", "asp+sasp:2"
)  # fmt: skip
AGAINST: Mapping[str, tuple[str, ...]] = {
    "bsp+overlap": ("bsp",),
    "bsp+sasp": ("bsp", "bsp+overlap"),
    "ssp:2+overlap": ("ssp:2",),
    "ssp:2+sasp": ("ssp:2", "ssp:2+overlap"),
    "asp+overlap": ("asp",),
    "asp+sasp:2": ("asp", "asp+overlap"),
}
"""Each scheme, and those that it is compared with."""
SASP = ("bsp+sasp", "ssp:2+sasp", "asp+sasp:2")
QUICK_SCHEMES = ("bsp", "bsp+overlap", "bsp+sasp")
LIMIT_SECONDS = 900.0
CHUNK_BYTES = 16 * 1024
"""As links and models are a small part of what they are elsewhere, so are the chunks of SaSP."""

BATCH = 32
RATES: Mapping[Family, tuple[float, float]] = {"mlp": (2e-3, 5e-4), "cnn": (1e-3, 3e-4), "transformer": (1e-3, 2e-4)}
"""Learning rates under BSP, and under SSP and ASP."""
ITERATIONS: Mapping[Family, tuple[int, int]] = {"mlp": (60, 160), "cnn": (100, 220), "transformer": (60, 160)}
"""Likewise; 1.5 to 2 times what the slowest seed of the pilot needed."""
TARGET = 0.85
MEASURES = ("iteration_seconds", "target_seconds")
CROWDED_IDLE_SHARE = 0.1
"""With less of the processors idle than this they, and not the network, are what an arm waits for."""


def training(family: Family, scheme: str) -> Training:
    """A job of the claim."""
    late = not parse(scheme).together
    return Training(family, scheme, ITERATIONS[family][late], BATCH, RATES[family][late])


@dataclass(frozen=True, slots=True)
class Group:
    """Arms that share a network: one rate and seed."""

    link_bps: float
    seed: int
    schemes: tuple[str, ...] = SCHEMES
    iterations: int | None = None

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"{self.link_bps / 1e6:.0f}mbit-{self.seed}"

    @property
    def arms(self) -> int:
        """The number of arms: one for each family and scheme."""
        return len(self.asked().trainings)

    def asked(self) -> SaspRequest:
        """Return the request. The order of schemes rotates with the seed, so that none always goes first."""
        turn = self.seed % len(self.schemes)
        turned = self.schemes[turn:] + self.schemes[:turn]
        trainings = tuple(
            replace(plan, iterations=self.iterations or plan.iterations)
            for family in FAMILIES
            for plan in (training(family, scheme) for scheme in turned)
        )
        return SaspRequest(self.link_bps, self.seed, WORKERS, trainings, LIMIT_SECONDS, CHUNK_BYTES)

    def run(self, setting: Setting) -> SaspResult:
        """Measure. Raises one of the lab's EXPECTED_ERRORS."""
        return lab.LAB.run(self.asked(), setting.wanted, setting.folder, stop=setting.stop)

    def read(self, folder: Path) -> SaspResult:
        """Read the result that ``run`` left. Raises OSError, ValueError."""
        return lab.LAB.read(folder)


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """All of the claim, the slowest network first; quick: one seed, BSP alone, the faster network.

    ``others`` of False: BSP in its three ways alone.
    """
    schemes = SCHEMES if others else QUICK_SCHEMES
    if quick:
        return [Group(RATES_BPS[-1], 1, QUICK_SCHEMES, iterations=20)]
    return [Group(rate, seed, schemes) for rate in RATES_BPS for seed in SEEDS]


def add_up(results: Sequence[tuple[Group, SaspResult]]) -> dict[str, Any]:
    """By rate: of each scheme and family the means over seeds, and what it saves against others."""
    rates: dict[str, Any] = {}
    for rate in sorted({group.link_bps for group, _ in results}):
        of_rate = [(group.seed, _table(result)) for group, result in results if group.link_bps == rate]
        schemes = [scheme for scheme in SCHEMES if all((FAMILIES[0], scheme) in arms for _, arms in of_rate)]
        rates[f"{rate / 1e6:.0f} Mbit/s"] = {
            scheme: {
                "families": {family: _family(family, scheme, of_rate) for family in FAMILIES},
                "all": {
                    other: {measure: _all(scheme, other, measure, of_rate) for measure in MEASURES}
                    for other in AGAINST.get(scheme, ())
                },
            }
            for scheme in schemes
        }
    arms = [arm for _, result in results for arm in result.arms]
    return {
        "torch": sorted({result.torch for _, result in results}),
        "target": TARGET,
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "crowded_arms": sum(arm.cpu_idle_share < CROWDED_IDLE_SHARE for arm in arms),
        "arms": len(arms),
        "rates": rates,
    }


_Arms = Mapping[tuple[Family, str], ArmResult]


def _table(result: SaspResult) -> _Arms:
    return {(arm.training.family, arm.training.scheme): arm for arm in result.arms}


def _value(arm: ArmResult, measure: str) -> float | None:
    if measure == "iteration_seconds":
        return arm.seconds_an_iteration
    return arm.seconds_until(TARGET)


_Pair = tuple[float | None, float | None]
"""Another scheme's value and the scheme's own, of one family and seed; None: that arm never reached the target."""


def _family(family: Family, scheme: str, of_rate: Sequence[tuple[int, _Arms]]) -> dict[str, Any]:
    fields: dict[str, Any] = {"seeds": [seed for seed, _ in of_rate]}
    for measure in MEASURES:
        by_seed = [_value(arms[family, scheme], measure) for _, arms in of_rate]
        known = [value for value in by_seed if value is not None]
        fields[measure] = {"mean": fmean(known) if known else None, "by_seed": by_seed, "censored": by_seed.count(None)}
        fields[measure]["against"] = {
            other: _counted(pairs) | _saved(_compared(pairs))
            for other in AGAINST.get(scheme, ())
            for pairs in [[_pair(arms, family, scheme, other, measure) for _, arms in of_rate]]
        }
    fields["iterations_a_second"] = 1 / fields["iteration_seconds"]["mean"]
    fields["cpu_idle_share"] = fmean(arms[family, scheme].cpu_idle_share for _, arms in of_rate)
    fields["last_accuracy"] = fmean(arms[family, scheme].last_accuracy for _, arms in of_rate)
    return fields


def _all(scheme: str, other: str, measure: str, of_rate: Sequence[tuple[int, _Arms]]) -> dict[str, Any]:
    """All families together: of each seed the mean over families of what a scheme takes as a share of the other's."""
    by_seed = [[_pair(arms, family, scheme, other, measure) for family in FAMILIES] for _, arms in of_rate]
    shares = [fmean(own / base for base, own in both) for pairs in by_seed if (both := _compared(pairs))]
    return _counted([pair for pairs in by_seed for pair in pairs]) | _saved([(1.0, share) for share in shares])


def _pair(arms: _Arms, family: Family, scheme: str, other: str, measure: str) -> _Pair:
    return _value(arms[family, other], measure), _value(arms[family, scheme], measure)


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
    """Of every rate and scheme with SaSP against all others: time an iteration, and time to the target.

    An iteration that is fast and teaches nothing is worth nothing, so both say how many runs reached the target where
    not all did; where no pair can be compared, the second has no value.
    """
    texts = {
        "iteration_seconds": "{} takes less time an iteration than {}, three families of PyTorch models, {}{}",
        "target_seconds": "{} reaches the target accuracy sooner than {}, three families of PyTorch models, {}{}",
    }
    return [
        summary.claim(
            texts[measure].format(scheme, other, rate, _left_out(scheme, other, compared["target_seconds"])),
            metric=f"{measure}_of_the_other's",
            unit="1",
            baseline=compared[measure]["baseline"],
            value=compared[measure]["value"],
            interval=tuple(compared[measure]["reduction_ci95"]),
        )
        for rate, schemes in fields["rates"].items()
        for scheme in SASP
        if scheme in schemes
        for other, compared in schemes[scheme]["all"].items()
        for measure in MEASURES
    ]


def _left_out(scheme: str, other: str, counts: Mapping[str, Any]) -> str:
    if counts["pairs_compared"] == counts["pairs"]:
        return ""
    never = f"{other} {counts['baseline_never']}, {scheme} {counts['own_never']}"
    return f" (in {counts['pairs_compared']} of {counts['pairs']} pairs both reached the target; never there: {never})"


_COLUMNS = (
    "scheme", "model", "iterations/s", "saved", "95 %", "to target (s)", "saved", "95 %", "pairs", "censored",
    "accuracy", "idle",
)  # fmt: skip
"""``pairs``: those in which both reached the target, of all; ``censored``: seeds at which the scheme never did;
``accuracy``: at the end; ``idle``: of the processors."""


def tables(fields: Mapping[str, Any]) -> Iterable[Table]:
    """A table a rate: a row a scheme and family, with what is saved of the plain scheme's time; then all families."""
    for rate, schemes in fields["rates"].items():
        table = Table(title=rate)
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in {"scheme", "model"} else "right")
        for scheme, values in schemes.items():
            plain = next(iter(AGAINST.get(scheme, ())), "")
            for family, of_family in values["families"].items():
                steps, target = of_family["iteration_seconds"], of_family["target_seconds"]
                table.add_row(
                    scheme,
                    family,
                    f"{of_family['iterations_a_second']:.2f}",
                    *_shown(steps["against"].get(plain)),
                    "" if target["mean"] is None else f"{target['mean']:.1f}",
                    *_shown(target["against"].get(plain)),
                    _pairs(target["against"].get(plain)),
                    f"{target['censored']}/{len(of_family['seeds'])}",
                    f"{of_family['last_accuracy']:.2f}",
                    f"{of_family['cpu_idle_share']:.0%}",
                )
            for other, compared in values["all"].items():
                steps, target = compared["iteration_seconds"], compared["target_seconds"]
                cells = ("", *_shown(steps), "", *_shown(target), _pairs(target))
                table.add_row("", f"all, against {other}", *cells)
        yield table


def _shown(values: Mapping[str, Any] | None) -> tuple[str, str]:
    if values is None or values["reduction"] is None:
        return "", ""
    low, high = values["reduction_ci95"]
    return f"{values['reduction']:.0%}", f"{low:.0%} to {high:.0%}"


def _pairs(values: Mapping[str, Any] | None) -> str:
    """Pairs that could be compared, of all."""
    return "" if values is None else f"{values['pairs_compared']}/{values['pairs']}"


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """Time saved of the plain scheme's, with intervals, a panel a rate, into ``sasp.png``."""
    from evaluation.sasp.plot import saved  # noqa: PLC0415 (matplotlib takes a second to load)

    saved(fields["rates"], SCHEMES, folder / "sasp.png")
