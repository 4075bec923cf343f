"""The agent's options from the command line and from a YAML file. Unknown keys are refused with their line."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import socket
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, StringConstraints, Tag, ValidationError, model_validator

from controller.documents import text_file
from controller.documents.document import Document, DocumentError
from controller.documents.faults import described, in_lines
from controller.wire import Message, Name
from controller.wire.addresses import InterfaceName
from host_reporter.environment import job_files
from host_reporter.launchers.launcher import Launcher
from host_reporter.launchers.registry import LauncherError, choose
from host_reporter.launchers.rules import Rule
from host_reporter.nic.tensorlights.bands import LEAST_RATE_BPS, ROTATE_SECONDS, Sharing
from host_reporter.training.progress_file import DEFAULT_DIRECTORY, DIRECTORY_VARIABLE

DEFAULT_CONTROLLER = "http://127.0.0.1:8080"
DEFAULT_JOBS_DIR = "/etc/trainyard/jobs.d"
DEFAULT_STATE_DIR = "/var/lib/host-reporter"

STATE_VARIABLE = "STATE_DIRECTORY"
"""The variable in which systemd names a service's StateDirectory."""

UNREAD_LOG = "unread.log"
"""The file in the state folder that keeps lines of logs that were not understood."""

MOST_INTERFACES = 16
"""Order at most this many interfaces."""

MOST_CONFIG_BYTES = 2**20
"""Refuse a file of options that has more bytes."""

NicOrder = Literal["plan", "tls-one", "tls-rr"]
"""The order at the interface comes from the controller's plan, or from TensorLights with fixed or rotating bands."""


class OptionsError(ValueError):
    """The options cannot be used. The message says where and what is wrong, and what would be right."""


class DiscoverRule(Message):
    """A rule of the operator's own for discover: which processes are a job. All that it gives must hold."""

    rule: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
    """The name of the rule, with which the names of its jobs begin. No launcher may have it."""
    cgroup: Annotated[str, StringConstraints(pattern=r"^/[^/\x00-\x1f][^\x00-\x1f]*$", max_length=500)] | None = None
    """The path of the job's cgroup from the root of the hierarchy; * stands for any text without a slash, and becomes a
    part of the job's name. Give a path below which no user can make cgroups."""
    user: Annotated[str, StringConstraints(min_length=1, max_length=63)] | None = None
    """The Unix user of the processes, by name or number."""
    variable: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=63)] | None = None
    """An environment variable that the processes have. Its value becomes a part of the job's name, and the job belongs
    to the user of the processes."""

    @model_validator(mode="after")
    def _is_for_something(self) -> Self:
        if self.cgroup is None and self.user is None and self.variable is None:
            raise ValueError("a rule needs cgroup, user or variable")
        return self


def _kind(entry: object) -> str:
    """Returns what an entry of discover is meant to be, so that its fault is named."""
    return "a launcher" if isinstance(entry, str) else "a rule"


_Discovered = Annotated[
    Annotated[str, Tag("a launcher")] | Annotated[DiscoverRule, Tag("a rule")], Discriminator(_kind)
]


class NamedInterface(Message):
    """An interface whose traffic is ordered."""

    name: InterfaceName
    """The name of the interface."""
    rate_bps: Annotated[float, Field(ge=1e3, le=1e13)] | None = None
    """Its rate in bit/s. Without it: rate_bps of all interfaces, or the rate in the controller's settings."""


def _interface_kind(entry: object) -> str:
    """Returns what an entry of interfaces is meant to be, so that its fault is named."""
    return "a name" if isinstance(entry, str) else "an interface"


_Interface = Annotated[
    Annotated[InterfaceName, Tag("a name")] | Annotated[NamedInterface, Tag("an interface")],
    Discriminator(_interface_kind),
]


