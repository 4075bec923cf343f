"""From the options of ``trainyard sim`` to the simulations that are asked for; what can be refused is refused here."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from controller.policies.registry import PolicyError, available, make, option_value
from simulator import graph_file
from simulator.errors import InputError
from simulator.limits import Limits
from simulator.recorded import source as recorded_source
from simulator.recorded.source import Recorded
from simulator.sweep.recorded_request import Followed, followed, recorded_limits
from simulator.sweep.sources import Source, build
from simulator.sweep.sweep import Task, network_of
from simulator.workloads import catalogue, coflow_trace
from simulator.workloads.arrivals import flows
from simulator.workloads.catalogue import Trace
from simulator.workloads.coflow_trace import DEFAULT_PORT_RATE_BPS
from simulator.workloads.training import Training
from simulator.workloads.tuning import Tuning

EVERY_POLICY = "all"
"""This word instead of a policy's name means every policy."""
MANY_FLOWS = 100_000
"""A trace with at least so many flows is simulated with a quantum, unless ``--exact`` is given."""
COARSE: Mapping[str, float] = MappingProxyType(
    dict.fromkeys(("beamer", "fair", "jpas", "sebf", "sincronia"), 0.25)
    | dict.fromkeys(("crux", "fifo"), 0.0625)
    | {"las": 1.0}
)
"""The quantum in seconds of each policy that this is for, without options: those of which ``scripts/bench simulator``
shows that their mean CCT stays the same, to half a percent. Where a policy turns on a moment, as a rotation does, a
little later may be another order; what goes by arrival adds up what each before it is late."""
COARSE_MADD: Mapping[str, float] = MappingProxyType(
    dict.fromkeys(("fair", "jpas", "sebf"), 0.25) | dict.fromkeys(("crux", "fifo"), 0.0625)
)
"""The same where rates are MADD's: there the quantum moves the mean CCT of BSSI's orders by 5 %."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be simulated: ``tasks`` by load, then seed, then policy. ``loads`` is (None,) for what was recorded.

    ``followed`` is what the network of a recording followed; None: there is no recording.
    """

    tasks: tuple[Task, ...]
    policies: tuple[str, ...]
    loads: tuple[float | None, ...]
    seeds: tuple[int, ...]
    baseline: str
    detail: bool
    title: str
    followed: Followed | None = None


def request(options: argparse.Namespace) -> Request:
    """Check the options together. Raises InputError, PolicyError."""
    policies = tuple(available()) if options.policy == [EVERY_POLICY] else tuple(options.policy)
    if twice := sorted({policy for policy in policies if policies.count(policy) > 1}):
        raise InputError(f"--policy {twice[0]} is given twice; once is enough")
    limits = _limits(options)
    source = _source(options)
    known = followed(source, options.followed) if isinstance(source, Recorded) else None
    if isinstance(source, Recorded) and known is not None:
        limits = recorded_limits(source, limits, options)
        if known.why is None:
            policies = (known.policy, *(policy for policy in policies if policy != known.policy))
    settings = _settings(options.option, policies)
    if known is not None and known.why is None:
        settings[known.policy] = dict(known.options) | settings[known.policy]
    for policy in policies:
        make(policy, settings[policy])
    baseline = options.baseline or _usual_baseline(policies, known)
    if baseline not in policies:
        raise InputError(f"--baseline {baseline}: it must be one of the policies given: {', '.join(policies)}")
    for given, name in ((options.html, "--html"), (options.plots, "--plots")):
        if given is not None:
            check_target(given, name, folder=name == "--plots")
    is_fixed = isinstance(source, Trace | Recorded)
    loads: tuple[float | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)
    if not isinstance(source, Trace | Recorded):
        loads = options.load or (source.load,)
        seeds = options.seeds or (1 if options.seed is None else options.seed,)
    usual = {
        policy: replace(limits, quantum=_quantum(options, source, policy, settings[policy])) for policy in policies
    }
    graph = graph_file.read(options.network) if options.network is not None else None
    pictures = options.html is not None or options.plots is not None
    tasks = tuple(
        Task(
            _at(source, load, seed), policy, settings[policy], usual[policy], options.offline, load,
            None if is_fixed else seed,
            timeline=pictures and seed == seeds[0] and load == loads[0], graph=graph,
        )
        for load in loads
        for seed in seeds
        for policy in policies
    )  # fmt: skip
    for task in tasks[:: len(policies)]:
        network_of(task)
    return Request(
        tasks,
        policies,
        loads,
        seeds,
        baseline,
        detail=options.detail or not isinstance(source, Trace),
        title=source.source if isinstance(source, Trace | Recorded) else options.workload,
        followed=known,
    )


def _usual_baseline(policies: tuple[str, ...], known: Followed | None) -> str:
    """Returns what was recorded, or fair sharing, or else the first policy."""
    if known is not None and known.why is None:
        return known.policy
    return "fair" if "fair" in policies else policies[0]


