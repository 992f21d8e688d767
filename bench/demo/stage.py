"""The stage: the lab and everything `frontage up` runs, as child processes, with an application to play with.

Used by the demo and by the benchmarks. The lab is started by its name as a program: the stage imports
neither a role nor the lab. What the children write to standard error goes to ``<state_dir>/demo.log``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.demo.running_demo import RunningDemo
from common import logs
from common.errors import OperatorError
from common.host_ports import HostPort
from common.settings import PREFIX, Settings, load

CNAME_TARGET = "apps.partner.localhost"
CUSTOMER = "customer.localhost"  # every name beneath it leads to the application
ELSEWHERE = "elsewhere.localhost"  # a customer's zone that leads to another server
ELSEWHERE_ADDRESS = "192.0.2.1"
PROVIDER_ZONE = "lab-domains.localhost"  # hosted by the lab's Domain Connect provider
POWERDNS_ZONE = "powerdns.localhost"  # hosted by the lab's PowerDNS
EXPIRED = "expired.localhost"  # a domain whose registration has expired
CHALLENGE_ZONE = "acme.frontage.localhost"  # in which domains delegate their challenge
PROVIDER_ID = "frontage.localhost"  # ours, at Domain Connect providers
APPLICATION_NAME = "Demo"
USER = "demo@frontage.localhost"
LOG_NAME = "demo.log"
_LAB_SECONDS = 60
_LAB_STOP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class LabAddresses:
    """The addresses of the lab.

    `origin`, `sink`, `zone` (where the DNS zone is changed), `partner` (the partner's own site) and `provider` (a
    Domain Connect provider) are base URLs, `dns` is host:port. `key`, as ``name:secret``, signs updates of the zone
    (RFC 2136). `powerdns`, as ``key@url``, opens PowerDNS' API; it is empty where PowerDNS is not installed. `rdap` is
    the URL of the registry's bootstrap file (RFC 9224).
    """

    origin: str
    dns: str
    zone: str
    sink: str
    partner: str
    key: str
    provider: str
    powerdns: str
    rdap: str


@dataclass(frozen=True, slots=True)
class Stage:
    """The running installation and its lab, and the application on it."""

    settings: Settings
    lab: LabAddresses
    application_id: str
    client_secret: str
    sign_in_link: str
    pass_output_on: Callable[[], None]
    """From now on, copy what the roles write to standard output, such as an access log, to ours."""

    @property
    def ca_file(self) -> Path:
        """Return the path of the internal issuer's root, for clients to trust."""
        return self.settings.state_dir / "ca" / "root.pem"

    @property
    def edge_https_host(self) -> str:
        """Return the host that a client on this machine connects to."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.settings.edge_https.host, self.settings.edge_https.host)

    def described(self, domain: str) -> RunningDemo:
        """Describe this demo, with the domain that it serves, for programs that look for it."""
        host = f"[{self.edge_https_host}]" if ":" in self.edge_https_host else self.edge_https_host
        return RunningDemo(
            domain=domain,
            edge_https=f"{host}:{self.settings.edge_https.port}",
            ca_file=str(self.ca_file),
            api=self.settings.base_url,
            application_id=self.application_id,
            client_secret=self.client_secret,
            origin=self.lab.origin,
        )


@contextlib.contextmanager
def state_directory(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield FRONTAGE_STATE_DIR where it is set, else a temporary directory that ends with the block."""
    if given := environ.get(PREFIX + "STATE_DIR"):
        yield Path(given).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="frontage-demo-", ignore_cleanup_errors=True) as fresh:
        yield Path(fresh)


