"""``trainyard switch-config``: the configuration of a switch that serves queues by DSCP and takes no rules."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from controller.cli.output import CommandError, fail, show_lines

SYSTEMS = ("sonic", "eos", "nxos", "junos", "cumulus", "ovs", "linux")

_PORT = re.compile(r"([1-9][0-9]{0,9})=([A-Za-z0-9][A-Za-z0-9_./:-]{0,39})")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "switch-config",
        help="the static configuration of DSCP to queue for a switch without OpenFlow",
        description="Print the static configuration of a switch or router that takes no rules from a controller: which "
        "DSCP leads to which queue, in which order queues are served, and what each keeps.",
    )
    add = parser.add_argument
    add("--for", dest="system", choices=SYSTEMS, required=True, help="what runs on the switch")
    add("--settings", type=Path, metavar="FILE", help="the controller's settings file; default: its default settings")
    add("--switch", metavar="DPID", help="which switch of the settings; needed where they have several")
    add(
        "--port",
        metavar="N=NAME",
        action="append",
        default=[],
        help="port N of the settings has this name on the switch; repeatable; default: a name by the number",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the configuration."""
    from controller.config.config import ConfigError, load_config
    from controller.switch_config.from_settings import static_plan
    from controller.switch_config.plan import PlanError
    from controller.switch_config.systems import SYSTEMS as KNOWN
    from controller.switch_config.systems import configuration

    system = KNOWN[options.system]
    dpid, names = _dpid(options.switch), _names(options.port)
    try:
        plan = static_plan(load_config(options.settings), dpid, names, system.port_name)
    except ConfigError as error:
        return fail(str(error), 2, prefix="")
    except PlanError as error:
        raise CommandError(str(error), 2) from None
    return show_lines(configuration(system, plan))


def _dpid(text: str | None) -> int | None:
    """Returns the datapath id of a switch. Raises CommandError."""
    from pydantic import TypeAdapter, ValidationError

    from controller.wire.addresses import Dpid

    if text is None:
        return None
    try:
        return TypeAdapter(Dpid).validate_python(text)
    except ValidationError:
        raise CommandError(
            f"--switch {text[:40]!r}: it is a datapath id in hexadecimal, from 1 to 16 digits, such as 0x1", 2
        ) from None


def _names(given: Sequence[str]) -> dict[int, str]:
    """Returns the names of ports by number. Raises CommandError."""
    names: dict[int, str] = {}
    for text in given:
        found = _PORT.fullmatch(text)
        if found is None:
            raise CommandError(f"--port {text[:60]!r}: it is a number and a name, such as 1=Ethernet1/1", 2)
        number, name = int(found[1]), found[2]
        if number in names or name in names.values():
            raise CommandError(f"--port {text[:60]!r}: the number or the name is given twice; each has one", 2)
        names[number] = name
    return names
