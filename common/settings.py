"""Settings: the only place that reads the environment (``FRONTAGE_*``).

An unknown name or an invalid value stops the start and names the variable. Every role accepts
every variable, so that one environment file serves all of them. `load` reads the environment itself, so pydantic alone
is enough: pydantic-settings took 30 ms of each process and added nothing.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from common.errors import OperatorError
from common.ip_addresses import parse_address

PREFIX = "FRONTAGE_"
IANA_RDAP_BOOTSTRAP = "https://data.iana.org/rdap/dns.json"
"""RFC 9224 §3: which RDAP server answers for which top-level domain."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostPort(NamedTuple):
    """Where to listen or whom to ask; `host` is an IP literal or a name, without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str, default_port: int | None = None) -> HostPort:
    """``host:port``, ``[v6]:port``, or just a host where there is a default port.

    Raises: ValueError.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or (port.endswith("]") and default_port is not None):
        host, port = text.strip(), ""
    if not port:
        if default_port is None:
            raise ValueError("expected host:port")
        port = str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("expected host:port with a port from 1 to 65535")
    return HostPort(host, int(port))


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _one_host_port(value: Any) -> Any:
    return parse_host_port(value) if isinstance(value, str) else value


def _one_host_port_or_off(value: Any) -> Any:
    return None if value == "off" else _one_host_port(value)


def _name_servers(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    servers = [parse_host_port(part, 53) for part in _split(value)]
    for server in servers:
        ipaddress.ip_address(server.host)  # a name would need a name server to be found
    return servers


def _web_address(value: Any) -> Any:
    if isinstance(value, str) and not (re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value) and _has_host(value)):
        raise ValueError("expected http:// or https:// and a host")
    return value


