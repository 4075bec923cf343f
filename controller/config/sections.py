"""The sections of the settings: the API, OpenFlow, floors, hosts and links."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from controller.config.values import (
    AddressRange,
    Dpid,
    HostAddress,
    Listening,
    PortNumber,
    Rate,
    Section,
    Share,
    TcpPort,
)
from controller.wire import Name

MIN_TOKEN = 8


class Api(Section):
    """Where the REST API listens, and who may use it. ``port`` 0 takes a free one.

    ``host_jobs``: what a host's own token may register. whole: any job that the host takes part in, with its traffic
    between other hosts. own: only traffic that has the host at one end, and ports that it listens on itself.
    ``host_stages``: the stages into which the token may put the jobs that it registers. own: stages that only its own
    jobs fill, so that they go before no other jobs. any: all stages, for studies on several hosts. none: none.
    """

    host: Listening = "127.0.0.1"
    port: TcpPort = 8080
    token: SecretStr | None = None
    host_tokens: Annotated[dict[Name, SecretStr], Field(default_factory=dict)]
    host_jobs: Literal["whole", "own"] = "whole"
    host_stages: Literal["own", "any", "none"] = "own"
    tls_certificate: Annotated[Path, Field(strict=False)] | None = None
    tls_key: Annotated[Path, Field(strict=False)] | None = None

    @field_validator("token")
    @classmethod
    def _token_is_long(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None:
            _check_token(token)
        return token

    @field_validator("host_tokens")
    @classmethod
    def _host_tokens_differ(cls, tokens: Mapping[str, SecretStr], info: ValidationInfo) -> Mapping[str, SecretStr]:
        general = info.data.get("token")
        if tokens and "token" in info.data and general is None:
            raise ValueError("hosts have tokens but the API has none; set api.token too")
        seen = {general.get_secret_value(): "api.token"} if general else {}
        for host, token in tokens.items():
            _check_token(token)
            if other := seen.get(token.get_secret_value()):
                raise ValueError(f"{host} has the token of {other}; each needs its own")
            seen[token.get_secret_value()] = host
        return tokens

    @field_validator("tls_certificate", "tls_key")
    @classmethod
    def _file_can_be_read(cls, path: Path | None) -> Path | None:
        if path is not None:
            try:
                path.open("rb").close()
            except OSError as error:
                raise ValueError(f"{path} cannot be read: {error.strerror}") from error
        return path

    @field_validator("tls_key")
    @classmethod
    def _both_or_none(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if "tls_certificate" in info.data and info.data["tls_certificate"] is None and key is not None:
            raise ValueError("a key needs its certificate; set api.tls_certificate too")
        certificate = info.data.get("tls_certificate")
        if key is not None and certificate is not None:
            try:
                # An empty password: where the key has one, nobody must be asked at a terminal.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"the certificate {certificate} and the key {key} cannot be used together: {error}; "
                    "both are PEM files, the key without a password"
                ) from error
        return key


def _check_token(token: SecretStr) -> None:
    text = token.get_secret_value()
    if len(text) < MIN_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"a token has at least {MIN_TOKEN} printable ASCII characters without spaces, "
            "such as the output of: openssl rand -hex 16"
        )


class OpenFlow(Section):
    """Where switches connect. ``switches``: the addresses that may connect as a switch; none: any address may."""

    host: Listening = "127.0.0.1"
    port: TcpPort = 6653
    switches: Annotated[tuple[AddressRange, ...], Field(strict=False, max_length=1024)] = ()


class Floors(Section):
    """Shares of a link that each job class, and all other traffic, keep when the classes before them are busy."""

    job_class: Share = 0.01
    other: Share = 0.10


class HostEntry(Section):
    """A server, its link, and the switch port that it is connected to."""

    name: Name
    address: HostAddress
    ingress_bps: Rate = 1e9
    egress_bps: Rate = 1e9
    switch: Dpid | None = None
    port: PortNumber | None = None

    @field_validator("port")
    @classmethod
    def _port_has_a_switch(cls, port: int | None, info: ValidationInfo) -> int | None:
        if port is not None and "switch" in info.data and info.data["switch"] is None:
            raise ValueError("a port needs its switch; set switch too")
        return port


class LinkEntry(Section):
    """A cable between two switches, by datapath id and port number; ``rate_bps`` of None: the ports' own speed."""

    a: Dpid
    a_port: PortNumber
    b: Dpid
    b_port: PortNumber
    rate_bps: Rate | None = None

    @field_validator("b")
    @classmethod
    def _joins_two_switches(cls, b: int, info: ValidationInfo) -> int:
        if b == info.data.get("a"):
            raise ValueError(f"switch {b:#x} is at both ends; a link joins two switches")
        return b