@contextlib.asynccontextmanager
async def set_up(environ: Mapping[str, str], state_dir: Path) -> AsyncIterator[Stage]:
    """Run everything for the block. The user's own settings win over the stage's.

    Raises: `OperatorError`, with the reason a child gave.
    """
    from api.cli.up import database, require_database, roles, state_dir_held
    from common.processes import ChildFailed

    environ = {**environ, **_own_ports(environ)}
    settings = load(_environment(environ, state_dir, dns="127.0.0.1:53", rdap="off"))
    require_database(settings)
    argv = [sys.executable, "-P", "-m", "bench.lab", *_records(settings)]
    with state_dir_held(settings), _standard_error_in(state_dir / LOG_NAME), _running(argv) as process:
        logs.configure("demo", level=settings.log_level)
        try:
            async with database(settings) as postgres:  # the lab starts at the same time
                lab = await _addresses(process)
                child_environ = _environment(environ, state_dir, dns=lab.dns, rdap=lab.rdap)
                settings = load(child_environ)
                application_id, client_secret = await _ensure_application(settings, f"{lab.sink}/webhooks")
                await _open_partner_site(lab, settings.base_url, application_id, client_secret)
                await _join_domain_connect(lab, settings)
                link = await _sign_in_link(settings)
                async with roles(child_environ, postgres) as group:
                    yield Stage(settings, lab, application_id, client_secret, link, group.pass_output_on)
        except ChildFailed as error:
            raise OperatorError(_last_error_line(state_dir / LOG_NAME) or str(error)) from error


def _own_ports(environ: Mapping[str, str]) -> dict[str, str]:
    """Choose free ports in place of default ones that are in use: a second demo runs beside the first.

    The challenge zone, which is answered nowhere by default, gets one, too.
    """
    from api.cli.ports import LISTENERS, bind, free_instead_of_taken

    variables = {field: PREFIX + field.upper() for field in LISTENERS}
    defaults = {
        variable: getattr(Settings, field)
        for field, variable in variables.items()
        if not environ.get(variable) and getattr(Settings, field) is not None  # None: off by default
    }
    instead = free_instead_of_taken(defaults.values())
    chosen = {variable: str(instead[address]) for variable, address in defaults.items() if address in instead}
    if not environ.get(variables["edge_dns"]):
        with bind(HostPort("127.0.0.1", 0)) as free:
            chosen[variables["edge_dns"]] = f"127.0.0.1:{free.getsockname()[1]}"
    return chosen


def _environment(environ: Mapping[str, str], state_dir: Path, *, dns: str, rdap: str) -> dict[str, str]:
    stage = {
        "DNS_SERVERS": dns,
        "RDAP_BOOTSTRAP": rdap,
        "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        "SERVICE_SERVERS": "127.0.0.1",
        "DOMAIN_CONNECT_PROVIDER_ID": PROVIDER_ID,
        "ACME_DNS_ZONE": CHALLENGE_ZONE,
    }
    defaults = {PREFIX + name: value for name, value in stage.items()}
    own = {name: value for name, value in environ.items() if value or not name.startswith(PREFIX)}
    return defaults | own | {PREFIX + "STATE_DIR": str(state_dir)}


def _records(settings: Settings) -> Iterator[str]:
    for record in (
        f"*.{CUSTOMER} CNAME {CNAME_TARGET}",
        f"{CNAME_TARGET} CNAME {settings.power_target}",
        f"{settings.power_target} A {settings.service_servers[0]}",
        f"shop.{ELSEWHERE} A {ELSEWHERE_ADDRESS}",
        f"shop.{PROVIDER_ZONE} A {ELSEWHERE_ADDRESS}",
        f"shop.{EXPIRED} A {ELSEWHERE_ADDRESS}",
    ):
        yield "--record"
        yield record
    for domain in (CUSTOMER, ELSEWHERE, PROVIDER_ZONE, POWERDNS_ZONE):
        yield f"--registered={domain}"
    yield f"--expired={EXPIRED}"


