"""The pages of Juniper that the configuration of Junos was checked against."""

from __future__ import annotations

from controller.switch_config.stanza import Source

_OLD = "https://www.juniper.net/documentation/en_US"
_NEW = "https://www.juniper.net/documentation/us/en/software/junos"

HIERARCHY = Source(
    "[edit class-of-service] Hierarchy Level",
    f"{_OLD}/junos13.1/topics/reference/statement-hierarchy/class-of-service-cos-config-guide.html",
)
INTERFACES = Source(
    "interfaces (Class of Service)",
    f"{_OLD}/junos13.2/topics/reference/configuration-statement/interfaces-edit-class-of-service.html",
)
FIXED = Source(
    "Applying Forwarding Classes to Interfaces",
    f"{_NEW}/cos/topics/concept/cos-applying-forwarding-classes-to-interfaces.html",
)
SCHEDULERS = Source(
    "schedulers (Class of Service)",
    f"{_OLD}/junos13.2/topics/reference/configuration-statement/schedulers-edit-class-of-service.html",
)
PRIORITIES = Source(
    "Transmission Priority Scheduling",
    f"{_NEW}/cos/topics/concept/schedulers-priority-overview-cos-config-guide.html",
)
QFX = Source(
    "Defining CoS Queue Scheduling Priority",
    f"{_NEW}/traffic-mgmt-qfx/topics/task/cos-queue-scheduling-priority-qfx-series-cli.html",
)
PFC = Source(
    "Configuring DSCP-based PFC for Layer 3 Untagged Traffic",
    f"{_NEW}/cos/topics/task/cos-configuring-l3-dscp-pfc.html",
)
ECN = Source(
    "Example: Configuring Static and Dynamic ECN",
    f"{_NEW}/cos/topics/example/cos-schedulers-explicit-congestion-notification-configuring.html",
)
CHECKS = (
    Source(
        "show class-of-service interface",
        f"{_OLD}/junos12.3/topics/reference/command-summary/show-class-of-service-interface.html",
    ),
    Source(
        "show interfaces queue",
        f"{_OLD}/junos12.3/topics/reference/command-summary/show-interfaces-queue-ex-series.html",
    ),
)
