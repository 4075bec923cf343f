"""What the audit costs a request: processor time from the look before the change to the record."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from controller.access.audit.log import AuditLog
from controller.access.caller import Caller, Role
from controller.api import Services
from controller.api.audited import SMALL_SPEC, Auditor, Observed
from controller.api.http import Call, Reply
from controller.api.routes import ROUTES
from controller.declared.declared import Declared
from controller.process.callers import callers_of
from controller.wire import JobSpec
from tests.support.controller.api_cases import spec
from tests.support.controller.yard import Yard

REQUESTS = 200
PUT = next(route for route in ROUTES if (route.method, route.path) == ("PUT", "/v1/jobs/{id}"))
OPERATOR = Caller("operator", Role.OPERATOR)


def declared(tasks: int, iterations: float) -> Declared:
    workers = [{"role": "worker", "host": f"h{1 + n % 3}", "port": 6000 + n} for n in range(tasks)]
    return Declared.of(JobSpec.model_validate(spec(5000, tasks=workers, iterations=iterations)))


@pytest.mark.parametrize("tasks", [2, 80, 4000])
def test_a_record_of_a_changed_job_costs_less_than_a_millisecond(tmp_path: Path, tasks: int) -> None:
    yard = Yard()
    audit = AuditLog(tmp_path / "audit", max_bytes=2**24, keep=2, clock=time.time, waiting=4 * REQUESTS)
    parts = (yard.current, yard.registry, yard.network, yard.loop, yard.store, yard.journal, yard.metrics)
    callers = callers_of(yard.config.api, yard.config.host_map())
    network: Any = parts
    auditor = Auditor(Services(*network, callers, audit=audit))
    before, after = declared(tasks, 10), declared(tasks, 20)
    assert (len(before.text) <= SMALL_SPEC) == (tasks <= 80)
    yard.registry.put_job("a", before, 0.0)
    began = time.process_time()
    for _ in range(REQUESTS):
        observed = Observed({"REMOTE_ADDR": "10.0.0.9"}, "/v1/jobs/a")
        observed.caller = OPERATOR
        auditor.look(observed, PUT, Call({}, {"id": "a"}, {}, OPERATOR, 0.0))
        auditor.read(observed, after)
        auditor.note(observed, "PUT /v1/jobs/{id}", Reply(200))
    seconds = (time.process_time() - began) / REQUESTS
    assert audit.head.number >= REQUESTS
    assert audit.newest(1)[0].content["after"]["iterations"] == 20
    assert seconds < 1e-3, f"{1e3 * seconds:.2f} ms a request"
    yard.stop()
    audit.stop()
