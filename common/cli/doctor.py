"""`frontage doctor`: looks at everything an installation needs and says what to do. Changes nothing.

Each check is a function from settings to findings; it must answer, whatever is broken, within a few seconds.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import ssl
import stat
import urllib.error
import urllib.request
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from common.errors import FrontageError, OperatorError

if TYPE_CHECKING:
    from common.db.session import Connection
    from common.settings import HostPort, Settings

_ANSWER_SECONDS = 2.0
_OLDEST_POSTGRES = 14
_OLD_REPLICA_SECONDS = 60


class State(Enum):
    OK = "[green]ok[/green]"
    NOTE = "[yellow]note[/yellow]"
    BROKEN = "[red]broken[/red]"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check saw; for what is not ok, `says` tells what to do."""

    subject: str
    state: State
    says: str


def doctor() -> None:
    """Check this installation and say what to do; exits 1 when something is broken."""
    findings = examine()
    _show(findings)
    if any(finding.state is State.BROKEN for finding in findings):
        raise typer.Exit(1)


def examine() -> list[Finding]:
    from common.settings import load

    try:
        settings = load(os.environ)
    except OperatorError as error:
        return [Finding("settings", State.BROKEN, str(error))]
    return [Finding("settings", State.OK, "every FRONTAGE_ variable makes sense"), *_look_around(settings)]


def _look_around(settings: Settings) -> Iterator[Finding]:
    is_up = _is_up(settings.state_dir)
    yield _state_dir(settings)
    yield _master_key(settings)
    yield from _guarded("database", _database(settings))
    yield _listeners(settings, is_up)
    yield from _guarded("DNS servers", _name_servers(settings))
    yield _targets(settings)
    yield from _issuers(settings)
    yield _replica(settings)


def _guarded(subject: str, check: Awaitable[Iterable[Finding]]) -> Iterable[Finding]:
    """A check's findings, or its failure as one."""

    async def run() -> Iterable[Finding]:
        return await check

    try:
        return asyncio.run(run())
    except FrontageError as error:
        return [Finding(subject, State.BROKEN, str(error))]


# The machine ---------------------------------------------------------------------------------------------


def _is_up(state_dir: Path) -> bool:
    from common.postgres.locks import is_held

    try:
        return is_held(state_dir / "up.lock")
    except OSError:
        return False


def _state_dir(settings: Settings) -> Finding:
    directory = settings.state_dir
    subject = "state directory"
    if not directory.exists():
        return Finding(
            subject, State.NOTE, f"{directory} does not exist yet: `frontage up` or `frontage migrate` makes it"
        )
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return Finding(subject, State.BROKEN, f"{directory} is not yours to write: run as its owner, or choose another")
    return Finding(subject, State.OK, str(directory))


def _master_key(settings: Settings) -> Finding:
    from common.secrets import load_keyring

    path = settings.key_file
    try:
        load_keyring(path)
        mode = stat.S_IMODE(path.stat().st_mode)
    except (OperatorError, OSError) as error:
        state = State.NOTE if not _exists(path) else State.BROKEN
        return Finding("master key", state, str(error))
    if mode & 0o077:
        return Finding("master key", State.BROKEN, f"others can read {path}: run `chmod 600 {path}`")
    return Finding("master key", State.OK, f"{path}: keep a copy of it apart from the database's backups")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True


def _listeners(settings: Settings, is_up: bool) -> Finding:
    return _listeners_of_up(settings) if is_up else _listeners_of_roles(settings)


def _listeners_of_up(settings: Settings) -> Finding:
    from common.cli.ports import LISTENERS
    from common.settings import PREFIX

    listeners = {PREFIX + field.upper(): getattr(settings, field) for field in LISTENERS}
    silent = [name for name, address in listeners.items() if address is not None and not _accepts(address)]
    if silent:
        return Finding("ports", State.BROKEN, f"nothing answers on {', '.join(silent)}: see the log of `frontage up`")
    return Finding("ports", State.OK, "`frontage up` answers on all of them")


