"""The agent's options from the command line and from a YAML file. Unknown keys are refused with their line."""

from __future__ import annotations

import argparse
import json
import socket
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints, ValidationError

from controller.documents import text_file
from controller.documents.document import Document, DocumentError
from controller.documents.faults import described, in_lines
from controller.wire import Message, Name
from host_reporter.nic.tensorlights import LEAST_RATE_BPS, ROTATE_SECONDS
from host_reporter.training.progress_file import DEFAULT_DIRECTORY, DIRECTORY_VARIABLE

DEFAULT_CONTROLLER = "http://127.0.0.1:8080"
DEFAULT_JOBS_DIR = "/etc/trainyard/jobs.d"
DEFAULT_STATE_DIR = "/var/lib/host-reporter"

MOST_CONFIG_BYTES = 2**20
"""Refuse a file of options that has more bytes."""

NicOrder = Literal["plan", "tls-one", "tls-rr"]
"""The order at the interface comes from the controller's plan, or from TensorLights with fixed or rotating bands."""


class OptionsError(ValueError):
    """The options cannot be used. The message says where and what is wrong, and what would be right."""


class Options(Message):
    """The agent's options.

    Where ``interface`` is None, the NIC is not touched. Where ``rate_bps`` is None, the controller's settings give the
    rate. With TensorLights and no ``controller`` option, the agent runs without a controller.
    """

    controller: str = DEFAULT_CONTROLLER
    host: Name = Field(default_factory=lambda: socket.gethostname().partition(".")[0])
    token_file: Path | None = Field(default=None, strict=False)
    enrol_token_file: Path | None = Field(default=None, strict=False)
    state_dir: Path = Field(default=Path(DEFAULT_STATE_DIR), strict=False)
    ca_file: Path | None = Field(default=None, strict=False)
    certificate_file: Path | None = Field(default=None, strict=False)
    key_file: Path | None = Field(default=None, strict=False)
    jobs_dir: Path = Field(default=Path(DEFAULT_JOBS_DIR), strict=False)
    progress_dir: Path = Field(default=Path(DEFAULT_DIRECTORY), strict=False)
    interface: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$")] | None = None
    rate_bps: Annotated[float, Field(ge=1e3, le=1e13)] | None = None
    nic: NicOrder = "plan"
    rotate_seconds: Annotated[float, Field(ge=1, le=86400)] = ROTATE_SECONDS
    period: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    marking: bool = True

    @property
    def is_alone(self) -> bool:
        """Whether there is no controller to report to."""
        return self.nic != "plan" and "controller" not in self.model_fields_set


def read_options(arguments: Sequence[str], environment: dict[str, str]) -> Options:
    """Returns a command line's options. They win over its ``--config``, that over defaults. Raises OptionsError."""
    given = {name: value for name, value in vars(parser().parse_args(arguments)).items() if value is not None}
    config = given.pop("config", None)
    values: dict[str, Any] = {}
    written: Document | None = None
    if DIRECTORY_VARIABLE in environment:
        values["progress_dir"] = environment[DIRECTORY_VARIABLE]
    if config is not None:
        written = _read_config(Path(config))
        values |= written.data or {}
    try:
        options = Options.model_validate_json(json.dumps({**values, **given}, default=str))
    except ValidationError as error:
        field, _, problem = in_lines(described(error, values | given, Options))[0].partition(": ")
        if written is not None and field in (written.data or {}) and field not in given:
            raise OptionsError(f"{config}:{written.line((field,))}: {field}: {problem}") from error
        raise OptionsError(f"--{field.replace('_', '-')}: {problem}") from error
    if options.enrol_token_file is not None and (options.token_file or options.certificate_file):
        raise OptionsError(
            "--enrol-token-file: a host that enrols gets a token of its own; leave out --token-file and "
            "--certificate-file"
        )
    if options.rate_bps is not None and options.interface is None:
        raise OptionsError("--rate-bps: give --interface too, the interface that has this rate")
    if options.nic != "plan" and (options.interface is None or options.rate_bps is None):
        raise OptionsError(f"--nic: {options.nic} needs --interface, and --rate-bps, the rate of its link")
    if options.nic != "plan" and options.rate_bps is not None and options.rate_bps < LEAST_RATE_BPS:
        raise OptionsError(
            f"--rate-bps: {options.nic} orders links of {LEAST_RATE_BPS:,.0f} bit/s and more, and {options.rate_bps:g} "
            "is less; the rate is in bit/s, such as 25e9"
        )
    if options.nic != "plan" and find_spec("pyroute2") is None:
        raise OptionsError(f"--nic: {options.nic} needs the Python package pyroute2: pip install 'trainyard[nic]'")
    if "rotate_seconds" in options.model_fields_set and options.nic != "tls-rr":
        raise OptionsError("--rotate-seconds: it needs --nic tls-rr")
    return options


