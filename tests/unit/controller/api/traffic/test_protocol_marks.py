"""Marks of traffic that is not TCP: only an agent that understands them gets them."""

from __future__ import annotations

import itertools

from controller.wire import EVERY_ADDRESS, EVERY_PROTOCOL, HostPlan
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.served import served

PLAN = "/v1/hosts/h1/plan"
FORMS = ({}, *({"Prefer": words} for words in (EVERY_ADDRESS, EVERY_PROTOCOL, f"{EVERY_ADDRESS}, {EVERY_PROTOCOL}")))


def test_each_form_of_a_plan_has_its_marks_and_its_tag() -> None:
    flows = [{"src": "h1", "dst": "h2", "dst_port": 7000, "protocol": protocol} for protocol in ("tcp", "udp")]
    with served() as api:
        assert api.call("PUT", "/v1/jobs/a", {"flows": flows}).ok
        wait_until(lambda: api.call("GET", PLAN).json().get("marks"), what="the marks")
        answers = [api.call("GET", PLAN, headers=dict(form)) for form in FORMS]
        for form, answer in zip(FORMS, answers, strict=True):
            assert ("protocol_marks" in answer.json()) == (EVERY_PROTOCOL in form.get("Prefer", "")), form
            assert [mark.remote_port for mark in HostPlan.model_validate(answer.json()).marks] == [7000]
        whole = HostPlan.model_validate(answers[-1].json())
        assert [(mark.protocol, mark.remote_port) for mark in whole.protocol_marks] == [("udp", 7000)]
        for (asked, form), (known, answer) in itertools.product(enumerate(FORMS), enumerate(answers)):
            again = api.call("GET", PLAN, headers=form | {"If-None-Match": answer.headers["ETag"]})
            assert again.status_code == (304 if asked == known else 200), (form, answer.headers)