def _listeners_of_roles(settings: Settings) -> Finding:
    """Each may run or not; the ports of one that does not have to be free."""
    from common.cli.ports import LISTENERS, find_problem

    asked = {"edge": settings.edge_admin, "api": settings.api_listen, "monitor": settings.monitor_admin}
    serving = [role for role, address in asked.items() if address is not None and _said(address, "/healthz")]
    problem = find_problem(settings, [field for field in LISTENERS if field.partition("_")[0] not in serving])
    if problem:
        return Finding("ports", State.BROKEN, problem)
    answering = " and ".join(f"`frontage {role}`" for role in serving)
    says = f"{answering} on this machine; what else there is is free" if serving else "free for the roles to listen on"
    return Finding("ports", State.OK, says)


def _accepts(address: HostPort) -> bool:
    import socket

    try:
        with socket.create_connection(address, timeout=_ANSWER_SECONDS):
            return True
    except OSError:
        return False


# The database --------------------------------------------------------------------------------------------


async def _database(settings: Settings) -> list[Finding]:
    from common.db.pool import open_pool, resolve_dsn

    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage doctor") as database,
        database.connection() as connection,
    ):
        version = connection.get_server_version()
        if version.major < _OLDEST_POSTGRES:
            says = f"PostgreSQL {version.major} is too old: {_OLDEST_POSTGRES} or newer is needed"
            return [Finding("database", State.BROKEN, says)]
        looking = connection.transaction()
        await looking.start()
        try:
            await _look_inside(settings, connection)
            webhooks = await _webhooks(connection)
        finally:
            await looking.rollback()  # the first look at a new database would leave a canary
    says = f"PostgreSQL {version.major}.{version.micro}, the schema is up to date"
    return [Finding("database", State.OK, says), *webhooks]


async def _look_inside(settings: Settings, connection: Connection) -> None:
    """Raises: OperatorError when the schema or the master key is not the database's."""
    from common.db.schema import check_schema
    from common.db.secrets_canary import ensure_canary
    from common.secrets import load_keyring

    await check_schema(connection)
    if settings.key_file.exists():
        await ensure_canary(connection, load_keyring(settings.key_file))


async def _webhooks(connection: Connection) -> list[Finding]:
    """Those that are disabled, or soon will be."""
    from common.db.webhook_endpoints import list_endpoints
    from common.endpoint_health import disables_at

    findings = []
    for application_id, endpoint in (await list_endpoints(connection)).items():
        if endpoint.disabled_at is not None:
            state = f"is disabled since {endpoint.disabled_at:%Y-%m-%d}"
        elif (at := disables_at(endpoint)) is not None:
            state = f"will be disabled at {at:%Y-%m-%d %H:%M} UTC"
        else:
            continue
        cure = f"once that is put right, `frontage app set {application_id} --webhook-url URL` begins anew"
        findings.append(Finding("webhooks", State.NOTE, f"{application_id}'s {state} ({endpoint.last_error}): {cure}"))
    return findings


# The world -----------------------------------------------------------------------------------------------


async def _name_servers(settings: Settings) -> list[Finding]:
    servers = _servers(settings)
    if not servers:
        return [Finding("DNS servers", State.BROKEN, "none is configured: set FRONTAGE_DNS_SERVERS")]
    answers = await asyncio.gather(*(_answers(server) for server in servers))
    silent = [str(server) for server, answer in zip(servers, answers, strict=True) if not answer]
    if silent:
        says = f"{', '.join(silent)} gave no answer in {_ANSWER_SECONDS:g} seconds: set FRONTAGE_DNS_SERVERS to others"
        return [Finding("DNS servers", State.BROKEN, says)]
    return [Finding("DNS servers", State.OK, ", ".join(map(str, servers)))]


def _servers(settings: Settings) -> list[HostPort]:
    import dns.exception
    import dns.resolver

    from common.settings import HostPort

    if settings.dns_servers:
        return list(settings.dns_servers)
    try:
        return [HostPort(str(server), 53) for server in dns.resolver.Resolver().nameservers]
    except dns.exception.DNSException:
        return []


