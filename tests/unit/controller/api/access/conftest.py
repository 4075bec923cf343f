from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.controller.api.roles_yard import RolesYard


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    """A running controller with a caller of each role, for all tests of a module."""
    controller = RolesYard(tmp_path_factory.mktemp("roles"))
    controller.start()
    yield controller
    controller.stop()