@contextlib.contextmanager
def _running(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    from common.processes import spawn

    rest = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    process = spawn(argv, env=rest, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()  # it ends what it has started, and keeps nothing
        try:
            process.communicate(timeout=_LAB_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


async def _addresses(process: subprocess.Popen[bytes]) -> LabAddresses:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_LAB_SECONDS):
            line = await asyncio.to_thread(process.stdout.readline)
        return LabAddresses(**json.loads(line))
    except (TimeoutError, ValueError, TypeError) as error:
        raise OperatorError("the lab did not start: is the `frontage` distribution installed whole?") from error


async def _ensure_application(settings: Settings, webhook_url: str) -> tuple[str, str]:
    """Return the id and client secret of the demo's application.

    It is found by its cname target on a kept state directory, else created.
    """
    from api.rules import application_tokens as minting
    from common.db import applications as db
    from common.db.address import resolve_dsn
    from common.db.application_secrets import client_secret_identity, webhook_secret_identity
    from common.db.pool import open_pool
    from common.secrets import load_keyring

    keyring = load_keyring(settings.key_file)
    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage demo") as database,
        database.transaction() as connection,
    ):
        for application in await db.list_applications(connection):
            if application.cname_target == CNAME_TARGET:
                await db.update_application(connection, application.id, webhook_url=webhook_url)
                secret = keyring.open(application.client_secret, client_secret_identity(application.id))
                return application.id, secret.decode()
        new_id, client_secret = minting.mint_id(), minting.mint_client_secret()
        webhook_secret = minting.mint_webhook_secret()
        await db.create_application(
            connection,
            db.NewApplication(
                id=new_id,
                name=APPLICATION_NAME,
                cname_target=CNAME_TARGET,
                client_secret=keyring.seal(client_secret.encode(), client_secret_identity(new_id)),
                webhook_secret=keyring.seal(webhook_secret.encode(), webhook_secret_identity(new_id)),
                webhook_url=webhook_url,
            ),
        )
    return new_id, client_secret


async def _sign_in_link(settings: Settings) -> str:
    """Create a link that signs the demo's operator in to the dashboard, once."""
    from common import accounts
    from common.db import sessions, users
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool

    token = accounts.mint_random_token()
    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage demo") as database,
        database.transaction() as connection,
    ):
        user = await users.find_user(connection, USER) or await users.create_user(connection, USER, is_operator=True)
        await sessions.create_link(connection, accounts.hash_token(token), user.id, sessions.LINK_LIFETIME)
    return accounts.sign_in_url(settings.base_url, token)


async def _open_partner_site(lab: LabAddresses, api: str, application_id: str, client_secret: str) -> None:
    """Send the partner's site the settings it works with.

    Raises: `OperatorError`.
    """
    known = {"api": api, "applicationId": application_id, "clientSecret": client_secret}
    known |= {"origin": lab.origin, "dns": lab.dns, "key": lab.key, "powerdns": lab.powerdns}
    await _put(f"{lab.partner}/settings", json.dumps(known))


async def _join_domain_connect(lab: LabAddresses, settings: Settings) -> None:
    """Publish the public key and hand the templates to the provider, as an operator does.

    Raises: `OperatorError`.
    """
    from urllib.parse import urlsplit

    from api.cli.domain_connect import ensure_key
    from common.connect.domain_connect.templates import SERVICES, for_installation

    provider_id = settings.domain_connect_provider_id or PROVIDER_ID
    await _put(f"{lab.zone}/", f'_domainconnect.{PROVIDER_ZONE} TXT "{urlsplit(lab.provider).netloc}"')
    for label, texts, _ in await ensure_key(settings):
        for text in texts:
            await _put(f"{lab.zone}/", f'{label}.{provider_id} TXT "{text}"')
    host = urlsplit(settings.base_url).hostname or ""
    templates = [for_installation(service, provider_id, APPLICATION_NAME, host) for service in SERVICES]
    await _put(f"{lab.provider}/templates", json.dumps(templates))


async def _put(url: str, body: str) -> None:
    """Send the lab a PUT request.

    Raises: `OperatorError`.
    """
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=_LAB_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
            session.put(url, data=body, headers={"Content-Type": "application/json"}),
        ):
            pass
    except (aiohttp.ClientError, TimeoutError) as error:
        raise OperatorError(f"the lab did not take {url}: {error}") from error


# Output of children ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _standard_error_in(path: Path) -> Iterator[None]:
    """Send standard error to a file for the block, ours and the children's: logs would tear up what the demo prints."""
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise OperatorError(
            f"cannot write {path} ({error.strerror}): make it writable, or set FRONTAGE_STATE_DIR to another directory"
        ) from error
    own = os.dup(2)
    os.dup2(log, 2)
    os.close(log)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)


def _last_error_line(log: Path) -> str:
    """Return the last line that a child wrote for people (``frontage role: reason``)."""
    errors = [line for line in log.read_text("utf-8", "replace").splitlines() if line.startswith("frontage ")]
    return errors[-1].partition(": ")[2] if errors else ""
