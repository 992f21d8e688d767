"""`--json`: every command that prints then prints one JSON document on standard output, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from cryptography import x509
from typer.core import TyperGroup
from typer.testing import CliRunner

from api.cli.__main__ import app
from common.db import acme_accounts, edge_nodes, passkeys, users
from common.db.acme_accounts import SealedKey
from common.db.pool import Database
from tests.certificates import Authority, pem
from tests.integration.cli import frontage
from tests.integration.cli.test_certificates import go_live
from tests.integration.monitor import parts

ROLES = {"edge", "api", "monitor"}  # they write logs, in JSON where they write to no terminal
RUN_UNTIL_STOPPED = {"up", "demo"}
KEYS_OF_OTHERS = {"audit", "metrics alerts"}  # changes name settings as they are recorded; rules are Prometheus'
TYPED_ELSEWHERE = {"restore"}  # into another database: test_backup
PASSWORD = "a long and winding road\n"


def leaves(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            if command.invoke_without_command:
                yield " ".join((*path, name)), command
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def commands() -> dict[str, Any]:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    return dict(leaves(root))


def test_every_command_that_prints_takes_json() -> None:
    without = {
        name for name, command in commands().items() if not any("--json" in each.opts for each in command.params)
    }
    assert without == ROLES


class Operator:
    """Types commands, and notes which of them there were."""

    def __init__(self) -> None:
        self.typed: set[str] = set()

    async def type(self, command: str, *arguments: str, typing: str | None = None, fails: bool = False) -> Any:
        self.typed.add(command)
        argv = [*command.split(), *arguments, "--json"]
        done = await asyncio.to_thread(CliRunner().invoke, app, argv, typing)
        assert done.exit_code == int(fails) or command == "doctor", (argv, done.output, done.exception)
        shown = json.loads(done.stdout)
        if command not in KEYS_OF_OTHERS:
            assert not {key for key in keys_of(shown) if "_" in key}, command
        return shown


def keys_of(shown: Any) -> Iterator[str]:
    """Of objects within objects too."""
    if isinstance(shown, dict):
        yield from shown
    for each in shown.values() if isinstance(shown, dict) else shown if isinstance(shown, list) else ():
        yield from keys_of(each)


@pytest.fixture
def env(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {
        "DATABASE_URL": dsn,
        "PUBLIC_URL": "https://api.partner.test",
        "ACME_DNS_ZONE": "acme.partner.test",
        "API_TRUSTED_PROXIES": "127.0.0.1",
        "DOMAIN_CONNECT_PROVIDER_ID": "frontage.test",
        "DNS_SERVERS": "127.0.0.1:1",
        "ALLOW_PRIVATE_ADDRESSES": "127.0.0.1/32",
    }
    for name, value in frontage.environment(tmp_path / "state", **settings).items():
        if name.startswith("FRONTAGE_"):
            monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("env")
async def test_each_prints_one_document(database: Database, tmp_path: Path) -> None:
    operator = Operator()
    await operator.type("migrate")
    await type_about_people(operator, database)
    application = await type_about_an_application(operator)
    await type_about_domains(operator, application)
    await type_about_this_machine(operator, tmp_path)
    await type_about_certificates(operator, database, tmp_path)
    await type_about_a_lost_edge(operator, database)
    await type_files_of_domains(operator, tmp_path)
    assert not (await operator.type("doctor"))["ok"]
    assert set(commands()) - operator.typed == ROLES | RUN_UNTIL_STOPPED | TYPED_ELSEWHERE


async def type_about_people(operator: Operator, database: Database) -> None:
    run = operator.type
    organisation = (await run("organisation create", "Acme"))["organisationId"]
    ada = "ada@acme.test"
    assert (await run("user create", ada, "--organisation", "Acme"))["signInOnce"].startswith("https://")
    await run("user set-password", ada, "--password-stdin", typing=PASSWORD)
    for command in ("user link", "user operator", "user sign-out"):
        assert (await run(command, ada))["email"] == ada
    await run("organisation add-member", organisation, ada, "--role", "owner")
    assert [each["email"] for each in await run("user list")] == [ada]
    assert [each["members"] for each in await run("organisation list")] == [{ada: "owner"}]
    async with database.transaction() as connection:
        user = await users.find_user(connection, ada)
        assert user is not None
        await passkeys.add(connection, user.id, b"id", b"key", 0, "phone")
    assert [each["name"] for each in await run("user passkeys", ada)] == ["phone"]
    assert (await run("user remove-passkey", ada, b"id".hex()))["name"] == "phone"
    key = (await run("user create-key", ada, "--name", "deployment"))["id"]
    assert [each["id"] for each in await run("user keys", ada)] == [key]
    await run("user revoke-key", ada, key)
    assert (await run("user unbind", ada))["unbound"] == 0
    await type_about_owners(operator)
    await run("user delete", ada)
    await type_about_gains(operator, database)


def last_owner(email: str) -> dict[str, str]:
    words = f"{email} is the only owner of Acme: make another member an owner first"
    return {"message": words, "code": "last_owner"}


async def type_about_owners(operator: Operator) -> None:
    """The only owner of an organisation keeps the role until there is another."""
    run, ada, eve = operator.type, "ada@acme.test", "eve@acme.test"
    for command in (("organisation remove-member",), ("organisation add-member", "--role", "viewer")):
        refused = await run(command[0], "Acme", ada, *command[1:], fails=True)
        assert refused == last_owner(ada)
    assert [each["members"] for each in await run("organisation list")] == [{ada: "owner"}]
    await run("user create", eve, "--organisation", "Acme")
    await run("organisation add-member", "Acme", ada, "--role", "viewer")
    await run("organisation remove-member", "Acme", ada)
    last, before_last = (await run("audit"))["entries"][:2]
    assert (last["action"], last["before"]) == ("member.remove", {"role": "viewer"})
    assert (before_last["action"], before_last["before"]) == ("member.put", {"role": "owner"})
    refused = await run("user delete", eve, fails=True)
    assert refused == last_owner(eve)


async def type_about_gains(operator: Operator, database: Database) -> None:
    """What gives a user more rights prints a link, as all else that signed the user in has ended."""
    run, bob = operator.type, "bob@acme.test"
    before = (await run("user create", bob, "--organisation", "Acme", "--role", "viewer"))["signInOnce"]
    await run("organisation create", "Other")
    assert (await run("organisation add-member", "Acme", bob, "--role", "owner"))["signInOnce"] is None
    joined = (await run("organisation add-member", "Other", bob, "--role", "viewer"))["signInOnce"]
    raised = (await run("organisation add-member", "Other", bob, "--role", "owner"))["signInOnce"]
    made = (await run("user operator", bob))["signInOnce"]
    links = {before, joined, raised, made}
    assert len(links) == 4
    assert all("/dashboard/link/" in each for each in links)
    assert (await run("user operator", bob))["signInOnce"] is None
    assert (await run("user operator", bob, "--off"))["signInOnce"] is None
    async with database.connection() as connection:
        await connection.execute(
            "insert into users (id, email) select n, n || '@full.test' from generate_series(2, 500) n"
        )
        await connection.execute(
            "insert into memberships (user_id, organisation_id, role) select users.id, organisations.id, 'viewer'"
            " from users, organisations where email like '%@full.test' and name = 'Other'"
        )
    full = {"message": "Other has 500 members, which is most", "code": "members"}
    assert await run("organisation add-member", "Other", "eve@acme.test", fails=True) == full
    assert await run("user create", "joe@acme.test", "--organisation", "Other", fails=True) == full
    async with database.connection() as connection:
        await connection.execute("delete from users where email like '%@full.test'")
    await run("organisation add-member", "Other", "eve@acme.test", "--role", "owner")
    await run("user delete", bob)


async def type_about_an_application(operator: Operator) -> str:
    """Its id."""
    run = operator.type
    options = ("--cname-target", "apps.partner.test", "--webhook-url", "https://hooks.partner.test/")
    made = await run("app create", "--name", "Acme", *options)
    application: str = made["applicationId"]
    for command in ("app show", "app set", "app rotate-secret", "app rotate-webhook-secret", "token"):
        assert (await run(command, application))["applicationId"] == application
    assert len(await run("app list")) == 1
    for command in ("app suspend", "app resume"):
        reason = ("--reason", "Phishing.") if command == "app suspend" else ()
        assert (await run(command, application, *reason))["applicationId"] == application
        (listed,) = await run("app list")
        assert listed["suspended"] == (await run("app show", application))["suspended"]
        assert (listed["suspended"] or {}).get("reason") == ("Phishing." if reason else None)
    assert await run("app id", "apps.partner.test") == {"applicationId": application}
    event = (await run("webhook test", application))["event"]
    await run("webhook replay-event", application, event)
    await run("webhook enable", application)
    await run("webhook replay", application, "--from", "2026-01-01")
    return application


async def type_about_domains(operator: Operator, application: str) -> None:
    run = operator.type
    await run("domain publish-api", application)
    assert len((await run("domain list"))["domains"]) == 1
    assert (await run("domain recheck", "api.partner.test"))["domain"] == "api.partner.test"
    [published] = (await run("domain show", "api.partner.test"))["products"]
    assert (published["product"], published["claim"]) == ("secure", "operator")
    other = (await run("app create", "--name", "B", "--cname-target", "b.partner.test"))["applicationId"]
    moved = await run("domain transfer", other, "api.partner.test", "--application-url", "https://origin.test")
    assert moved["formerHolder"] == application
    assert (await run("domain release", "api.partner.test"))["formerHolder"] == other
    await run("domain block", "bad.customer.test", "--reason", "Phishing.")
    await run("domain unblock", "bad.customer.test")
    shop = ("shop.customer.test", "--application", other)
    for product in ("power", "secure"):
        made = await run(f"domain {product}", *shop, "--application-url", "https://origin.test")
        assert (made["product"], made["outcome"]) == (product, "added")
    assert (await run("domain monitor", *shop, "--record", "A shop 192.0.2.1"))["outcome"] == "added"
    assert (await run("domain remove", *shop, "--product", "monitor"))["outcome"] == "removed"
    assert (await run("domain status-link", *shop))["link"].startswith("https://api.partner.test/")
    for product in ("power", "secure"):
        await run("domain remove", *shop, "--product", product)
    [ended] = (await run("domain ended", other))["items"]
    assert (ended["domain"], ended["leadsHere"]) == ("shop.customer.test", None)
    assert (await run("flow list", other))["items"] == []
    assert (await run("flow funnel", other))["flows"] == 0
    moving = ("moving.customer.test", "--application", other)
    assert (await run("domain prepare", *moving, "--application-url", "https://origin.test"))["state"] == "waiting"
    assert (await run("domain prepared", moving[0], "--application", other))["records"][0]["state"] == "missing"
    assert (await run("domain unprepare", *moving))["prepared"] is False
    await run("app delete", other, "--yes")


async def type_about_this_machine(operator: Operator, tmp_path: Path) -> None:
    run = operator.type
    for command in ("master-key show", "master-key add", "domain-connect key", "domain-connect rotate"):
        await run(command)
    await run("master-key rotate", "--grace", "0")
    await run("master-key export", str(tmp_path / "edge.key"), "--role", "edge")
    await run("domain-connect templates", str(tmp_path / "templates"))
    await run("service install", "--root", str(tmp_path / "root"))
    await run("service print")
    assert "FROM" in (await run("service print", "--container"))["Containerfile"]
    await run("backup", str(tmp_path / "dump"))


async def type_about_a_lost_edge(operator: Operator, database: Database) -> None:
    async with database.transaction() as connection:
        await edge_nodes.report(connection, "1a2b3c4d", "one", 1)
        await connection.execute("update edge_nodes set lease_until = now()")
    await operator.type("edge forget", "1a2b3c4d")


async def type_about_certificates(operator: Operator, database: Database, tmp_path: Path) -> None:
    run = operator.type
    await parts.add_application(database)
    await go_live(database)
    [listed] = (await run("certificate list"))["certificates"]
    assert listed["domain"] == parts.DOMAIN
    assert (await run("certificate replace", "--before", "2000-01-01", "--dry-run"))["selected"] == 0
    for command in ("certificate show", "certificate renew", "certificate revoke"):
        assert (await run(command, parts.DOMAIN))["domain"] == parts.DOMAIN
    authority, chain = Authority(), tmp_path / "chain.pem"
    request = x509.load_pem_x509_csr((await run("certificate request", parts.DOMAIN))["request"].encode())
    chain.write_text(pem(authority.leaf(request, parts.DOMAIN), authority.intermediate))
    await run("certificate bring", parts.DOMAIN, "--certificate", str(chain))
    assert (await run("certificate use-ours", parts.DOMAIN))["source"] == "ours"
    assert [each["domain"] for each in (await run("certificate list"))["certificates"]] == [parts.DOMAIN]
    assert (await run("certificate replace", "--before", "2026-01-01"))["requested"] == 0
    for requested, option in ((True, ()), (False, ("--cancel",))):
        async with database.connection() as connection:
            await acme_accounts.keep_key(connection, SealedKey(b"sealed", "thumbprint"))
        assert await run("certificate roll-account-key", *option) == {"changing": requested}
    for command in (
        "certificate limits",
        "certificate progress",
        "alarms show",
        "alarms release",
        "audit",
        "status",
        "metrics dashboard",
    ):
        await run(command)
    assert (await run("metrics alerts"))["groups"][0]["name"] == "frontage"


async def type_files_of_domains(operator: Operator, tmp_path: Path) -> None:
    run = operator.type
    exported = await run("export", "--application", parts.APPLICATION, str(tmp_path / "domains.csv"))
    assert exported == {"file": str(tmp_path / "domains.csv"), "format": "csv", "rows": 1}
    [row] = await run("export", "--application", parts.APPLICATION)
    assert row["domain"] == parts.DOMAIN
    more = tmp_path / "more.csv"
    more.write_text("product,domain,applicationUrl\npower,more.customer.example,https://origin.test\n")
    imported = await run("import", str(more), "--application", parts.APPLICATION)
    assert (imported["added"], imported["errors"]) == (1, [])
