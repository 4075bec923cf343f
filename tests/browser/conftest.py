"""A Chromium for all tests of the console's pages, and visits that fail at their end if a page did what it must not."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.browser.chromium import chromium
from tests.support.browser.cluster import Cluster, running_cluster
from tests.support.browser.visit import Visit
from tests.support.controller.api.roles_yard import RolesYard
from tests.support.controller.cli.console_process import Console
from tests.support.paths import ROOT

expect.set_options(timeout=20_000)

PICTURES = ROOT / "results" / "browser"
"""Each test leaves a picture of its last pages here, for whoever changes the console to look at."""

Visits = Callable[..., Visit]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """What tests that change nothing look at."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def visits(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visits]:
    """Begins a visit to a controller: with the token of the operator or of another name, where it asks for one."""
    begun: list[Visit] = []

    def visit(yard: Controller | Console, name: str = "night", **options: Any) -> Visit:
        token = yard.tokens[name] if isinstance(yard, RolesYard) else None
        begun.append(Visit(browser, yard.url, token=token, **options))
        return begun[-1]

    yield visit
    for number, one in enumerate(begun):
        one.page.screenshot(path=PICTURES / f"{_file_name(request.node.nodeid)}-{number}.png")
    assert [fault for one in begun for fault in one.end()] == []


def _file_name(test: str) -> str:
    """Returns a name for the files of a test, which may have long parameters."""
    readable = re.sub(r"[^\w.-]+", "-", test.removeprefix("tests/browser/"))
    return f"{readable[:100]}-{zlib.crc32(test.encode()):08x}"
