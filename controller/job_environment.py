"""The variables by which the libraries of a job learn the job's own DSCP when it is launched. Pure.

RDMA bypasses the kernel: no host can mark its packets, and a library gives each connection its traffic class when it
makes it. In RoCEv2 that byte is the TOS byte or the traffic class of the IP header (InfiniBand Architecture
Specification, annex A17), so its upper six bits are the DSCP (RFC 2474). The two lower bits belong to congestion
notification (ECN, RFC 3168); here they are 0.

Sources, one a variable: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_IB_TC and
NCCL_IB_FIFO_TC), https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/env-variables.html (RCCL reads the
same), https://openucx.readthedocs.io/en/master/faq.html (UCX_IB_TRAFFIC_CLASS),
https://docs.nvidia.com/nvshmem/api/gen/env.html (NVSHMEM_IB_TRAFFIC_CLASS).
"""

from __future__ import annotations

from collections.abc import Mapping

DSCP_VARIABLE = "TRAINYARD_DSCP"
"""The variable with the DSCP itself, for programs that have variables of their own."""

CONTROL_VARIABLE = "NCCL_IB_FIFO_TC"
"""The variable with the traffic class of NCCL's control messages, which tell a sender that it may go on."""

DATA_VARIABLES = ("NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS", "NVSHMEM_IB_TRAFFIC_CLASS")
"""The variables with the traffic class of a job's data."""

ECN_BITS = 2


def traffic_class(dscp: int) -> int:
    """Returns the byte that carries a DSCP, without congestion notification."""
    return dscp << ECN_BITS


def variables(dscp: int, control: int | None) -> dict[str, int]:
    """Returns the variables of a job by name.

    ``control`` is the DSCP of control messages. None: they get the job's own, as without the variable; it is set all
    the same, so that no older value of it counts.
    """
    of_control = traffic_class(dscp if control is None else control)
    data = dict.fromkeys(DATA_VARIABLES, traffic_class(dscp))
    return {DSCP_VARIABLE: dscp, **data, CONTROL_VARIABLE: of_control}


def lines(values: Mapping[str, int], *, export: bool = False) -> list[str]:
    """Returns a line for each variable: as in a file of variables, or with ``export`` as a shell reads it.

    Values are digits alone, so nothing has to be quoted.
    """
    return [f"{'export ' if export else ''}{name}={value:d}" for name, value in values.items()]
