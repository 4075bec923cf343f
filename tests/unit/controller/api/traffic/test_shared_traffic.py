"""What the API says of traffic without ports that several jobs declare."""

from __future__ import annotations

from typing import Any

import pytest

from controller.wire import Explanation, JobList, JobState
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.served import Served, served


def put(api: Served, job: str, protocol: str, *pairs: tuple[str, str]) -> None:
    flows: list[dict[str, Any]] = [{"src": src, "dst": dst, "protocol": protocol} for src, dst in pairs]
    demand = [{"src": src, "dst": dst, "bytes": 1e6} for src, dst in pairs]
    assert api.call("PUT", f"/v1/jobs/{job}", {"flows": flows, "demand": demand}).ok


def told(api: Served, job: str) -> tuple[str, ...]:
    """The problems of a job, which are the same in every answer."""
    wait_until(lambda: api.call("GET", f"/v1/jobs/{job}/explain").ok, what="a plan with the job")
    explained = Explanation.model_validate_json(api.call("GET", f"/v1/jobs/{job}/explain").content).problems
    listed = JobList.model_validate_json(api.call("GET", "/v1/jobs").content).jobs
    assert explained == JobState.model_validate_json(api.call("GET", f"/v1/jobs/{job}").content).problems
    assert explained == next(state.problems for state in listed if state.id == job)
    return explained


@pytest.mark.parametrize(("protocol", "name"), [("rocev2", "RoCEv2"), ("any", "any traffic")])
def test_each_of_two_jobs_is_told_and_neither_is_named(protocol: str, name: str) -> None:
    with served() as api:
        put(api, "a", protocol, ("h1", "h2"), ("h2", "h1"))
        assert told(api, "a") == ()
        put(api, "b", protocol, ("h1", "h2"))
        (said,) = told(api, "b")
        assert said.startswith(
            f"another job declares {name} from h1 to h2, too: switches cannot tell these packets apart"
        )
        assert said.endswith("and serve them in no job's class; with identity: dscp they can")
        assert told(api, "a") == (said,)
        put(api, "c", protocol, ("h1", "h2"))
        assert told(api, "a")[0].startswith("2 other jobs declare")
        put(api, "b", "rocev2" if protocol == "any" else "any", ("h1", "h2"))
        put(api, "c", protocol, ("h2", "h3"))
        assert told(api, "a") == ()


def test_many_pairs_are_counted() -> None:
    pairs = [(f"h{a}", f"h{b}") for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
    with served() as api:
        put(api, "a", "rocev2", *pairs)
        put(api, "b", "rocev2", *pairs)
        said = told(api, "a")
    assert len(said) == 5 and said[-1] == "other jobs declare the same between more pairs of hosts, too: 2 more"


def test_where_dscps_tell_jobs_apart_nothing_is_shared() -> None:
    with served(identity="dscp") as api:
        for job in ("a", "b"):
            put(api, job, "rocev2", ("h1", "h2"))
        assert told(api, "a") == ()