async def _answers(server: HostPort) -> bool:
    """Any answer will do, a refusal too: it is there."""
    import dns.asyncquery
    import dns.exception
    import dns.message

    question = dns.message.make_query(".", "NS")
    try:
        await dns.asyncquery.udp(question, server.host, timeout=_ANSWER_SECONDS, port=server.port)
    except (dns.exception.DNSException, OSError, ValueError):
        return False
    return True


def _targets(settings: Settings) -> Finding:
    from common.settings import Settings as Defaults

    variables = {"FRONTAGE_POWER_TARGET": "power_target", "FRONTAGE_SSL_TARGET": "ssl_target"}
    unset = [
        variable
        for variable, field in variables.items()
        if getattr(settings, field) == Defaults.model_fields[field].default
    ]
    if unset:
        says = f"{' and '.join(unset)} still name this machine only: set them to names whose DNS leads to your edges"
        return Finding("targets", State.NOTE, says)
    return Finding("targets", State.OK, f"{settings.power_target}, {settings.ssl_target}")


def _issuers(settings: Settings) -> Iterator[Finding]:
    subject = "certificates"
    if settings.issuer == "internal":
        says = "from a CA of our own, which browsers do not trust: README, Go live with a public CA"
        yield Finding(subject, State.NOTE, says)
        return
    if not settings.acme_directory:
        yield Finding(subject, State.BROKEN, "set FRONTAGE_ACME_DIRECTORY to the address of a CA's ACME directory")
    for directory in settings.acme_directory:
        problem = _directory_problem(settings, directory)
        yield Finding(subject, State.BROKEN if problem else State.OK, f"{directory}{problem and f': {problem}'}")
    if settings.edge_http.port != 80:
        says = f"public CAs ask port 80, the edge listens on {settings.edge_http}: something must lead there"
        yield Finding(subject, State.NOTE, says)


def _directory_problem(settings: Settings, url: str) -> str:
    """What keeps us from an account there; "" for nothing."""
    from urllib.parse import urlsplit

    from common.trust import authority_trust

    try:
        trust = authority_trust(settings)
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS, context=trust) as response:  # noqa: S310 - https only
            directory = json.loads(response.read())
        needs_external = directory.get("meta", {}).get("externalAccountRequired", False)
        is_directory = "newOrder" in directory
    except (OSError, OperatorError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"is not trusted ({reason.verify_message}): set FRONTAGE_ACME_CA_FILE if that CA is your own"
        return f"cannot be asked ({reason})"
    except (ValueError, AttributeError):
        is_directory, needs_external = False, False
    if not is_directory:
        return "is no ACME directory"
    if needs_external and urlsplit(url).netloc not in {account.authority for account in settings.acme_eab}:
        return "wants an external account: set FRONTAGE_ACME_EAB"
    return ""


# The edge ------------------------------------------------------------------------------------------------


def _replica(settings: Settings) -> Finding:
    health = _said(settings.edge_admin, "/readyz")  # ready or not
    if health is None:
        return Finding("edge", State.NOTE, f"none answers on {settings.edge_admin}")
    replica = health.get("replica", {})
    age = replica.get("age_seconds")
    if replica.get("held_copy"):
        accept = f"curl -X POST http://{settings.edge_admin}/replica/accept"
        says = f"the database has lost many routes, the edge still serves them: restore it, or agree with `{accept}`"
        return Finding("edge", State.BROKEN, says)
    if age is None or age > _OLD_REPLICA_SECONDS:
        known = "of unknown age" if age is None else f"{age:.0f} seconds old"
        return Finding("edge", State.BROKEN, f"its copy is {known}: see whether it reaches the database")
    return Finding("edge", State.OK, f"serves from a copy that was current {age:.1f} seconds ago")


def _said(address: HostPort, path: str) -> dict[str, Any] | None:
    """What a role says of itself, whatever the status; None where none answers."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=_ANSWER_SECONDS) as response:
            body = response.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    except (OSError, http.client.HTTPException):  # the latter: something else listens there
        return None
    try:
        said = json.loads(body)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


# Rendering -----------------------------------------------------------------------------------------------


def _show(findings: Iterable[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("check", "", "what was seen, and what to do", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.subject, finding.state.value, escape(finding.says))
    Console().print(table)
