"""The claim ``deepprophet``: iterations predicted and measured, on the same machine.

[known] The 2019 thesis reports under 10 % average error. [ours] The claim covers 14 models of five families: a single
worker with several batch sizes, and real DistributedDataParallel jobs of 2 to 4 ranks over two link rates. The device
is calibrated with other models. Jobs with more ranks than the machine has cores are reported separately. So are plans
beyond a copy a worker, which other models train (``evaluation.deepprophet.plans.cases``).

The speed of a machine changes over time, and no prediction can know that. So everything is measured twice, once before
the calibration and once after it, and the difference between the two stands beside the errors.

The quoted error is that of the command without options (``DEFAULT_WAY``). The errors of one model at several batch
sizes, workers and rates are correlated, so a model counts once, with the mean of its errors, and all intervals are over
models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter
from rich.table import Table

from deepprophet.costs.fit import quantile
from evaluation import summary
from evaluation.claim import Setting
from evaluation.deepprophet import arms as measurements
from evaluation.deepprophet import unseen
from evaluation.deepprophet.arms import COSTED, DEFAULT_WAY, KINDS, WAYS, Case, CaseResult, GroupResult
from evaluation.deepprophet.drawn import listed
from evaluation.deepprophet.plans import errors as plan_errors
from evaluation.deepprophet.plans import groups as plan_groups
from evaluation.deepprophet.plans.groups import PlanGroup
from evaluation.deepprophet.plans.measuring import PlanResult
from evaluation.deepprophet.tables import all_tables
from simulator.reports.statistics import mean_interval, paired_bootstrap
from topologies.errors import LabError

DATAPATH = None
MODELS = {
    "mlp-wide": "mlp", "mlp-deep": "mlp", "vgg": "cnn", "alexnet": "cnn", "resnet18": "residual cnn",
    "resnet50": "residual cnn", "lstm": "recurrent", "gru": "recurrent", "encoder": "transformer encoder",
    "vit": "transformer encoder", "decoder": "transformer decoder", "translator": "transformer decoder",
    "dlrm": "recommender", "wide-deep": "recommender",
}  # fmt: skip
QUICK_MODELS = ("mlp-deep", "alexnet", "gru")
BATCH_SIZES = (8, 32, 64)
DISTRIBUTED_BATCH_SIZE = 16
RATES_BPS = (2e8, 1e9)
WORKERS = (2, 3, 4)
INTERVALS_OVER = "models"
PREDICT_LIMIT_SECONDS = 5.0
"""The whole command should take at most this long, with a model of ResNet-50's size."""
GPU = "not measured: this evaluation runs on processors"


@dataclass(frozen=True, slots=True)
class Group:
    """One model in all its cases, measured for the first time (``is_first``), or predicted and measured again.

    A group whose ``model`` is None is the calibration, between the two. A model that ``is_drawn`` has one case, and is
    predicted by the command alone.
    """

    model: str | None
    cases: tuple[Case, ...]
    quick: bool = False
    is_first: bool = False
    seed: int = 0
    is_drawn: bool = False

    @property
    def name(self) -> str:
        """Returns the name of the group's folder."""
        if self.is_first:
            return f"{self.model}-before"
        return self.model or measurements.CALIBRATION

    @property
    def arms(self) -> int:
        """Returns the number of measurements, plus one for the predictions."""
        return len(self.cases) + (not self.is_first)

    def asked(self) -> dict[str, Any]:
        """Returns the request; a saved result must have the same."""
        cases = [asdict(case) for case in self.cases]
        return {"model": self.model, "cases": cases, "quick": self.quick, "is_first": self.is_first}

    def run(self, setting: Setting) -> GroupResult:
        """Measures and predicts. Raises LabError, CalledProcessError, OSError."""
        if self.model is None:
            result = measurements.calibrate(setting.folder, quick=self.quick, stop=setting.stop)
        elif self.is_first:
            result = measurements.measure_first(self.model, self.cases, quick=self.quick, stop=setting.stop)
        elif self.is_drawn:
            calibration = setting.folder.parent / measurements.CALIBRATION / measurements.CALIBRATION_FILE
            result = measurements.measure_drawn(
                self.model, self.cases[0], calibration, quick=self.quick, stop=setting.stop
            )
        else:
            calibration = setting.folder.parent / measurements.CALIBRATION / measurements.CALIBRATION_FILE
            result = measurements.measure(self.model, self.cases, calibration, quick=self.quick, stop=setting.stop)
        setting.folder.mkdir(parents=True, exist_ok=True)
        path = setting.folder / measurements.RESULT
        scratch = path.with_suffix(".tmp")
        scratch.write_bytes(TypeAdapter(GroupResult).dump_json(result, indent=1))
        scratch.replace(path)
        return result

    def read(self, folder: Path) -> GroupResult:
        """Returns the result that ``run`` has saved in ``folder``. Raises OSError, ValueError."""
        return TypeAdapter(GroupResult).validate_json((folder / measurements.RESULT).read_bytes())


