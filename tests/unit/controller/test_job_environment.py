"""From a DSCP to the variables that libraries read, and back through the programs that hand them on."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from controller.code_points import MOST, POOL_2
from controller.job_environment import CONTROL_VARIABLE, DATA_VARIABLES, DSCP_VARIABLE, lines, variables


def test_a_traffic_class_is_the_tos_byte_of_the_dscp() -> None:
    assert variables(43, 63) == {
        "TRAINYARD_DSCP": 43,
        "NCCL_IB_TC": 172,
        "UCX_IB_TRAFFIC_CLASS": 172,
        "NVSHMEM_IB_TRAFFIC_CLASS": 172,
        "NCCL_IB_FIFO_TC": 252,
    }


def test_control_messages_without_a_dscp_of_their_own_have_the_jobs() -> None:
    assert variables(11, None)[CONTROL_VARIABLE] == variables(11, None)["NCCL_IB_TC"] == 44


@pytest.mark.parametrize("dscp", range(MOST + 1))
def test_each_value_is_a_byte_without_the_bits_of_congestion_notification(dscp: int) -> None:
    values = variables(dscp, POOL_2.acknowledgements)
    assert values.pop(DSCP_VARIABLE) == dscp
    assert all(0 <= value <= 255 and value & 0b11 == 0 for value in values.values())
    assert {values[name] >> 2 for name in DATA_VARIABLES} == {dscp}


@pytest.mark.parametrize("export", [False, True])
def test_a_shell_and_its_commands_read_the_values(export: bool) -> None:
    values = variables(63, 0)
    text = "\n".join(lines(values, export=export))
    prefix = "" if export else "set -a; "
    shown = subprocess.check_output(["sh", "-c", f"{prefix}eval {shlex.quote(text)}; env"], env={}, text=True)
    read = dict(line.split("=", 1) for line in shown.splitlines())
    assert {name: int(read[name]) for name in values} == values
    assert all(line.startswith("export ") is export for line in text.splitlines())


def test_a_value_that_is_no_number_is_never_printed() -> None:
    with pytest.raises(ValueError, match="format code"):
        lines({"NCCL_IB_TC": "1; reboot"})  # type: ignore[dict-item]
