"""Options of the whole test run, and how it starts controllers.

Property tests take the same examples in every run, so that a failure is of the change that is tested. To hunt for new
ones: ``pytest --hypothesis-profile default``. No example fails by the clock: it may take long on a machine
that does other work too.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from evaluation.bench.support.api_client import Controller
from tests.support.controller.forked.servers import fork_servers

settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def _controllers() -> Iterator[None]:
    """Controllers are forks of a process that has imported one."""
    with fork_servers() as servers, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Controller, "begin", servers.begin)
        yield


@pytest.fixture
def frozen_heap() -> Iterator[None]:
    """Python's collector does not walk what earlier tests left. A walk would count as time of the code under test."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fail-on-skip", action="store_true", help="a skipped test fails the run")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--fail-on-skip") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("skipped tests are failures in this run (--fail-on-skip)", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--fail-on-skip") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
