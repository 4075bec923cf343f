"""The counters of RDMA ports, in a folder as sysfs has it."""

from __future__ import annotations

from pathlib import Path

from host_reporter.unseen import rdma_ports


def port(root: Path, device: str, number: int, layer: str, **files: str) -> None:
    folder = root / device / "ports" / str(number)
    for name in ("counters", "hw_counters"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "link_layer").write_text(f"{layer}\n")
    for name, text in files.items():
        kind = "hw_counters" if name.endswith("_bytes") else "counters"
        (folder / kind / name).write_text(f"{text}\n")


def test_ports_are_read_in_bytes_with_their_interfaces(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0", 1, "InfiniBand", port_xmit_data="250", port_rcv_data="500")
    (tmp_path / "mlx5_0" / "device" / "net" / "ib0").mkdir(parents=True)
    port(tmp_path, "mlx5_2", 1, "Ethernet", port_xmit_data=str(2**62), port_rcv_data="0")
    port(tmp_path, "rdmap0s6", 1, "Unspecified", tx_bytes="7", rx_bytes="9")
    assert rdma_ports.read(tmp_path) == [
        ("mlx5_0:1", (1000, 2000), ("ib0",), True),
        ("mlx5_2:1", (2**64, 0), (), False),
        ("rdmap0s6:1", (7, 9), (), False),
    ]


def test_a_port_that_counts_no_bytes_is_none(tmp_path: Path) -> None:
    port(tmp_path, "rxe0", 1, "Ethernet")
    port(tmp_path, "odd0", 1, "Ethernet", port_xmit_data="N/A (not supported)", port_rcv_data="1")
    (tmp_path / "empty0").mkdir()
    assert rdma_ports.read(tmp_path) == []
    assert rdma_ports.read(tmp_path / "none") == []


def test_no_more_ports_are_read_than_a_host_can_have(tmp_path: Path) -> None:
    for number in range(rdma_ports.MAX_PORTS + 5):
        port(tmp_path, f"mlx5_{number}", 1, "Ethernet", port_xmit_data="1", port_rcv_data="1")
    assert len(rdma_ports.read(tmp_path)) == rdma_ports.MAX_PORTS
