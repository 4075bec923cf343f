"""The sections of the settings: the API, the audit, OpenFlow, floors, hosts and links."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from controller.access.certificates.contexts import Certificates, check_authority, check_own, check_revoked
from controller.config.values import (
    AddressRange,
    Listening,
    Section,
    Share,
    TcpPort,
    as_optional_section,
    is_loopback,
)
from controller.documents.regular_file import check_regular
from controller.wire import Name
from controller.wire.addresses import Dpid, PortNumber, Rate

MIN_TOKEN = 8


class Oidc(Section):
    """An OpenID Connect provider whose bearer tokens the API accepts."""

    issuer: Annotated[str, Field(min_length=1, max_length=1024)]
    """The issuer (claim iss) of the tokens, exactly as the provider writes it."""
    audience: Annotated[str, Field(min_length=1, max_length=1024)]
    """The audience (claim aud) that a token must name: what this controller is called at the provider."""
    keys: Annotated[str, Field(min_length=1, max_length=2048)]
    """The provider's public keys (JSON Web Key Set): an https URL, or the path of a file. They are read again each
    hour, and where a token names an unknown key."""
    roles: Annotated[dict[str, Literal["operator", "viewer", "tenant"]], Field(min_length=1, max_length=64)]
    """Maps values of the role claim to roles. If a token has several of them, the first one here counts."""
    role_claim: Annotated[str, Field(min_length=1, max_length=256)] = "roles"
    """The claim that gives the role: a text or a list of texts. Dots lead into nested claims: realm_access.roles."""
    user_claim: Annotated[str, Field(min_length=1, max_length=256)] = "sub"
    """The claim that names the caller. For the role tenant it is the user whose jobs the caller may see and change."""

    @field_validator("keys")
    @classmethod
    def _keys_cannot_be_exchanged_on_their_way(cls, keys: str) -> str:
        if keys.startswith("http://") and not is_loopback(urlsplit(keys).hostname or ""):
            raise ValueError("keys over http could be exchanged on their way; use https, or the path of a file")
        if not keys.startswith(("http://", "https://")):
            try:
                check_regular(Path(keys))
            except OSError as error:
                raise ValueError(f"{keys} cannot be read: {error.strerror}") from error
        return keys


class Api(Section):
    """Where the REST API listens, and who may use it."""

    host: Listening = "127.0.0.1"
    """The IP address or host name to listen on. Other addresses than loopback need a token."""
    port: TcpPort = 8080
    """The TCP port to listen on. 0 takes a free port."""
    token: SecretStr | None = None
    """The token of operators: at least 8 printable ASCII characters without spaces."""
    host_tokens: Annotated[dict[Name, SecretStr], Field(default_factory=dict)]
    """A token for each host's agent, by the host's name. All tokens must differ. They need api.token."""
    host_jobs: Literal["whole", "own"] = "whole"
    """What a host's own token may register. whole: any job that the host takes part in, with its traffic between other
    hosts. own: only traffic that has the host at one end, and ports that the host itself listens on."""
    host_stages: Literal["own", "any", "none"] = "own"
    """The stages into which a host's token may put the jobs that it registers. own: stages that only its own jobs fill,
    so that they go before no other jobs. any: all stages, for studies on several hosts. none: no stage."""
    tls_certificate: Annotated[Path, Field(strict=False)] | None = None
    """The PEM file of the certificate for HTTPS. It needs tls_key."""
    tls_key: Annotated[Path, Field(strict=False)] | None = None
    """The PEM file of the certificate's private key, without a password."""
    tokens_file: Annotated[Path, Field(strict=False)] | None = None
    """The file of named tokens, as hashes that trainyard token makes. It is read again with the settings."""
    oidc: Annotated[Oidc | None, BeforeValidator(as_optional_section)] = None
    """An OpenID Connect provider whose bearer tokens are accepted."""
    client_authority: Annotated[Path, Field(strict=False)] | None = None
    """The PEM file of the authority that signs client certificates, which stand in the place of tokens. It needs
    tls_certificate. A certificate is of the host whose name is among its DNS names, or of the entry of tokens_file that
    has its common name."""
    client_revoked: Annotated[Path, Field(strict=False)] | None = None
    """The lists of revoked client certificates (CRL), one of each authority. Without it none is revoked. It needs
    client_authority."""
    metrics_host: Listening = "127.0.0.1"
    """The IP address or host name to listen on for /metrics, /healthz and /readyz, without a token and without TLS."""
    metrics_port: TcpPort | None = None
    """The TCP port for /metrics, /healthz and /readyz without a token. Without it these calls are at api.port alone,
    where /metrics needs a token."""

    @property
    def is_readable(self) -> bool:
        """Whether others can read the tokens on their way."""
        return self.tls_certificate is None and not is_loopback(self.host)

    @property
    def is_guarded(self) -> bool:
        """Whether callers have to prove who they are."""
        return any((self.token, self.tokens_file, self.oidc, self.client_authority))

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

    @field_validator("tls_certificate", "tls_key", "tokens_file", "client_authority")
    @classmethod
    def _file_can_be_read(cls, path: Path | None) -> Path | None:
        if path is not None:
            try:
                check_regular(path)
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

    @field_validator("client_authority")
    @classmethod
    def _authority_has_tls(cls, authority: Path | None, info: ValidationInfo) -> Path | None:
        if authority is None:
            return None
        if "tls_certificate" in info.data and info.data["tls_certificate"] is None:
            raise ValueError("client certificates need https; set api.tls_certificate and api.tls_key too")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(authority)
        except (OSError, ValueError) as error:
            raise ValueError(f"{authority} holds no certificates in PEM: {error}") from error
        return authority

    @field_validator("client_revoked")
    @classmethod
    def _revoked_has_an_authority(cls, revoked: Path | None, info: ValidationInfo) -> Path | None:
        if revoked is not None:
            if "client_authority" in info.data and info.data["client_authority"] is None:
                raise ValueError("the lists are of client certificates; set api.client_authority too")
            check_revoked(revoked)
        return revoked