def _read_config(path: Path) -> Document:
    """Returns the document of a ``--config`` file, which may be empty. Raises OptionsError."""
    from controller.documents.yaml_lines import read_yaml  # noqa: PLC0415 - its import is slow, and few starts need it

    try:
        document = read_yaml(text_file.read(path, most_bytes=MOST_CONFIG_BYTES))
    except text_file.FileError as error:
        raise OptionsError(f"--config: {error}") from error
    except DocumentError as error:
        raise OptionsError(f"{path}:{error.line or 1}: {error}") from error
    if document.data is not None and not isinstance(document.data, dict):
        raise OptionsError(f"{path}:1: it must be keys with values, such as controller: {DEFAULT_CONTROLLER}")
    return document


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    created = argparse.ArgumentParser(
        prog="host-reporter",
        description="Report the progress of this host's training jobs to the controller; mark and order their traffic.",
        epilog="Every option may also stand in the --config file, with underscores: jobs_dir: /etc/trainyard/jobs.d. "
        "host-reporter check [--json], with the same options, shows what this host has and lacks; it changes nothing.",
    )
    add = created.add_argument
    add("--version", action="version", version=f"host-reporter {version('trainyard')}")
    add("--controller", metavar="URL", help=f"the controller's address ({DEFAULT_CONTROLLER})")
    add("--host", metavar="NAME", help="this host's name in the controller's settings (the machine's name)")
    add("--token-file", metavar="FILE", help="file with the token, readable by its owner only")
    add("--enrol-token-file", metavar="FILE", help="file with the token by which this host asks to be added")
    add("--state-dir", metavar="DIR", help=f"folder for the token of a host that enrols ({DEFAULT_STATE_DIR})")
    add("--ca-file", metavar="FILE", help="certificates to check the controller's with (the system's)")
    add("--certificate-file", metavar="FILE", help="client certificate with this host's name, in the place of a token")
    add("--key-file", metavar="FILE", help="private key of --certificate-file, without a password")
    add("--jobs-dir", metavar="DIR", help=f"folder of job files ({DEFAULT_JOBS_DIR})")
    add("--progress-dir", metavar="DIR", help=f"folder where the two-line helper writes ({DEFAULT_DIRECTORY})")
    add("--interface", metavar="IF", help="the interface whose traffic is ordered (none)")
    add(
        "--rate-bps",
        metavar="N",
        type=float,
        help="the interface's rate in bit/s (the rate in the controller's settings)",
    )
    add(
        "--nic",
        metavar="ORDER",
        help=f"what orders the interface: {', '.join(get_args(NicOrder))} (plan: the controller's)",
    )
    add("--rotate-seconds", metavar="S", type=float, help="with tls-rr: seconds until bands change (20)")
    add("--period", metavar="S", type=float, help="seconds between reports, at most (5)")
    add("--no-marking", action="store_const", const=False, dest="marking", help="do not mark this host's packets")
    add("--config", metavar="YAML", help="file with any of these options")
    return created
