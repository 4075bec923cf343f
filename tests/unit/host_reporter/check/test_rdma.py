"""What the check says of RDMA devices, whose files lie as MLNX_OFED's driver has them."""

from __future__ import annotations

from pathlib import Path

from host_reporter.check.rdma import check, verdicts
from host_reporter.options import Options


def device(root: Path, name: str, text: str) -> Path:
    folder = root / name / "tc" / "1"
    folder.mkdir(parents=True)
    file = folder / "traffic_class"
    file.write_text(text)
    return file


def test_a_device_that_forces_a_dscp_is_said_with_its_file(tmp_path: Path) -> None:
    file = device(tmp_path, "mlx5_0", "Global tclass=106\n")
    device(tmp_path, "mlx5_1", "")
    device(tmp_path, "mlx5_2", "src_ip=10.0.0.1,tclass=64\n")
    (verdict,) = verdicts(tmp_path)
    assert (verdict.check, verdict.state) == ("rdma", "note")
    assert "mlx5_0 sends all its RoCE packets with DSCP 26" in verdict.text
    assert str(file) in str(verdict.help)


def test_devices_of_other_drivers_are_not_said(tmp_path: Path) -> None:
    (tmp_path / "rxe0").mkdir()
    assert list(verdicts(tmp_path)) == []
    assert list(verdicts(tmp_path / "none")) == []
    assert all(verdict.state == "note" for verdict in check(Options(host="h1")))