def _check_token(token: SecretStr) -> None:
    text = token.get_secret_value()
    if len(text) < MIN_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"a token has at least {MIN_TOKEN} printable ASCII characters without spaces, "
            "such as the output of: openssl rand -hex 16"
        )


class Tls(Section):
    """The PEM files with which the controller proves who it is, and checks who its peers are. ``trainyard certs`` makes
    them. A reload makes the controller read them again."""

    certificate: Annotated[Path, Field(strict=False)]
    """The controller's certificate."""
    key: Annotated[Path, Field(strict=False)]
    """The private key of the certificate, without a password."""
    authority: Annotated[Path, Field(strict=False)]
    """The certificates of the authorities that sign the switches' certificates. A peer that shows no certificate of one
    of them is refused."""
    revoked: Annotated[Path, Field(strict=False)] | None = None
    """The lists of revoked certificates (CRL), one of each authority. Without it no certificate is revoked."""

    @property
    def certificates(self) -> Certificates:
        """Returns the files."""
        return Certificates(self.certificate, self.key, self.authority, self.revoked)

    @field_validator("key")
    @classmethod
    def _key_is_of_the_certificate(cls, key: Path, info: ValidationInfo) -> Path:
        if "certificate" in info.data:
            check_own(info.data["certificate"], key)
        return key

    @field_validator("authority")
    @classmethod
    def _authority_can_be_read(cls, authority: Path) -> Path:
        check_authority(authority)
        return authority

    @field_validator("revoked")
    @classmethod
    def _revoked_can_be_read(cls, revoked: Path | None) -> Path | None:
        if revoked is not None:
            check_revoked(revoked)
        return revoked


class OpenFlow(Section):
    """Where switches connect."""

    host: Listening = "127.0.0.1"
    """The IP address or host name to listen on. Other addresses than loopback need tls, or insecure: true."""
    port: TcpPort = 6653
    """The TCP port to listen on. 0 takes a free port."""
    switches: Annotated[tuple[AddressRange, ...], Field(strict=False, max_length=1024)] = ()
    """The addresses and networks that may connect as a switch, such as 10.0.0.2 or 10.0.1.0/24. Without any, every
    address may."""
    tls: Tls | None = None
    """The files for TLS. With them a switch must show a certificate, and OpenFlow without TLS is refused."""
    insecure: bool = False
    """Whether to accept switches without TLS on an address that others can reach. Whoever reaches the port may then
    pass for a switch."""

    @property
    def is_exposed(self) -> bool:
        """Returns whether others can reach the port and need no certificate."""
        return self.tls is None and not is_loopback(self.host)


class Audit(Section):
    """The record of who has changed what."""

    file: Annotated[Path, Field(strict=False)] | None = None
    """The file that the records are appended to. Without it the newest 1,000 are in memory only."""
    max_bytes: Annotated[int, Field(ge=4096, le=2**40)] = 16 * 2**20
    """Begin a new file before this one gets larger. The older one gets the number of its first record as its ending."""
    keep: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """How many older files stay; older ones are deleted. Without it all stay."""

    @field_validator("file")
    @classmethod
    def _file_can_be_one(cls, path: Path | None) -> Path | None:
        try:
            if path is not None and (path == Path() or path.is_dir()):
                raise ValueError("it names a folder; it is a file, such as /var/lib/trainyard/audit.jsonl")
        except OSError as error:
            raise ValueError(f"it cannot be a file's name: {error.strerror}") from error
        return path


class Floors(Section):
    """Shares of a link that each job class, and all other traffic, keep when the classes before them are busy. The sum
    over all classes is at most 1."""

    job_class: Share = 0.01
    """The share of each class of jobs."""
    other: Share = 0.10
    """The share of all traffic that belongs to no job."""


class LinkEntry(Section):
    """A cable between two switches."""

    a: Dpid
    """The datapath id of the switch at one end."""
    a_port: PortNumber
    """The OpenFlow port number at switch a."""
    b: Dpid
    """The datapath id of the switch at the other end."""
    b_port: PortNumber
    """The OpenFlow port number at switch b."""
    rate_bps: Rate | None = None
    """The rate of the link in each direction, in bit/s. Without it the queues take the speed of the ports, and the link
    is taken for one that is never full."""

    @field_validator("b")
    @classmethod
    def _joins_two_switches(cls, b: int, info: ValidationInfo) -> int:
        if b == info.data.get("a"):
            raise ValueError(f"switch {b:#x} is at both ends; a link joins two switches")
        return b