def _has_host(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, or a port beyond 65535
        return False


def _host_name(value: str) -> str:
    is_name = re.fullmatch(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?", value) and len(value) <= 254
    if not is_name or parse_address(value) is not None:
        raise ValueError("expected a host name")
    return value


def _web_address_or_off(value: Any) -> Any:
    return None if value == "off" else _web_address(value)


class ExternalAccount(NamedTuple):
    """What a CA that binds ACME accounts to its customers gave one of them (RFC 8555 §7.3.4)."""

    authority: str  # the directory's host, with its port where the address has one
    key_id: str
    mac_key: str  # base64url

    def __repr__(self) -> str:
        return f"<ExternalAccount {self.key_id} at {self.authority}>"


def _external_accounts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = [_EXTERNAL_ACCOUNT.fullmatch(part) for part in _split(value)]
    if None in found:
        raise ValueError("expected host=KEY-ID:MAC-KEY, and so on after commas")
    return [ExternalAccount(*match.groups()) for match in found if match]


def _directories(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    directories = _split(value)
    if not all(re.fullmatch(r"https://[^\s/?#@]+(/\S*)?", each) and _has_host(each) for each in directories):
        raise ValueError("expected https:// addresses of ACME directories")
    if len(set(directories)) < len(directories):
        raise ValueError("it names a directory twice")
    return directories


_HTTPS_PORT = 443
_EXTERNAL_ACCOUNT = re.compile(r"([^\s=]+)=([^\s:]+):([A-Za-z0-9_-]{16,})=*")

Directories = Annotated[tuple[str, ...], BeforeValidator(_directories)]
ExternalAccounts = Annotated[tuple[ExternalAccount, ...], BeforeValidator(_external_accounts)]
Listen = Annotated[HostPort, BeforeValidator(_one_host_port)]
ListenOrOff = Annotated[HostPort | None, BeforeValidator(_one_host_port_or_off)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_split)]
HostName = Annotated[str, AfterValidator(_host_name)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=2**53)]


def _provider_id(value: str) -> str:
    if not re.fullmatch(r"(?=.{4,63}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]", value):
        raise ValueError("expected a domain name of yours in lower case, of at most 63 characters")
    return value


def _access_log(value: str) -> str:
    if value not in ("off", "-") and not (value.startswith("/") and len(value) > 1):
        raise ValueError("expected off, - or an absolute path")
    return value


def _default_state_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/frontage")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "frontage"


class Settings(BaseModel):
    """One attribute a variable: ``edge_http`` is ``FRONTAGE_EDGE_HTTP``. Defaults say why where it is not plain."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Events that are logged on standard error: these and worse ones
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    # Truth and state
    database_url: str | None = Field(None, repr=False)  # none: the embedded Postgres of `up`
    state_dir: Path = Field(default_factory=_default_state_dir)
    master_key_file: Path | None = None  # none: `master.key` in the state directory

    # Edge
    edge_http: Listen = HostPort("127.0.0.1", 8080)
    edge_https: Listen = HostPort("127.0.0.1", 8443)
    edge_admin: Listen = HostPort("127.0.0.1", 9180)
    edge_https_redirect: bool = True
    edge_workers: Annotated[int, Field(ge=1, le=256)] = Field(default_factory=lambda: os.cpu_count() or 1)
    edge_worker_by_address: bool = False  # all connections of a client's address to one worker
    edge_trusted_proxies: Networks = ()

    # Edge: limits a request must keep (nginx and Apache stand at 8 KB a line and 100 fields; cookies make heads large)
    edge_max_head_bytes: Count = 32_768
    edge_max_fields: Count = 100
    edge_max_target_bytes: Count = 8_192
    edge_max_body_bytes: Count | None = None

    # Edge: what a worker keeps of uploads that applications have buffered, in files in the state directory; one
    # application has a quarter. Uploads without room are streamed.
    edge_upload_buffer_bytes: Count = 1 << 30

    # Edge: seconds without progress before we give up
    edge_head_timeout_seconds: Seconds = 10  # the whole head, from its first byte
    edge_idle_timeout_seconds: Seconds = 75  # between requests; as nginx, since browsers keep connections a minute
    edge_connect_timeout_seconds: Seconds = 5
    edge_origin_timeout_seconds: Seconds = 60  # until the response's head; as nginx
    edge_body_timeout_seconds: Seconds = 60
    edge_tunnel_timeout_seconds: Seconds = 3600  # WebSocket applications ping far more often; half-closed: a body's
    edge_drain_timeout_seconds: Seconds = 10
    edge_upgrade_drain_seconds: Seconds = 86_400  # for tunnels and uploads of the old version: a deployment a day

    # Edge: connections of clients, a worker. An idle one costs some 40 KB with TLS, so 400 MB; fewer if the process
    # may not open that many descriptors. One client, an IPv4 address or an IPv6 /64, may have a tenth of them: an
    # office or a carrier's NAT fits in, and no single client takes a whole edge.
    edge_max_connections: Count = 10_000
    edge_max_connections_per_address: Count = 1_000

    # Edge: connections to one origin, a worker
    edge_origin_connections: Count = 1024
    edge_origin_waiters: Count = 1024
    edge_origin_idle_seconds: Seconds = 4  # below the 5 s of Node's servers, so that we close first

    # Edge: an origin that so often in a row could not be connected to is left alone, for 1 s at first and up to this
    # long: one client may meet a restart, but none waits for the time-outs of an outage; and it is found again soon.
    edge_breaker_failures: Count = 5
    edge_breaker_max_pause_seconds: Seconds = 30

    # Edge: the access log: off, "-" (standard output) or an absolute path. Once moved away, the file is made anew.
    edge_access_log: Annotated[str, AfterValidator(_access_log)] = "off"
    edge_access_log_sample: Annotated[float, Field(ge=0, le=1)] = 1  # of the requests; statuses from 500 always
    edge_access_log_user_agent: bool = True

    # Whom we may dial
    allow_private_addresses: Networks = ()
    deny_addresses: Networks = ()  # never dialled, public or not; wins over what is allowed

    # API
    api_listen: Listen = HostPort("127.0.0.1", 8000)
    api_trusted_proxies: Networks = ()  # their X-Forwarded-For states the client's address
    # Requests a second, with bursts of ten seconds' worth: an enrolment of 10,000 domains takes under a minute. One
    # process answers some 500 a second.
    api_requests_per_second: Count = 200  # of an application
    api_requests_per_second_per_address: Count = 400
    api_admin: ListenOrOff = HostPort("127.0.0.1", 9181)
    public_url: Annotated[str | None, BeforeValidator(_web_address)] = None  # none: http:// and api_listen

    # DNS
    power_target: HostName = "power.frontage.localhost"
    ssl_target: HostName = "secure.frontage.localhost"
    service_servers: Annotated[tuple[IPAddress, ...], BeforeValidator(_split)] = (ipaddress.IPv4Address("127.0.0.1"),)
    dns_servers: Annotated[tuple[HostPort, ...], BeforeValidator(_name_servers)] = ()  # none: the system's

    # Registries: what the domain check learns of a domain's registration; off asks none
    rdap_bootstrap: Annotated[str | None, BeforeValidator(_web_address_or_off)] = IANA_RDAP_BOOTSTRAP

    # Domain Connect: our id as a service provider, a domain of the operator's; none: that way is closed
    domain_connect_provider_id: Annotated[str | None, AfterValidator(lambda value: value and _provider_id(value))] = (
        None
    )

    # Certificates
    issuer: Literal["internal", "acme"] = "internal"
    acme_directory: Directories = ()  # asked in this order
    acme_ca_file: Path | None = None  # trusted beside the system's authorities
    acme_email: str | None = None

    # What a CA allows, so that we stop before it has to stop us; the defaults are Let's Encrypt's. Certificates a
    # registered domain, and the very same names, count over 7 days, an account's orders over 3 hours, and
    # validations that failed over one.
    acme_orders_per_account: Count = 300
    acme_certificates_per_registered_domain: Count = 50
    acme_certificates_per_exact_set: Count = 5
    acme_failed_validations: Count = 5
    acme_eab: ExternalAccounts = Field(default=(), repr=False)
    acme_caa_identities: Annotated[tuple[str, ...], BeforeValidator(_split)] = ()  # where a CA states none

    # Monitor
    monitor_admin: ListenOrOff = HostPort("127.0.0.1", 9182)  # a second monitor on one machine needs another, or off
    check_interval_seconds: Seconds = 3600

    @field_validator("edge_trusted_proxies")
    @classmethod
    def _see_clients_addresses(cls, value: Networks, info: ValidationInfo) -> Networks:
        if value and info.data.get("edge_worker_by_address"):
            raise ValueError("with EDGE_WORKER_BY_ADDRESS=on all connections of a proxy would go to one worker")
        return value

    @property
    def listeners(self) -> tuple[HostPort, ...]:
        """Every address that a role of this installation listens on."""
        given = (self.edge_http, self.edge_https, self.edge_admin, self.api_listen, self.api_admin, self.monitor_admin)
        return tuple(listen for listen in given if listen is not None)

    @property
    def key_file(self) -> Path:
        return self.master_key_file or self.state_dir / "master.key"

    @property
    def base_url(self) -> str:
        return (self.public_url or f"http://{self.api_listen}").rstrip("/")

    def https_url(self, name: str) -> str:
        """Where a browser opens an enrolled name: at the edge's own port where all is on one machine, without a public
        URL; else at 443, whatever port the edge listens on behind a load balancer."""
        port = self.edge_https.port if self.public_url is None else _HTTPS_PORT
        return f"https://{name}/" if port == _HTTPS_PORT else f"https://{name}:{port}/"


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `environ`.

    Raises: `OperatorError` that names the variable and what is wrong with it.
    """
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    known = {PREFIX + field.upper(): field for field in Settings.model_fields}
    for name in given:
        if name not in known:
            raise OperatorError(f"{name} is not a setting of Frontage: remove it, or see the handbook, Settings")
    # An empty value means "not set", as in most environment files.
    values: dict[str, Any] = {known[name]: value for name, value in given.items() if value.strip()}
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else "settings"
        raise OperatorError(
            f"{PREFIX}{field.upper()} has a bad value: {first['msg'].removeprefix('Value error, ')}"
        ) from None
