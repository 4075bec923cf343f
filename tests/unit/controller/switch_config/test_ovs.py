"""The queues of Open vSwitch are those that the controller makes."""

from __future__ import annotations

import re

from controller.dataplane.queues.numbers import port_queues
from tests.support.controller.switch_configs import lines


def test_a_port_gets_the_queues_that_the_controller_would_make() -> None:
    script = "\n".join(lines("pool-2", "ovs"))
    port = re.search(r"ovs-vsctl set port eth1 .*?[^\\]\n", script, re.S)
    assert port is not None
    made = port_queues(10e9, classes=7, job_floor=0.01, other_floor=0.1)
    rows = re.findall(r"--id=@q(\d) create queue (.*) external_ids", port[0])
    found = {int(number): dict(re.findall(r"other_config:(\S+?)=(\S+)", row)) for number, row in rows}
    assert found == made.queues
    assert f"type=linux-htb other_config:max-rate={made.rate} " in port[0]
    assert re.findall(r"queues:(\d)=@q\1", port[0]) == [str(number) for number in range(8)]