def check_target(path: Path, name: str, *, folder: bool) -> None:
    """Whether a result can be written there, before hours are spent on it. Raises InputError."""
    if path.is_dir() and not folder:
        raise InputError(f"{name} {path}: is a folder; it must name a file")
    if path.exists() and folder and not path.is_dir():
        raise InputError(f"{name} {path}: is a file; it must name a folder")
    there = path if path.is_dir() else path.absolute().parent
    while folder and not there.exists():
        there = there.parent
    if not there.is_dir():
        raise InputError(f"{name} {path}: there is no folder {there}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{name} {path}: the folder {there} cannot be written to")


def _source(options: argparse.Namespace) -> Source:
    """Returns what is to be simulated. Raises InputError."""
    if options.followed is not None and options.events is None:
        raise InputError("--followed is for --events; nothing else was recorded")
    if options.trace is not None:
        _refuse_generated(options, "a trace")
        return Trace(str(options.trace), coflow_trace.read(options.trace), options.port_rate)
    if options.events is not None:
        _refuse_generated(options, "a recording")
        if options.offline:
            raise InputError("--offline is not for --events; jobs arrive when they did, or nothing could be compared")
        return recorded_source.read(options.events, options.port_rate)
    return _workload(options)


def _refuse_generated(options: argparse.Namespace, what: str) -> None:
    for name in ("hosts", "jobs", "load", "seed", "seeds", "workers", "iterations", "architecture", "sync", "eta"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for --workload; {what} says that itself")


def _workload(options: argparse.Namespace) -> Training | Tuning:
    workload = catalogue.named(options.workload)
    changes: dict[str, Any] = {
        name: getattr(options, name) for name in ("hosts", "jobs", "workers") if getattr(options, name) is not None
    }
    changes["port_rate_bps"] = options.port_rate
    if isinstance(workload, Training):
        if options.eta is not None:
            raise InputError("--eta is for tuning workloads")
        if options.iterations is not None:
            changes["iterations"] = options.iterations
        if options.sync is not None:
            changes["staleness"], changes["lead"] = options.sync
        if options.architecture is not None:
            changes["architectures"] = options.architecture
        elif _needs_server(changes):
            changes["architectures"] = ("ps",)
        return replace(workload, **changes)
    for name in ("architecture", "sync"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for training workloads")
    if options.eta is not None:
        changes["eta"] = options.eta
    if options.iterations is not None:
        changes["shortest"], changes["longest"] = options.iterations
    return replace(workload, **changes)


def _needs_server(changes: Mapping[str, Any]) -> bool:
    staleness = changes.get("staleness", 0)
    return staleness is None or (staleness > 0 and changes["lead"] is None)


def _at(source: Source, load: float | None, seed: int) -> Source:
    return source if isinstance(source, Trace | Recorded) or load is None else replace(source, load=load, seed=seed)


def _limits(options: argparse.Namespace) -> Limits:
    if options.ideal and (options.classes is not None or options.period is not None or options.delay):
        raise InputError("--ideal is a class a rank and instant control; leave out --classes, --period, --delay, or it")
    return Limits(
        classes=options.classes,
        period=options.period,
        rates=options.rates,
        assign=options.assign,
        delay=options.delay,
    )


def _quantum(options: argparse.Namespace, source: Source, policy: str, settings: Mapping[str, object]) -> float:
    """As asked; else the policy's for a trace so large that exactness costs minutes, and 0 for all others.

    ``scripts/bench simulator`` measures what it costs with nothing but a trace and a policy; nothing else gets it.
    """
    if options.exact or options.quantum is not None:
        return 0.0 if options.exact else float(options.quantum)
    instant = options.classes is None and options.period is None and not options.delay
    plain = options.network is None and options.port_rate == DEFAULT_PORT_RATE_BPS
    coarse = COARSE if options.rates == "maxmin" else COARSE_MADD
    if not (isinstance(source, Trace) and instant and plain and policy in coarse) or options.offline or settings:
        return 0.0
    return coarse[policy] if flows(build(source, options.offline).workload) >= MANY_FLOWS else 0.0


def _settings(given: list[str], policies: tuple[str, ...]) -> dict[str, dict[str, object]]:
    settings: dict[str, dict[str, object]] = {policy: {} for policy in policies}
    for text in given:
        name, equals, value = text.partition("=")
        policy, dot, key = name.rpartition(".")
        if not (equals and dot and policy and key):
            raise InputError(f"--option {text}: it must be POLICY.KEY=VALUE, such as jpas.variant=gain")
        if policy not in settings:
            known = policy in available()
            raise InputError(f"--option {text}: {f'--policy {policy} is not given' if known else 'no such policy'}")
        if key in settings[policy]:
            raise InputError(f"--option {policy}.{key}: given twice; keep one")
        try:
            settings[policy][key] = option_value(value)
        except PolicyError as error:
            raise InputError(f"--option {policy}.{key}: {error}") from None
    return settings
