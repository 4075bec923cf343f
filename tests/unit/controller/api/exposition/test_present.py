"""What ``GET /metrics`` tells of now: jobs, the plan in force, agents, settings and certificates."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from controller.access.certificates.contexts import PublicFiles
from controller.access.certificates.expiry import Expiries
from controller.config.config import Config
from controller.process.certificate_files import CertificateFiles
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from tests.support.controller.api.samples import Samples
from tests.support.controller.api.served import Served, served
from tests.support.controller.tls.yard_certificates import YardCertificates


@pytest.fixture
def api() -> Iterator[Served]:
    with served(period_seconds=0.5, gate_seconds=15) as there:
        yield there


def read(api: Served) -> Samples:
    answer = api.call("GET", "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Samples(answer.text)


def report(api: Served, host: str, *jobs: dict[str, object]) -> None:
    assert api.call("POST", f"/v1/hosts/{host}/reports", batch(*jobs)).json()["status"] == "taken"


def test_jobs_are_counted_by_state_and_class(api: Served) -> None:
    assert read(api).by("service_class", "trainyard_planned_jobs") == {str(number): 0 for number in range(7)}
    for name, port in (("a", 5000), ("b", 5001), ("c", 5002)):
        assert api.call("PUT", f"/v1/jobs/{name}", spec(port)).ok
    api.call("PUT", "/v1/stages/rung", {"jobs": ["a", "b"]})
    report(api, "h1", {"job": "a", "points": [{"iteration": 1, "time": time.time(), "metric": 0.5}]})
    report(api, "h1", {"job": "b", "diverged": True})
    wait_until(lambda: sum(read(api).by("service_class", "trainyard_planned_jobs").values()) == 3)
    found = read(api)
    assert found.by("state", "trainyard_jobs") == {"waiting": 1, "running": 2, "lost": 0}
    assert found.value("trainyard_diverged_jobs") == 1
    assert found.value("trainyard_stages") == 1
    assert found.by("service_class", "trainyard_planned_jobs")["0"] == 1, "fifo: one job a class"
    assert api.call("DELETE", "/v1/jobs/c").ok
    assert read(api).by("state", "trainyard_jobs")["waiting"] == 0


def test_agents_report_are_silent_or_were_never_heard_of(api: Served) -> None:
    assert read(api).by("agent", "trainyard_hosts") == {"reporting": 0, "silent": 0, "none": 3}
    api.yard.registry.change_hosts(api.yard.registry.hosts, lease_seconds=1.0)
    report(api, "h1")
    assert read(api).by("agent", "trainyard_hosts") == {"reporting": 1, "silent": 0, "none": 2}
    wait_until(lambda: read(api).by("agent", "trainyard_hosts") == {"reporting": 0, "silent": 1, "none": 2})


def test_the_plan_in_force_has_its_time_objective_and_bound(api: Served) -> None:
    before = time.time()
    api.call("PUT", "/v1/jobs/a", spec(5000))
    wait_until(lambda: read(api).value("trainyard_plan_timestamp_seconds") > before)
    wait_until(lambda: read(api).value("trainyard_plan_objective_seconds") > 0)
    found = read(api)
    # 50 iterations of 1 MB over 1 Gbit/s.
    assert found.value("trainyard_plan_objective_seconds") == pytest.approx(0.4)
    assert found.value("trainyard_plan_lower_bound_seconds") == pytest.approx(0.4)
    assert found.value("trainyard_plan_failing") == 0
    assert found.of("trainyard_policy_info") == [({"policy": "fifo"}, 1.0)]
    assert found.value("trainyard_period_seconds") == 0.5
    api.yard.network.refusal = "the table is full"
    api.call("PUT", "/v1/jobs/b", spec(5001))
    wait_until(lambda: read(api).value("trainyard_plan_failing") == 1)


def test_whether_it_is_ready_and_how_many_problems_there_are(api: Served) -> None:
    found = read(api)
    assert found.value("trainyard_ready") == 1
    assert found.value("trainyard_problems") == len(api.call("GET", "/v1/status").json()["problems"])
    api.yard.network.switches = lambda: ()
    assert read(api).value("trainyard_ready") == 0
    assert api.call("GET", "/readyz").status_code == 503


def test_what_only_rises_is_a_counter_and_nothing_else_is() -> None:
    with served() as api:
        ours = [family for family in read(api).families.values() if family.name.startswith("trainyard_")]
    assert len(ours) > 40
    for family in ours:
        names = {sample.name for sample in family.samples}
        if family.type == "counter":
            assert names <= {f"{family.name}_total"}
        elif family.type == "gauge":
            assert names <= {family.name} and not family.name.endswith(("_total", "_count", "_created"))
        else:
            assert family.type == "histogram" and family.name.endswith("_seconds")
        assert family.documentation


def test_the_first_end_of_each_kind_of_certificate_is_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    yard = YardCertificates(tmp_path_factory.mktemp("certificates"))
    public = yard.for_switches.public
    body = {
        "openflow": {
            "tls": {
                "certificate": str(public.certificate),
                "key": str(yard.for_switches.key),
                "authority": str(public.authority),
                "revoked": str(public.revoked),
            }
        },
        "api": {"tls_certificate": str(public.certificate), "tls_key": str(yard.for_switches.key)},
    }
    files = CertificateFiles(Config.model_validate(body))
    ends = files.ends()
    assert set(ends) == {
        ("openflow", "certificate"), ("openflow", "authority"), ("openflow", "revoked"), ("api", "certificate")
    }  # fmt: skip
    first = min(end.until for end in Expiries(PublicFiles(public.certificate)).ends)
    assert ends["api", "certificate"] == ends["openflow", "certificate"] == first.timestamp()
    with served() as api:
        api.services.certificate_ends = files.ends
        name = "trainyard_certificate_expiry_timestamp_seconds"
        assert read(api).value(name, use="api", kind="certificate") == first.timestamp()
        assert str(tmp_path_factory.getbasetemp()) not in api.call("GET", "/metrics").text