def groups(*, quick: bool = False, others: bool = True) -> list[Group | PlanGroup]:
    """Returns one group for each model, those that are drawn too, and for each plan, the calibration, and all again.

    ``quick`` takes three models, one batch size, two workers, one rate, none that are drawn, and two plans. Without
    ``others`` there are no jobs of more than two ranks.
    """
    names = QUICK_MODELS if quick else tuple(MODELS)
    sizes = (DISTRIBUTED_BATCH_SIZE,) if quick else BATCH_SIZES
    workers = WORKERS if others and not quick else WORKERS[:1]
    rates = RATES_BPS[1:] if quick else RATES_BPS
    cases = [Case(size, 1, None) for size in sizes]
    cases += [Case(DISTRIBUTED_BATCH_SIZE, count, rate) for count in workers for rate in rates]
    again = [Group(name, tuple(cases), quick) for name in names]
    if not quick:
        again += [
            Group(drawn.name, (Case(drawn.batch_size, 1, None),), is_drawn=True) for drawn in listed.models().values()
        ]
    plans_first, plans_again = plan_groups.groups(quick=quick)
    first = [replace(group, is_first=True) for group in again]
    return [*first, *plans_first, Group(None, (), quick), *again, *plans_again]


def add_up(all_results: Sequence[tuple[Group | PlanGroup, GroupResult | PlanResult]]) -> dict[str, Any]:
    """Returns the summary: errors by kind, way, family, operator and plan, predictions' times, and the calibration."""
    results = [(g, r) for g, r in all_results if isinstance(g, Group) and isinstance(r, GroupResult)]
    plans = [(g, r) for g, r in all_results if isinstance(g, PlanGroup) and isinstance(r, PlanResult)]
    predicted = [(group, result) for group, result in results if not group.is_first]
    before = {
        (group.model, case.case): case.runs for group, result in results if group.is_first for case in result.cases
    }
    measured = [
        (group.model, replace(case, runs=before.get((group.model, case.case), ()) + case.runs), result)
        for group, result in predicted
        if group.model and not group.is_drawn
        for case in result.cases
    ]
    drawn = [
        (group.model, replace(case, runs=before.get((group.model, case.case), ()) + case.runs))
        for group, result in predicted
        if group.model and group.is_drawn
        for case in result.cases
    ]
    by_kind = {kind: [(m, c) for m, c, r in measured if _kind(c, r.cores) == kind] for kind in KINDS}
    if len({result.calibrated for group, result in all_results if not group.is_first}) > 1:
        raise LabError(
            "the models were predicted with different calibrations; without --resume, all are measured again"
        )
    operators = [errors for _, result in results for errors in result.operators]
    calibrations = [result.calibration for group, result in results if group.model is None]
    return {
        "device": calibrations[0] if calibrations else {},
        "gpu": GPU,
        "way": DEFAULT_WAY,
        "intervals_over": INTERVALS_OVER,
        "models": len({model for model, _, _ in measured}),
        "kinds": {kind: _errors(cases) for kind, cases in by_kind.items() if cases},
        "families": {
            family: {
                kind: _errors(chosen)
                for kind, cases in by_kind.items()
                if (chosen := [(m, c) for m, c in cases if MODELS[m] == family])
            }
            for family in dict.fromkeys(MODELS.values())
            if any(MODELS[m] == family for m, _, _ in measured)
        },
        "operators": _operators(operators),
        "drawn": unseen.add_up(drawn),
        "plans": plan_errors.add_up(plans),
        "rates": {kind: _rates(cases) for kind, cases in by_kind.items() if kind != KINDS[0]},
        "predict_seconds": {
            group.model: result.predict_seconds for group, result in results if result.predict_seconds is not None
        },
        "predict_limit_seconds": PREDICT_LIMIT_SECONDS,
        "measuring_seconds": max((case.measuring_seconds for _, case, _ in measured), default=0.0),
        "cases": [{"model": model, **asdict(case), "seconds": case.seconds} for model, case, _ in measured],
    }


def _kind(case: CaseResult, cores: int) -> str:
    if case.workers == 1:
        return KINDS[0]
    return KINDS[1] if case.workers <= cores else KINDS[2]


