"""`frontage domain …` and `frontage app delete`: what an operator sees of names, and moves by hand."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from common.db import applications, certificates, domains, ownership
from common.db.applications import NewApplication
from common.db.domains import NewDomain
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.secrets import load_keyring
from tests.integration.cli import frontage
from tests.waiting import until

SHOP = "shop.customer.test"


@pytest.fixture
async def env(database: Database, dsn: str, tmp_path: Path) -> dict[str, str]:
    load_keyring(tmp_path / "master.key", create=True)
    async with database.transaction() as connection:
        for letter in "ab":
            new = NewApplication(
                letter,
                f"Partner {letter}",
                f"{letter}.partner.test",
                b"s",
                b"w",
                application_url="https://default.test",
            )
            await applications.create_application(connection, new)
    return frontage.environment(tmp_path, DATABASE_URL=dsn)


async def power(database: Database, application_id: str, *names: str) -> None:
    for name in names:
        async with database.transaction() as connection:
            await domains.power(connection, name, application_id, DomainSettings("https://origin.test"))


def output(env: dict[str, str], *arguments: str) -> str:
    done = frontage.run(*arguments, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(env: dict[str, str], *arguments: str) -> Any:
    return json.loads(output(env, *arguments, "--json"))


def refused(env: dict[str, str], *arguments: str) -> str:
    done = frontage.run(*arguments, env=env)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("domain list", "no enrolled domain matches"),
        ("domain list --blocked", "no name is blocked"),
        ("domain ended a", "no domain of the application ended in the last 30 days"),
        ("certificate list", "no certificate in service matches"),
        ("flow list a", "no flow matches"),
        ("audit --kind nothing", "the audit log has no such entry"),
    ],
)
def test_empty_lists_say_so_beside_an_empty_output(env: dict[str, str], command: str, words: str) -> None:
    done = frontage.run(*command.split(), env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{words}\n")


async def test_domains_are_listed_in_pages_and_by_what_they_are(database: Database, env: dict[str, str]) -> None:
    await power(database, "a", *(f"a{number}.customer.test" for number in range(3)))
    await power(database, "b", "b0.customer.test")
    async with database.transaction() as connection:
        await domains.secure(connection, "a1.customer.test", "a", DomainSettings())

    page = as_json(env, "domain", "list", "--limit", "2")
    assert [(each["domain"], each["product"]) for each in page["domains"]] == [
        ("a0.customer.test", "power"),
        ("a1.customer.test", "power"),
        ("a1.customer.test", "secure"),
    ]
    rest = as_json(env, "domain", "list", "--after", page["next"])
    assert [each["domain"] for each in rest["domains"]] == ["a2.customer.test", "b0.customer.test"]
    assert rest["next"] is None
    assert output(env, "domain", "list", "--application", "b") == "b0.customer.test  power  active  b\n"
    assert output(env, "domain", "list", "--product", "secure") == "a1.customer.test  secure  inactive  a\n"
    assert output(env, "domain", "list", "--status", "inactive", "--application", "a").count("\n") == 1
    assert "there is no application nobody" in refused(env, "domain", "list", "--application", "nobody")


async def test_a_name_is_shown_with_its_holder_and_those_before(database: Database, env: dict[str, str]) -> None:
    await power(database, "a", SHOP)
    async with database.transaction() as connection:
        await domains.remove(connection, SHOP, "power", "a")
    await power(database, "b", SHOP)

    shown = as_json(env, "domain", "show", SHOP.upper())
    assert shown["application"] == {"applicationId": "b", "name": "Partner b"}
    assert [(each["product"], each["status"]) for each in shown["products"]] == [("power", "active")]
    assert [each["applicationId"] for each in shown["formerHolders"]] == ["a"]
    assert shown["order"]["state"] == "running"
    assert f"{SHOP}: held by b (Partner b)" in output(env, "domain", "show", SHOP)
    assert as_json(env, "domain", "show", "a.partner.test")["isCnameTarget"] is True


async def test_an_order_that_waits_is_shown_with_its_reason_and_its_time(
    database: Database, env: dict[str, str]
) -> None:
    await power(database, "a", SHOP)
    assert as_json(env, "domain", "show", SHOP)["order"]["waitsUntil"] is None
    async with database.transaction() as connection:
        await connection.execute("update orders set last_error = 'the limit is reached', due_at = '2099-01-02 03:04Z'")

    assert as_json(env, "domain", "show", SHOP)["order"]["waitsUntil"] == "2099-01-02T03:04:00+00:00"
    assert "; waits until 2099-01-02T03:04:00+00:00: the limit is reached\n" in output(env, "domain", "show", SHOP)


async def test_a_released_name_is_free_and_forgets_its_holders(database: Database, env: dict[str, str]) -> None:
    await power(database, "a", SHOP)

    assert output(env, "domain", "release", SHOP).startswith(f"{SHOP} is free: application a has lost it")

    shown = as_json(env, "domain", "show", SHOP)
    assert (shown["application"], shown["products"], shown["formerHolders"]) == (None, [], [])
    async with database.connection() as connection:
        assert await connection.fetchval("select fields from events") == {
            "power_status": "inactive",
            "reason": "released",
        }
    assert "no application holds" in refused(env, "domain", "release", SHOP)


async def test_a_release_prints_which_application_has_lost_the_name(database: Database, env: dict[str, str]) -> None:
    """The name moves while the command waits for its lock."""
    await power(database, "a", SHOP)
    async with database.transaction() as connection:
        await certificates.lock_domain(connection, SHOP)
        process = await asyncio.create_subprocess_exec(
            *frontage.argv("domain", "release", SHOP), env=env, stdout=asyncio.subprocess.PIPE
        )
        async with database.connection() as watching:
            await until(lambda: watching.fetchval("select exists (select from pg_locks where not granted)"))
        await ownership.revoke_ownership(connection, SHOP, "a", "moved")
        await domains.enrol_by_hand(connection, "b", [NewDomain(SHOP, "power", DomainSettings("https://origin.test"))])
    printed, _ = await process.communicate()
    assert printed.decode().startswith(f"{SHOP} is free: application b has lost it")


async def test_all_names_of_an_application_that_led_elsewhere_are_checked_again(
    database: Database, env: dict[str, str]
) -> None:
    names = [f"d{n}.customer.test" for n in range(120)]
    await power(database, "a", *names)
    async with database.transaction() as connection:
        await connection.execute("update domains set departed_at = now() where domain <> $1", names[0])

    assert as_json(env, "domain", "recheck", "--application", "a") == {"applicationId": "a", "rechecking": 119}
    async with database.connection() as connection:
        asked = "select count(*) from orders where recheck_requested_at is not null and due_at <= now()"
        assert await connection.fetchval(asked) == 119
    assert "there is no application x" in refused(env, "domain", "recheck", "--application", "x")
    assert "give a domain, or --application" in refused(env, "domain", "recheck")


async def test_a_name_is_transferred_without_its_settings(database: Database, env: dict[str, str]) -> None:
    await power(database, "a", SHOP)
    async with database.transaction() as connection:
        await domains.secure(connection, SHOP, "a", DomainSettings(redirect_to="https://elsewhere.test"))

    output(env, "domain", "transfer", "b", SHOP, "--application-url", "https://new.test")

    products = as_json(env, "domain", "show", SHOP)["products"]
    assert {each["product"] for each in products} == {"power", "secure"}
    for each in products:
        assert (each["applicationId"], each["applicationUrl"], each["redirectTo"], each["claim"]) == (
            "b",
            "https://new.test",
            None,
            "operator",
        )
    assert "is application b's already" in refused(env, "domain", "transfer", "b", SHOP)
    assert "is not enrolled" in refused(env, "domain", "transfer", "b", "other.customer.test")
    assert "there is no application c" in refused(env, "domain", "transfer", "c", SHOP)
    assert "is no domain name" in refused(env, "domain", "transfer", "b", "no name")


async def test_an_application_is_deleted_once_its_id_is_typed(database: Database, env: dict[str, str]) -> None:
    await power(database, "a", SHOP, "other.customer.test")
    await power(database, "b", "kept.customer.test")

    def delete(typed: str) -> subprocess.CompletedProcess[str]:
        argv = frontage.argv("app", "delete", "a")
        return subprocess.run(argv, env=env, input=typed, capture_output=True, text=True, timeout=200, check=False)

    mistyped = delete("b\n")
    assert mistyped.returncode == 1
    assert "2 domains stop being served" in mistyped.stderr
    assert delete("").returncode == 1
    assert len(as_json(env, "domain", "list")["domains"]) == 3

    done = delete("a\n")
    assert (done.returncode, json.loads(done.stdout)["removed"]["domains"]) == (0, 2), done.stderr
    assert [each["domain"] for each in as_json(env, "domain", "list")["domains"]] == ["kept.customer.test"]
    assert [each["applicationId"] for each in json.loads(output(env, "app", "list"))] == ["b"]
    assert "there is no application a" in refused(env, "app", "delete", "a", "--yes")
    assert "was another application's" in refused(
        env, "app", "create", "--name", "C", "--cname-target", "a.partner.test"
    )


@pytest.mark.timeout(300)
async def test_a_deletion_that_was_killed_is_continued_by_the_next(database: Database, env: dict[str, str]) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "insert into domains (domain, product, application_id, application_url)"
            " select 'shop-' || lpad(n::text, 3, '0') || '.customer.test', 'power', 'a', 'https://origin.test'"
            " from generate_series(0, 449) n"
        )
        await connection.execute(
            "insert into idempotent_requests (application_id, key, request) values ('a', 'key', 'request')"
        )
    await power(database, "b", "kept.customer.test")

    async def left() -> int:
        async with database.connection() as connection:
            return int(await connection.fetchval("select count(*) from domains where application_id = 'a'"))

    async def is_held() -> bool:
        return await left() == 50

    async with database.transaction() as holding:
        await holding.execute("select from domains where domain = 'shop-449.customer.test' for update")
        deleting = subprocess.Popen(
            frontage.argv("app", "delete", "a", "--yes"), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            await until(is_held, "the batches before the held one are removed", seconds=120)
        finally:
            deleting.kill()
            deleting.wait()
    assert await left() == 50

    done = frontage.run("app", "delete", "a", "--yes", env=env)
    assert (done.returncode, json.loads(done.stdout)["removed"]["domains"]) == (0, 50), done.stderr
    assert [each["domain"] for each in as_json(env, "domain", "list")["domains"]] == ["kept.customer.test"]


def test_our_own_names_are_no_cname_targets(env: dict[str, str]) -> None:
    own = env | {"FRONTAGE_PUBLIC_URL": "https://api.frontage.test/", "FRONTAGE_POWER_TARGET": "power.frontage.test"}
    for target in ("API.frontage.test", "power.frontage.test.", "secure.frontage.localhost"):
        done = frontage.run("app", "create", "--name", "C", "--cname-target", target, env=own)
        assert (done.returncode, "is our own name" in done.stderr.replace("\n", " ")) == (2, True), done.stderr


async def test_recheck_makes_the_domains_order_due_at_once(database: Database, env: dict[str, str]) -> None:
    await power(database, "a", SHOP)
    async with database.transaction() as connection:
        await connection.execute("update orders set due_at = now() + interval '12 hours'")

    asked = await asyncio.to_thread(frontage.run, "domain", "recheck", SHOP, env=env)
    assert f"frontage domain show {SHOP}" in asked.stdout
    assert "no monitor runs" in asked.stderr

    async with database.connection() as connection:
        assert await connection.fetchval("select due_at <= now() and recheck_requested_at is not null from orders")
    assert "is not enrolled" in refused(env, "domain", "recheck", "www.unknown.test")


async def test_a_name_is_enrolled_changed_and_removed_by_command(database: Database, env: dict[str, str]) -> None:
    of_a = ("--application", "a")
    assert output(env, "domain", "power", SHOP.upper(), *of_a).startswith(f"{SHOP} is added in power of application a;")
    changed = as_json(env, "domain", "power", SHOP, *of_a, "--application-url", "https://new.test")
    assert changed == {"domain": SHOP, "product": "power", "applicationId": "a", "outcome": "changed"}
    assert as_json(env, "domain", "power", SHOP, *of_a)["outcome"] == "unchanged"  # what is not given stays
    async with database.connection() as connection:
        assert await connection.fetchval("select application_url from domains") == "https://new.test"
        [order] = await connection.fetch("select state, recheck_requested_at from orders")
    assert order["recheck_requested_at"] is not None  # a monitor asks the DNS first

    assert f"{SHOP}: domain: another application holds it" in refused(
        env, "domain", "secure", SHOP, "--application", "b"
    )
    assert "--application-url: " in refused(env, "domain", "power", SHOP, *of_a, "--application-url", "ftp://x")
    assert "there is no application z" in refused(env, "domain", "power", SHOP, "--application", "z")
    assert "is no domain name" in refused(env, "domain", "power", "..", *of_a)

    gone = ("domain", "remove", SHOP, *of_a, "--product", "power")
    assert output(env, *gone) == f"{SHOP} is out of power of application a\n"
    assert f"application a has no {SHOP} in power" in refused(env, *gone)


async def test_records_are_monitored_by_command(database: Database, env: dict[str, str]) -> None:
    monitor = ("domain", "monitor", SHOP, "--application", "a")
    records = ("--record", "A shop 192.0.2.1", "--record", "mx @ 10 mail.customer.test", "--record", "TXT @ a b  c")
    assert as_json(env, *monitor, *records)["domain"] == SHOP
    async with database.connection() as connection:
        [kept] = await connection.fetch("select domain, subdomain, dns_records from monitored_domains")
    assert (kept["domain"], kept["subdomain"]) == ("customer.test", "shop")
    assert [(each["type"], each["value"], each.get("priority")) for each in kept["dns_records"]] == [
        ("A", "192.0.2.1", None),
        ("MX", "mail.customer.test", "10"),
        ("TXT", "a b  c", None),
    ]
    assert "expected TYPE HOST VALUE" in refused(env, *monitor, "--record", "A 192.0.2.1")
    assert "--record: type must be one of" in refused(env, *monitor, "--record", "NONE @ x")
