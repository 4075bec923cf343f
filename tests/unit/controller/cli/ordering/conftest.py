"""``trainyard order`` in this process."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: object) -> tuple[int, str, str]:
        status = main(["order", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert status == 0 or captured.out == ""
        return status, captured.out, captured.err

    return command