def _errors(cases: Sequence[tuple[str, CaseResult]]) -> dict[str, Any]:
    """Returns for each way the mean over models of a model's mean error, its interval, and the worst single cases."""
    ways = {}
    for way in WAYS:
        of_cases = [_error(case, way) for _, case in cases]
        of_models = _model_errors(cases, way)
        inside = [case.predicted[way][1] <= case.seconds <= case.predicted[way][2] for _, case in cases]
        ways[way] = {
            "mean_absolute_error": fmean(of_models),
            "ci95": list(mean_interval(of_models)),
            "p90": quantile(of_cases, 0.9),
            "worst": max(of_cases),
            "in_interval": fmean(inside),
        }
    differences = [share for _, case in cases if (share := case.relative_difference) is not None]
    return {
        "cases": len(cases),
        "models": len({model for model, _ in cases}),
        "ways": ways,
        "measured_twice": fmean(differences) if differences else None,
        "measured_twice_p90": quantile(differences, 0.9) if differences else None,
        "gain_ci95": list(_gain(cases)),
    }


def _rates(cases: Sequence[tuple[str, CaseResult]]) -> dict[str, Any]:
    by_rate = {rate: [(model, case) for model, case in cases if case.rate_bps == rate] for rate in RATES_BPS}
    return {f"{rate / 1e6:.0f} Mbit/s": _beside_wire(chosen) for rate, chosen in by_rate.items() if chosen}


def _beside_wire(cases: Sequence[tuple[str, CaseResult]]) -> dict[str, Any]:
    """Returns the error of whole iterations, and of the time besides sending, which is easy to predict."""
    rest = [(model, case) for model, case in cases if case.seconds > case.wire]
    return {
        "cases": len(cases),
        "mean_absolute_error": fmean(_model_errors(cases, DEFAULT_WAY)),
        "wire_share": fmean(min(case.wire / case.seconds, 1.0) for _, case in cases),
        "error_of_the_rest": fmean(
            abs(case.predicted[DEFAULT_WAY][0] - case.seconds) / (case.seconds - case.wire) for _, case in rest
        )
        if rest
        else None,
    }


def _error(case: CaseResult, way: str) -> float:
    return abs(case.predicted[way][0] / case.seconds - 1)


def _model_errors(cases: Sequence[tuple[str, CaseResult]], way: str) -> list[float]:
    """Returns each model's mean error, because its cases have the same operators and correlated errors."""
    errors: dict[str, list[float]] = {}
    for model, case in cases:
        errors.setdefault(model, []).append(_error(case, way))
    return [fmean(of_model) for of_model in errors.values()]


def _gain(cases: Sequence[tuple[str, CaseResult]]) -> tuple[float, float]:
    """Returns how much lower the quoted error is than with rooflines only, as an interval over models."""
    pairs = list(zip(_model_errors(cases, "roofline"), _model_errors(cases, DEFAULT_WAY), strict=True))
    return paired_bootstrap(pairs, lambda d: 1.0 - d[..., 1].mean(axis=1) / d[..., 0].mean(axis=1))


def _operators(graphs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the mean over graphs of an operator's error, by the way in which its cost is known."""
    same = sum(bool(graph["same_as_traced"]) for graph in graphs)
    summarised: dict[str, Any] = {"graphs": len(graphs), "same_as_traced": same}
    for way in COSTED:
        known = [graph[way] for graph in graphs if graph.get(way) and graph[way]["error"] is not None]
        summarised[way] = {
            "error": fmean(errors["error"] for errors in known) if known else None,
            "share_of_time": fmean(errors["share_of_time"] for errors in known) if known else 0.0,
        }
    differences = [graph["again"] for graph in graphs if graph["again"] is not None]
    summarised["measured_twice"] = fmean(differences) if differences else None
    return summarised


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the error of the command by default, compared with that of rooflines only, and that of each plan."""
    return [
        *unseen.headline(fields["drawn"]),
        *_headline(fields),
        *plan_errors.headline(fields["plans"]),
    ]


def _headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        summary.claim(
            f"DeepProphet's mean absolute error, {kind}, against rooflines only",
            metric="mean_absolute_error",
            unit="share",
            baseline=errors["ways"]["roofline"]["mean_absolute_error"],
            value=errors["ways"][DEFAULT_WAY]["mean_absolute_error"],
            interval=(errors["gain_ci95"][0], errors["gain_ci95"][1]),
        )
        for kind, errors in fields["kinds"].items()
    ]


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """Yields the tables: errors by kind and way, family, link rate, operator and plan, and prediction times."""
    return all_tables(fields)


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """Plots predicted against measured seconds."""
    from evaluation.deepprophet.plot import against  # noqa: PLC0415 - matplotlib loads slowly

    against(fields["cases"], MODELS, DEFAULT_WAY, folder / "deepprophet.png")