class Options(Message):
    """The agent's options."""

    controller: str = DEFAULT_CONTROLLER
    """The controller's address. With tls-one or tls-rr and without this option, the agent runs without a controller."""
    host: Name = Field(
        default_factory=lambda: socket.gethostname().partition(".")[0],
        json_schema_extra={"default": "the machine's name"},
    )
    """This host's name in the controller's settings."""
    token_file: Path | None = Field(default=None, strict=False)
    """A file with the token, readable by its owner only."""
    enrol_token_file: Path | None = Field(default=None, strict=False)
    """A file with the token of the role enrol. The agent asks with it that its host be added, and gets a token of its
    own."""
    state_dir: Path = Field(default=Path(DEFAULT_STATE_DIR), strict=False)
    """The folder of what the agent keeps: the token of a host that has enrolled, and lines of logs that were not
    understood. Without it: systemd's StateDirectory, if the service has one."""
    ca_file: Path | None = Field(default=None, strict=False)
    """Certificates to check the controller's with. Without it: the system's."""
    certificate_file: Path | None = Field(default=None, strict=False)
    """A client certificate with this host's name, in the place of a token."""
    key_file: Path | None = Field(default=None, strict=False)
    """The private key of certificate_file, without a password."""
    jobs_dir: Path = Field(default=Path(DEFAULT_JOBS_DIR), strict=False)
    """The folder of job files."""
    progress_dir: Path = Field(default=Path(DEFAULT_DIRECTORY), strict=False)
    """The folder where the two-line helper writes."""
    environment_dir: Path = Field(default=Path(job_files.DEFAULT_DIRECTORY), strict=False)
    """The folder of files that tell jobs their own DSCPs, where the controller gives each job one. Each folder on the
    way must be root's, or of the agent's user."""
    discover: Annotated[tuple[_Discovered, ...], Field(max_length=64, strict=False)] | None = None
    """The launchers whose jobs are found without a job file, by name, and rules of the operator's own. Without it: all
    launchers. An empty list: none."""
    unread_log: Path | None = Field(default=None, strict=False)
    """A file for lines of logs that were not understood, which may hold secrets: its owner alone can read it. Without
    it: unread.log in state_dir, if that folder is there, else nowhere."""
    alive_file: Path | None = Field(default=None, strict=False)
    """A file that the agent touches every 5 s as long as its main loop goes on, for a probe of liveness."""
    interface: InterfaceName | None = None
    """The interface whose traffic is ordered. Without it, and without interfaces, no NIC is touched. The command line
    may name several. A VLAN or a bond is ordered at the interfaces that carry its packets."""
    interfaces: Annotated[tuple[_Interface, ...], Field(max_length=MOST_INTERFACES, strict=False)] = ()
    """The interfaces whose traffic is ordered, where there are several: names, or name and rate_bps of each."""
    rate_bps: Annotated[float, Field(ge=1e3, le=1e13)] | None = None
    """The interface's rate in bit/s, or that of each interface that has none of its own. Without it: the rate in the
    controller's settings."""
    nic: NicOrder = "plan"
    """What orders the interface: the controller's plan, or TensorLights with fixed (tls-one) or rotating bands
    (tls-rr)."""
    nic_bands: Sharing = "shared"
    """With tls-one or tls-rr: whether jobs share seven bands, or each has a band of its own. With each, the jobs that
    would share a band go one after the other."""
    rotate_seconds: Annotated[float, Field(ge=1, le=86400)] = ROTATE_SECONDS
    """With tls-rr: seconds until bands change."""
    period: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    """Seconds between reports, at most."""
    marking: bool = True
    """Whether this host's packets are marked."""

    @property
    def ordered(self) -> tuple[NamedInterface, ...]:
        """The interfaces that are ordered, with their rates where these are given."""
        named = [each if isinstance(each, NamedInterface) else NamedInterface(name=each) for each in self.interfaces]
        if self.interface is not None:
            named = [NamedInterface(name=self.interface)]
        return tuple(each.model_copy(update={"rate_bps": each.rate_bps or self.rate_bps}) for each in named)

    @property
    def is_alone(self) -> bool:
        """Whether there is no controller to report to."""
        return self.nic != "plan" and "controller" not in self.model_fields_set

    def unread_file(self) -> Path | None:
        """Returns the file for lines that were not understood; None: there is no folder for one."""
        if self.unread_log is not None or not os.path.isdir(self.state_dir):  # noqa: PTH112 - pathlib's raises
            return self.unread_log
        return self.state_dir / UNREAD_LOG

    def launchers(self) -> tuple[Launcher, ...]:
        """Returns the launchers whose jobs are found. Raises LauncherError for one that does not exist."""
        if self.discover is None:
            return choose(None)
        rules = [entry for entry in self.discover if isinstance(entry, DiscoverRule)]
        return (*map(_rule, rules), *choose(entry for entry in self.discover if isinstance(entry, str)))


def _rule(given: DiscoverRule) -> Rule:
    """Returns a rule of the operator's. Raises LauncherError."""
    taken = {launcher.name for launcher in choose(None)} | {"k8s"}
    if given.rule in taken:
        raise LauncherError(f"rule {given.rule}: a launcher has this name; give the rule another one")
    user = given.user
    try:
        number = None if user is None else int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid
    except KeyError:
        raise LauncherError(f"rule {given.rule}: there is no user {user} here; give its name or number") from None
    return Rule(given.rule, cgroup=given.cgroup, user=number, variable=given.variable)


