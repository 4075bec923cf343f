"""Values that the pictures of ``trainyard top`` are made of."""

from __future__ import annotations

from typing import Any

from controller.wire import (
    HistoryView,
    JobHistory,
    JobList,
    JobState,
    LinkEnd,
    Network,
    NetworkHost,
    NetworkLink,
    PlanView,
    Settings,
    Status,
)

_NO_LATENCY = {"count": 0, "p50_seconds": None, "p99_seconds": None, "max_seconds": None}


def job(name: str, service_class: int | None, *demand: tuple[str, str, float], **parts: Any) -> JobState:
    """Returns a job that runs; ``demand`` are pairs of hosts with bytes, ``parts`` other fields of it or its spec."""
    spec = {"demand": [{"src": src, "dst": dst, "bytes": size} for src, dst, size in demand]}
    spec |= parts.pop("spec", {})
    fields = {
        "id": name,
        "spec": spec,
        "arrival": 0.0,
        "state": "running",
        "iterations_done": 20.0,
        "last_metric": 0.5,
        "last_report": 9.0,
        "service_class": service_class,
    }
    return JobState.model_validate(fields | parts)


def target(iteration: float, low: float, high: float, metric: float | None = 0.9) -> dict[str, float | None]:
    return {"metric": metric, "iteration": iteration, "low": low, "high": high}


def status(*silent: str, hosts: int = 3, **parts: Any) -> Status:
    fields = {
        "policy": "jpas",
        "epoch": 7,
        "plan_age_seconds": 1.0,
        "jobs": 0,
        "journal": "memory",
        "problems": [],
        "plans": 1,
        "plan_causes": {},
        "plan_errors": 0,
        "flow_mods": 0,
        "gate_renewals": 0,
        "report_to_rule": _NO_LATENCY,
        "change_to_rule": _NO_LATENCY,
        "report_to_plan": _NO_LATENCY,
        "bytes_by_class": {},
        "hosts": [{"name": f"h{i}", "address": None, "alive": f"h{i}" not in silent} for i in range(1, hosts + 1)],
        "switches": [],
        "enforce": ["switch", "host"],
    }
    return Status.model_validate(fields | parts)


def plan(*bands: tuple[str, ...], **parts: Any) -> PlanView:
    fields = {
        "policy": "jpas",
        "options": {},
        "applied": True,
        "epoch": 7,
        "age_seconds": 2.0,
        "order": bands,
        "classes": {},
        "reasons": {},
        "objective_seconds": 12.0,
        "lower_bound_seconds": 10.0,
    }
    return PlanView.model_validate(fields | parts)


def network(**load_bps: dict[str, float]) -> Network:
    """Returns hosts at one switch with 1 Gbit/s each; ``load_bps`` has what the switch sends to each of them."""
    links = [
        NetworkLink(
            a=LinkEnd(node=host, port=None),
            b=LinkEnd(node="0000000000000001", port=number),
            a_to_b_bps=1e9,
            b_to_a_bps=1e9,
            a_to_b_load_bps=None,
            b_to_a_load_bps=load,
            problems=(),
        )
        for number, (host, load) in enumerate(load_bps.items(), start=1)
    ]
    hosts = tuple(NetworkHost(name=host, address=None, alive=True) for host in load_bps)
    return Network(hosts=hosts, switches=(), links=tuple(links), problems=())


def history(**bytes_by_job: list[float | None]) -> HistoryView:
    """Returns samples of 5 s."""
    empty: dict[str, tuple[float | None, ...]] = dict.fromkeys(set(JobHistory.model_fields) - {"bytes"}, ())
    return HistoryView(
        since=0.0,
        step_seconds=5.0,
        steps=2,
        jobs={name: JobHistory(bytes=tuple(sizes), **empty) for name, sizes in bytes_by_job.items()},
        ports={},
        left_out=0,
    )


def jobs(*states: JobState) -> JobList:
    return JobList(jobs=states)


SETTINGS = Settings(policy="jpas", policy_options={}, period_seconds=5.0, pause=False)
