"""``trainyard certs``: makes the certificates for TLS between controller, switches and hosts."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from controller.cli.output import CommandError

if TYPE_CHECKING:
    from controller.access.certificates.folder import Folder, Wanted

DAYS = 365
MAX_DAYS = 3650
OF_CONTROLLER, OF_SWITCH = "/etc/trainyard", "/etc/openvswitch"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_-]{0,252}")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "certs",
        help="make certificates for TLS between controller, switches and hosts",
        description="Make certificates for TLS in a folder, and print what to do with each. The first call makes the "
        "authorities and the controller's certificate; later calls add to them.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the files are, or will be")
    _add_names(parser, "--switch", "NAME", "make a certificate for this switch")
    _add_names(parser, "--host", "NAME", "make a certificate for this host")
    _add_names(
        parser, "--controller", "ADDRESS", "an IP address or DNS name of the controller, for its certificate (loopback)"
    )
    parser.add_argument(
        "--days", type=int, default=DAYS, metavar="N", help=f"how long the certificates are valid ({DAYS})"
    )
    parser.add_argument(
        "--replace", action="store_true", help="make new certificates and keys in the place of those that are there"
    )
    _add_names(parser, "--revoke", "NAME", "revoke all certificates that were made for this switch or host before")
    parser.set_defaults(run=run)


def _add_names(parser: argparse.ArgumentParser, option: str, metavar: str, text: str) -> None:
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=f"{text}; may be repeated")


def run(options: argparse.Namespace) -> int:
    """Revoke and make what the options name, and print what to do with the files."""
    _check(options)
    from controller.access.certificates.authority import utc_now
    from controller.access.certificates.contexts import CertificateError
    from controller.access.certificates.folder import Folder

    folder = Folder(options.folder)
    try:
        lists = folder.revoke(options.revoke, utc_now())
        wanted = tuple(_wanted(options, folder))
        made, replaced = folder.make(wanted, days=options.days, replace=options.replace, now=utc_now())
    except CertificateError as error:
        raise CommandError(str(error)) from None
    for word, paths in (("revoked", lists), ("made", made), ("replaced", replaced)):
        sys.stdout.writelines(f"{word:8}  {path}\n" for path in paths)
    if not (lists or made or replaced):
        sys.stdout.write(f"{folder.path} stays as it is: name a --switch, a --host or a --controller to make\n")
    address = options.controller[0] if options.controller else "CONTROLLER"
    is_new = folder.secret / "ca-controller.key" in made
    sys.stdout.writelines(_advice(folder, wanted, lists, address=address, is_new=is_new))
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise CommandError for a name or a number that no certificate can have."""
    for option, pattern in (("switch", _NAME), ("host", _NAME), ("controller", _ADDRESS)):
        for text in getattr(options, option):
            if not pattern.fullmatch(text):
                raise CommandError(f"--{option}: {text!r} is no name of letters, digits, dots, dashes, underscores", 2)
    if not 1 <= options.days <= MAX_DAYS:
        raise CommandError(f"--days: {options.days} is not from 1 to {MAX_DAYS}", 2)


def _wanted(options: argparse.Namespace, folder: Folder) -> Iterator[Wanted]:
    from controller.access.certificates.folder import Wanted

    if options.controller or not folder.authority_of("controller").exists():
        addresses = dict.fromkeys((*options.controller, "localhost", "127.0.0.1"))
        yield Wanted("controller", "controller", tuple(addresses))
    yield from (Wanted("switch", name) for name in dict.fromkeys(options.switch))
    yield from (Wanted("host", name) for name in dict.fromkeys(options.host))


def _advice(
    folder: Folder, wanted: Sequence[Wanted], lists: Sequence[Path], *, address: str, is_new: bool
) -> Iterator[str]:
    """Yields the lines that say which file belongs where, and what names it there."""
    authority = folder.authority_of("controller").name
    if is_new:
        yield f"\nKeep {folder.secret} here: whoever has its keys can make certificates. Copy it only to a backup.\n"
    for each in wanted:
        yield {"controller": _of_controller, "switch": _of_switch, "host": _of_host}[each.role](
            each, authority, address
        )
    yield from (_OF_LIST[path.stem.removeprefix("revoked-")].format(path.name) for path in lists)


_OF_LIST = {
    "switch": f"""
Controller: copy {{}} to {OF_CONTROLLER}, then run: trainyard reload
It ends the connections of revoked certificates, and keeps all others.
""",
    "host": f"""
Controller: copy {{}} to {OF_CONTROLLER}, write into its settings
  api:
    client_revoked: {OF_CONTROLLER}/revoked-host.pem
and run: trainyard reload
It ends the connections of revoked certificates, and keeps all others.
""",
}
"""What is to be done with the list of revoked certificates of each role, by the list's name."""


def _of_controller(each: Wanted, authority: str, _address: str) -> str:
    return f"""
Controller: copy {each.stem}.pem {each.stem}.key ca-switch.pem revoked-switch.pem to {OF_CONTROLLER},
readable by the controller's user alone, and write into its settings:
  openflow:
    host: 0.0.0.0
    tls:
      certificate: {OF_CONTROLLER}/{each.stem}.pem
      key: {OF_CONTROLLER}/{each.stem}.key
      authority: {OF_CONTROLLER}/ca-switch.pem
      revoked: {OF_CONTROLLER}/revoked-switch.pem
  api:
    tls_certificate: {OF_CONTROLLER}/{each.stem}.pem
    tls_key: {OF_CONTROLLER}/{each.stem}.key
  ovsdb: ssl:SWITCH:6640
Hosts, and whoever uses the commands, need {authority}.
A running controller reads files that were replaced again at: trainyard reload.
"""


def _of_switch(each: Wanted, authority: str, address: str) -> str:
    own = f"{OF_SWITCH}/{each.stem}"
    return f"""
Switch {each.name}: copy {each.stem}.pem {each.stem}.key {authority} to {OF_SWITCH}, and run there:
  ovs-vsctl set-ssl {own}.key {own}.pem {OF_SWITCH}/{authority}
  ovs-vsctl set-controller BRIDGE ssl:{_bracketed(address)}:6653
  ovs-vsctl set-manager pssl:6640
"""


def _of_host(each: Wanted, authority: str, address: str) -> str:
    own = f"{OF_CONTROLLER}/{each.stem}"
    return f"""
Host {each.name}: copy {each.stem}.pem {each.stem}.key {authority} to {OF_CONTROLLER}, and start its agent with
  host-reporter --controller https://{_bracketed(address)}:8080 --host {each.name} \\
    --ca-file {OF_CONTROLLER}/{authority} --certificate-file {own}.pem --key-file {own}.key
For this, copy ca-host.pem revoked-host.pem to {OF_CONTROLLER} on the controller, write into its settings
  api:
    client_authority: {OF_CONTROLLER}/ca-host.pem
    client_revoked: {OF_CONTROLLER}/revoked-host.pem
and run: trainyard reload
"""


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
