"""The moments of a job's tasks on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from topologies.trainer.barriers import files
from topologies.trainer.barriers.record import ServerMoments, ServerRecord, WorkerMoments, WorkerRecord

WORKER = WorkerMoments((0.0, 2.0), (1.0,))
SERVER = ServerMoments(((1.5,), (1.75,)), (1.75,))


def test_moments_come_back_once_every_task_has_left_its_own(tmp_path: Path) -> None:
    files.write(tmp_path, "a", 0, SERVER)
    files.write(tmp_path, "a", 1, WORKER)
    assert files.read(tmp_path, "a", 2) is None, "one worker has left nothing"
    files.write(tmp_path, "a", 2, WORKER)
    assert files.read(tmp_path, "a", 2) == (SERVER, (WORKER, WORKER))


@pytest.mark.parametrize("text", ['{"ready": [1, "x"], "entered": []}', '{"ready": [1]}', "[1.0, 2.0]", "", "{"])
def test_a_file_of_another_format_is_named(tmp_path: Path, text: str) -> None:
    files.write(tmp_path, "a", 0, SERVER)
    files.write(tmp_path, "a", 1, WORKER)
    files.moments_file(tmp_path, "a", 1).write_text(text)
    with pytest.raises(ValueError, match=r"barriers/a/1.json: not the moments of a task") as error:
        files.read(tmp_path, "a", 1)
    assert "\n" not in str(error.value)


def test_records_hold_what_was_noted_in_its_order() -> None:
    worker = WorkerRecord()
    worker.ready(0.1234567)
    worker.entered()
    worker.entered()
    moments = worker.moments()
    assert moments.ready == (0.123457,)
    assert moments.entered == tuple(sorted(moments.entered))
    assert len(moments.entered) == 2
    server = ServerRecord(2)
    server.pushed(2)
    server.opened()
    pushed = server.moments().pushed
    assert (len(pushed[0]), len(pushed[1]), len(server.moments().opened)) == (0, 1, 1)
