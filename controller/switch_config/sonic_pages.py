"""The pages that the configuration of SONiC was checked against."""

from __future__ import annotations

from controller.switch_config.stanza import Source

MANUAL = Source(
    "SONiC Configuration Database Manual",
    "https://github.com/sonic-net/sonic-buildimage/blob/00fe9e72002439da602c27ca14b57dfd99e44d17/"
    "src/sonic-yang-models/doc/Configuration.md",
)
NVIDIA = Source(
    "QoS and Buffers",
    "https://docs.nvidia.com/networking-ethernet-software/sonic-202012/System-Configuration/QoS-and-Buffers/",
)
SAVE = Source("SONiC, Configuration Management", "https://developer.cisco.com/docs/sonic/configuration-management")
COMMANDS = Source(
    "SONiC Command Line Interface Guide",
    "https://github.com/sonic-net/sonic-utilities/blob/00afc8d68577a42a9b86470418afbac62bd136c6/"
    "doc/Command-Reference.md",
)
NETBERG = Source(
    "QoS, Quality of Service, Classification",
    "https://netbergtw.com/top-support/netberg-sonic/qos-quality-of-service-classification",
)