def read_options(arguments: Sequence[str], environment: dict[str, str]) -> Options:
    """Returns a command line's options. They win over its ``--config``, that over defaults. Raises OptionsError."""
    given = {name: value for name, value in vars(parser().parse_args(arguments)).items() if value is not None}
    config = given.pop("config", None)
    if "discover" in given:
        given["discover"] = [name for name in given["discover"].replace(" ", "").split(",") if name]
    if len(given.get("interface", ())) > 1:
        given["interfaces"] = given.pop("interface")
    elif "interface" in given:
        (given["interface"],) = given["interface"]
    values: dict[str, Any] = {}
    written: Document | None = None
    if DIRECTORY_VARIABLE in environment:
        values["progress_dir"] = environment[DIRECTORY_VARIABLE]
    if STATE_VARIABLE in environment:
        values["state_dir"] = environment[STATE_VARIABLE].partition(":")[0]
    if config is not None:
        written = _read_config(Path(config))
        values |= written.data or {}
    if given.keys() & {"interface", "interfaces"}:
        values = {name: value for name, value in values.items() if name not in ("interface", "interfaces")}
    try:
        options = Options.model_validate_json(json.dumps({**values, **given}, default=str))
    except ValidationError as error:
        field, _, problem = in_lines(described(error, values | given, Options))[0].partition(": ")
        option = field.partition(".")[0]
        if written is not None and option in (written.data or {}) and option not in given:
            raise OptionsError(f"{config}:{written.line((option,))}: {field}: {problem}") from error
        raise OptionsError(f"--{field.replace('_', '-')}: {problem}") from error
    try:
        options.launchers()
    except LauncherError as error:
        if written is not None and "discover" not in given:
            raise OptionsError(f"{config}:{written.line(('discover',))}: discover: {error}") from error
        raise OptionsError(f"--discover: {error}") from error
    if options.enrol_token_file is not None and (options.token_file or options.certificate_file):
        raise OptionsError(
            "--enrol-token-file: a host that enrols gets a token of its own; leave out --token-file and "
            "--certificate-file"
        )
    _check_nic(options)
    return options


def _check_nic(options: Options) -> None:
    """Raises OptionsError where the options of the interface do not fit together."""
    names = [each.name for each in options.ordered]
    if options.interface is not None and options.interfaces:
        raise OptionsError("interface: interfaces names the interfaces that are ordered; leave out interface")
    if len(set(names)) < len(names):
        raise OptionsError(f"--interface: each interface is named once; there are {', '.join(names)}")
    if options.rate_bps is not None and not names:
        raise OptionsError("--rate-bps: give --interface too, the interface that has this rate")
    if options.nic != "plan" and len(names) > 1:
        raise OptionsError(f"--nic: {options.nic} orders one interface, and --interface names {len(names)}")
    if options.nic != "plan" and (not names or options.ordered[0].rate_bps is None):
        raise OptionsError(f"--nic: {options.nic} needs --interface, and --rate-bps, the rate of its link")
    rate_bps = options.ordered[0].rate_bps if options.ordered else None
    if options.nic != "plan" and rate_bps is not None and rate_bps < LEAST_RATE_BPS:
        raise OptionsError(
            f"--rate-bps: {options.nic} orders links of {LEAST_RATE_BPS:,.0f} bit/s and more, and {rate_bps:g} "
            "is less; the rate is in bit/s, such as 25e9"
        )
    if options.nic != "plan" and find_spec("pyroute2") is None:
        raise OptionsError(f"--nic: {options.nic} needs the Python package pyroute2: pip install 'trainyard[nic]'")
    if "nic_bands" in options.model_fields_set and options.nic == "plan":
        raise OptionsError("--nic-bands: it needs --nic tls-one or tls-rr")
    if "rotate_seconds" in options.model_fields_set and options.nic != "tls-rr":
        raise OptionsError("--rotate-seconds: it needs --nic tls-rr")


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
    add("--state-dir", metavar="DIR", help=f"folder of what the agent keeps ({DEFAULT_STATE_DIR})")
    add("--ca-file", metavar="FILE", help="certificates to check the controller's with (the system's)")
    add("--certificate-file", metavar="FILE", help="client certificate with this host's name, in the place of a token")
    add("--key-file", metavar="FILE", help="private key of --certificate-file, without a password")
    add("--jobs-dir", metavar="DIR", help=f"folder of job files ({DEFAULT_JOBS_DIR})")
    add("--progress-dir", metavar="DIR", help=f"folder where the two-line helper writes ({DEFAULT_DIRECTORY})")
    add("--environment-dir", metavar="DIR", help=f"folder of files with jobs' DSCPs ({job_files.DEFAULT_DIRECTORY})")
    add("--discover", metavar="LIST", help="launchers whose jobs are found, as in slurm,torchrun (all; '' for none)")
    add("--unread-log", metavar="FILE", help="log for lines that were not understood (unread.log in --state-dir)")
    add("--alive-file", metavar="FILE", help="file that is touched every 5 s as long as the agent does not hang")
    add(
        "--interface",
        metavar="IF",
        action="append",
        help="the interface whose traffic is ordered; give it several times for several (none)",
    )
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
    add(
        "--nic-bands",
        metavar="WHOSE",
        help=f"with tls-one or tls-rr: whether jobs share bands: {', '.join(get_args(Sharing))} (shared)",
    )
    add("--rotate-seconds", metavar="S", type=float, help="with tls-rr: seconds until bands change (20)")
    add("--period", metavar="S", type=float, help="seconds between reports, at most (5)")
    add("--no-marking", action="store_const", const=False, dest="marking", help="do not mark this host's packets")
    add("--config", metavar="YAML", help="file with any of these options")
    return created
