"""Bodies of requests that several tests of the API send, and the check of a problem that it answers."""

from __future__ import annotations

import itertools
import time
from typing import Any


def spec(port: int, **parts: Any) -> dict[str, Any]:
    tasks = [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}]
    return {"tasks": tasks, "demand": [{"src": "h2", "dst": "h1", "bytes": 1e6}], "iterations": 50} | parts


_sequence = itertools.count(1)


def batch(*jobs: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"session": "run-1", "seq": next(_sequence), "sent_at": time.time(), "jobs": list(jobs)} | parts


def assert_problem(reply: Any, status: int, said: str, field: str | None = None) -> None:
    assert reply.status_code == status, reply.text
    assert reply.headers["Content-Type"] == "application/problem+json"
    problem = reply.json()
    assert problem["status"] == status
    assert problem["title"] and problem["type"]
    assert said in problem["detail"], problem
    if field is not None:
        assert field in [error["field"] for error in problem["errors"]], problem
    assert "Traceback" not in reply.text
