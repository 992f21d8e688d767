"""Settings: the only place that reads the environment (``FRONTAGE_*``).

An unknown name or an invalid value stops the start and names the variable. Every role accepts
every variable, so that one environment file serves all of them. A setting's kind (`common.setting_values`) brings the
function that reads its text. No library of models is used: to import one took a third of the time in which a worker
starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, get_args, get_type_hints

from common.errors import OperatorError
from common.host_ports import HostPort
from common.setting_values import (
    AccessLog,
    Addresses,
    Count,
    Delay,
    Directories,
    DnsUpdate,
    ExternalAccounts,
    File,
    HostName,
    Issuer,
    Listen,
    ListenOrOff,
    LogFormat,
    LogLevel,
    NameServers,
    Networks,
    OidcGrants,
    OidcIssuer,
    ProfileName,
    ProviderId,
    Reader,
    Seconds,
    SecondsOrOff,
    Share,
    Switch,
    Text,
    Texts,
    WebAddress,
    WebAddressOrOff,
    Workers,
)

PREFIX = "FRONTAGE_"
IANA_RDAP_BOOTSTRAP = "https://data.iana.org/rdap/dns.json"
"""RFC 9224 §3: which RDAP server answers for which top-level domain."""

_HTTPS_PORT = 443


def _default_state_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/frontage")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "frontage"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One attribute a variable: ``edge_http`` is ``FRONTAGE_EDGE_HTTP``.

    Defaults say why where it is not plain; what `repr` does not show is secret.
    """

    # Events that are logged on standard error: these and worse ones
    log_level: LogLevel = "info"

    # Truth and state
    database_url: Text | None = field(default=None, repr=False)  # none: the embedded Postgres of `up`
    feed_url: Text | None = field(default=None, repr=False)  # a standby that edges follow; none: database_url
    state_dir: File = field(default_factory=_default_state_dir)
    master_key_file: File | None = None  # none: `master.key` in the state directory

    # Edge
    edge_http: Listen = HostPort("127.0.0.1", 8080)
    edge_https: Listen = HostPort("127.0.0.1", 8443)
    edge_admin: Listen = HostPort("127.0.0.1", 9180)
    edge_https_redirect: Switch = True
    edge_dns: ListenOrOff = None  # where the delegated challenge zone is answered, over UDP and TCP
    edge_http2: Switch = True  # HTTP/2 for clients over TLS that offer it; off: HTTP/1.1 for all
    edge_workers: Workers = field(default_factory=lambda: os.cpu_count() or 1)
    edge_worker_by_address: Switch = False  # all connections of a client's address to one worker
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

    # Edge: what a balancer sees. Both are off: where none asks `/readyz`, a delay only makes a stop longer,
    # and an edge that is cut off from Postgres serves well from its copy.
    edge_shutdown_delay_seconds: Delay = 0  # between SIGTERM and the drain: not ready, and accepting
    edge_ready_max_age_seconds: SecondsOrOff = None

    # Edge: connections of clients, a worker. An idle one costs some 40 KB with TLS, so 400 MB; fewer if the process
    # may not open that many descriptors. One client, an IPv4 address or an IPv6 /64, may have a tenth of them: an
    # office or a carrier's NAT fits in, and no single client takes a whole edge.
    edge_max_connections: Count = 10_000
    edge_max_connections_per_address: Count = 1_000

    # Edge: connections to one origin, a worker
    edge_origin_connections: Count = 1024
    edge_origin_waiters: Count = 1024
    edge_origin_idle_seconds: Seconds = 4  # below the 5 s of Node's servers, so that we close first

    # Edge: an origin that so often in a row could not be connected to is left alone for 1 s, and after time-outs up to
    # this long: one client may meet a restart, but none waits for the time-outs of an outage; and it is found again
    # soon.
    edge_breaker_failures: Count = 5
    edge_breaker_max_pause_seconds: Seconds = 30

    # Edge: the access log: off, "-" (standard output) or an absolute path. Once moved away, the file is made anew.
    edge_access_log: AccessLog = "off"
    edge_access_log_sample: Share = 1  # of the requests; statuses from 500 always
    edge_access_log_user_agent: Switch = True
    edge_access_log_format: LogFormat = "json"  # or nginx's "combined"
    edge_request_ids: Switch = False  # all responses state their request's id, and all origins get it

    # Spans for a collector of OpenTelemetry, over OTLP/HTTP
    otlp_endpoint: WebAddress | None = None
    edge_trace_sample: Share = 0.01  # of the requests that are forwarded

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
    public_url: WebAddress | None = None  # none: http:// and api_listen

    # Signing in to the dashboard by an OpenID Connect provider; none: that way is closed
    oidc_issuer: OidcIssuer | None = None
    oidc_client_id: Text | None = None
    oidc_client_secret_file: File | None = None
    oidc_claim: Text = "groups"  # whose values `oidc_roles` are of
    oidc_roles: OidcGrants = ()

    # DNS
    power_target: HostName = "power.frontage.localhost"
    ssl_target: HostName = "secure.frontage.localhost"
    service_servers: Addresses = (IPv4Address("127.0.0.1"),)
    dns_servers: NameServers = ()  # none: the system's

    # Registries: what the domain check learns of a domain's registration; off asks none
    rdap_bootstrap: WebAddressOrOff = IANA_RDAP_BOOTSTRAP

    # Domain Connect: our id as a service provider, a domain of the operator's; none: that way is closed
    domain_connect_provider_id: ProviderId | None = None

    # Certificates
    issuer: Issuer = "internal"
    acme_directory: Directories = ()  # asked in this order
    acme_ca_file: File | None = None  # trusted beside the system's authorities
    acme_email: Text | None = None
    acme_profile: ProfileName | None = None  # of a certificate, where the CA offers it

    # What a CA allows, so that we stop before it has to stop us; the defaults are Let's Encrypt's. Certificates a
    # registered domain, and the very same names, count over 7 days, an account's orders over 3 hours, and
    # validations that failed over one.
    acme_orders_per_account: Count = 300
    acme_certificates_per_registered_domain: Count = 50
    acme_certificates_per_exact_set: Count = 5
    acme_failed_validations: Count = 5
    acme_eab: ExternalAccounts = field(default=(), repr=False)
    acme_caa_identities: Texts = ()  # where a CA states none
    acme_dns_zone: HostName | None = None  # the zone delegated to the edges, in which domains delegate their challenge
    acme_dns_update: DnsUpdate | None = field(default=None, repr=False)  # a name server that has that zone instead

    # Monitor
    monitor_admin: ListenOrOff = HostPort("127.0.0.1", 9182)  # a second monitor on one machine needs another, or off
    check_interval_seconds: Seconds = 3600

    @property
    def listeners(self) -> tuple[HostPort, ...]:
        """The addresses that the roles of this installation listen on."""
        given = (
            *(self.edge_http, self.edge_https, self.edge_admin, self.edge_dns),
            *(self.api_listen, self.api_admin, self.monitor_admin),
        )
        return tuple(listen for listen in given if listen is not None)

    @property
    def key_file(self) -> Path:
        """The path of the master key file."""
        return self.master_key_file or self.state_dir / "master.key"

    @property
    def base_url(self) -> str:
        """The address of the API and the dashboard, as clients see it, without a slash at its end."""
        return (self.public_url or f"http://{self.api_listen}").rstrip("/")

    def https_url(self, name: str) -> str:
        """Return the address at which a browser opens an enrolled name.

        The port is the edge's own where all is on one machine, without a public URL; else 443, whatever port
        the edge listens on behind a load balancer.
        """
        port = self.edge_https.port if self.public_url is None else _HTTPS_PORT
        return f"https://{name}/" if port == _HTTPS_PORT else f"https://{name}:{port}/"


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from `environ`.

    Raises: `OperatorError` that names the variable and what is wrong with it.
    """
    kinds = {_variable(name): (name, kind) for name, kind in get_type_hints(Settings, include_extras=True).items()}
    values: dict[str, Any] = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX):
            continue
        if variable not in kinds:
            raise OperatorError(f"{variable} is not a setting of Frontage: remove it, or see the handbook, Settings")
        name, kind = kinds[variable]
        if text.strip():  # an empty value means "not set", as in most environment files
            try:
                values[name] = _reader_of(kind)(text)
            except ValueError as error:
                raise _bad_value(name, str(error)) from None
    settings = Settings(**values)
    if settings.edge_trusted_proxies and settings.edge_worker_by_address:
        reason = "with EDGE_WORKER_BY_ADDRESS=on all connections of a proxy would go to one worker"
        raise _bad_value("edge_trusted_proxies", reason)
    if settings.edge_dns is not None and settings.acme_dns_zone is None:
        raise _bad_value("edge_dns", "ACME_DNS_ZONE names the zone to answer, and is not set")
    if settings.acme_dns_update is not None and settings.acme_dns_zone is None:
        raise _bad_value("acme_dns_update", "ACME_DNS_ZONE names the zone to write, and is not set")
    if settings.oidc_issuer and not (settings.oidc_client_id and settings.oidc_client_secret_file):
        raise _bad_value("oidc_issuer", "OIDC_CLIENT_ID and OIDC_CLIENT_SECRET_FILE are needed too")
    return settings


def without_secrets(settings: Settings) -> dict[str, str]:
    """Return the variables from which `load` makes these settings again on any machine, without the secret ones."""
    texts = {}
    for attribute in fields(settings):
        value = getattr(settings, attribute.name)
        if attribute.repr and value != attribute.default:
            parts = value if isinstance(value, tuple) and not isinstance(value, HostPort) else (value,)
            texts[_variable(attribute.name)] = "off" if value is None else ",".join(map(str, parts))
    return texts


def _reader_of(kind: Any) -> Reader[Any]:
    """Return the reader of ``Annotated[type, reader]``, or of such a kind ``| None``."""
    reader: Reader[Any] = next(each for each in (kind, *get_args(kind)) if hasattr(each, "__metadata__")).__metadata__[
        0
    ]
    return reader


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _bad_value(name: str, reason: str) -> OperatorError:
    return OperatorError(f"{_variable(name)} has a bad value: {reason}")
