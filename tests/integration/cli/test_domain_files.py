"""`frontage import` and `export`: each row once, whatever interrupts the command, and every error with its line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from common.db import applications, domains
from common.db.applications import NewApplication
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.secrets import load_keyring
from tests.integration.cli import frontage
from tests.waiting import until

RECORD = {"type": "CNAME", "host": "shop", "value": "apps.acme.test", "ttl": 300}
ROWS: list[dict[str, Any]] = [
    {
        "product": "power",
        "domain": "shop.customer.test",
        "applicationUrl": "https://o.test/a",
        "powerRootPathAccess": ["/static"],
    },
    {"product": "secure", "domain": "customer.test", "redirectTo": "https://www.customer.test"},
    {
        "product": "monitor",
        "domain": "customer.test",
        "subdomain": "shop",
        "dnsRecords": [RECORD],
        "userId": "user, 7",
        "jobId": "8",
    },
    {"product": "monitor", "domain": "customer.test", "dnsRecords": [RECORD]},
]


@pytest.fixture
async def env(database: Database, dsn: str, tmp_path: Path) -> dict[str, str]:
    load_keyring(tmp_path / "master.key", create=True)
    async with database.transaction() as connection:
        for letter in "ab":
            new = NewApplication(
                letter, letter, f"{letter}.partner.test", b"s", b"w", application_url="https://default.test"
            )
            await applications.create_application(connection, new)
    return frontage.environment(tmp_path, DATABASE_URL=dsn)


def as_csv(*rows: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["product", "domain", "applicationUrl", "redirectTo"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def imported(env: dict[str, str], file: Path, *options: str) -> dict[str, Any]:
    done = frontage.run("import", str(file), "--application", "a", "--json", *options, env=env)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(found["refused"])
    return {name: value for name, value in found.items() if value}


async def audited(database: Database) -> int:
    async with database.connection() as connection:
        return int(await connection.fetchval("select count(*) from audit"))


async def test_what_is_exported_is_imported_without_a_change(
    database: Database, env: dict[str, str], tmp_path: Path
) -> None:
    file, again = tmp_path / "a.json", tmp_path / "again.csv"
    file.write_text(json.dumps(ROWS, indent=2))
    assert imported(env, file, "--dry-run") == {"dryRun": True, "added": 4}
    assert await audited(database) == 0
    assert imported(env, file) == {"added": 4}
    exported = frontage.run("export", "--application", "a", "--format", "json", env=env).stdout
    assert sorted(json.loads(exported), key=str) == sorted(ROWS, key=str)

    before = await audited(database)
    assert frontage.run("export", str(again), "--application", "a", env=env).returncode == 0
    assert imported(env, again) == {"unchanged": 4}
    assert await audited(database) == before

    again.write_text(again.read_text().replace("https://o.test/a", "https://o.test/b").replace("user, 7", "user 8"))
    assert imported(env, again) == {"changed": 2, "unchanged": 2}
    async with database.connection() as connection:
        [powered] = await domains.find(connection, "shop.customer.test")
        assert await connection.fetchval("select count(*) from orders where domain = 'shop.customer.test'") == 1
    assert (powered.application_url, powered.root_path_access) == ("https://o.test/b", ("/static",))


async def test_rows_are_prepared_in_bulk_with_the_records_to_set(
    database: Database, env: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    shop = {"product": "power", "domain": "shop.customer.test", "applicationUrl": "https://o.test/a"}
    file.write_text(as_csv(shop, {"product": "power", "domain": "customer.test"}))
    [error, _] = imported(env, file, "--prepare")["errors"]
    assert "FRONTAGE_ACME_DNS_ZONE" in error["error"]

    zoned = env | {"FRONTAGE_ACME_DNS_ZONE": "acme.frontage.test"}
    file.write_text(as_csv(shop))
    assert imported(zoned, file, "--prepare", "--dry-run") == {"dryRun": True, "added": 1}
    assert imported(zoned, file, "--prepare") == {"added": 1}
    assert imported(zoned, file, "--prepare") == {"unchanged": 1}
    async with database.connection() as connection:
        assert await domains.find(connection, "shop.customer.test") == [], "it is enrolled once it is delegated"
    lines = frontage.run("domain", "prepared", "--application", "a", env=zoned).stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["shop.customer.test", "waiting", "_acme-challenge.shop.customer.test"]
    ]

    given = ("shop.customer.test", "--application", "a")
    one = frontage.run("domain", "prepare", *given, "--application-url", "https://o.test/b", env=zoned)
    assert "later   shop.customer.test CNAME a.partner.test" in one.stdout, one.stderr
    assert frontage.run("domain", "unprepare", *given, env=zoned).returncode == 0
    assert frontage.run("domain", "prepared", "--application", "a", env=zoned).stdout == ""


async def test_a_refused_row_has_its_line_and_leaves_the_others(
    database: Database, env: dict[str, str], tmp_path: Path
) -> None:
    async with database.transaction() as connection:
        await domains.power(connection, "held.customer.test", "b", DomainSettings("https://o.test"))
    rows = [
        {"product": "power", "domain": "shop.customer.test", "applicationUrl": "https://o.test"},
        {"product": "power", "domain": "held.customer.test", "applicationUrl": "https://o.test"},
        {"product": "power", "domain": "b.partner.test", "applicationUrl": "https://o.test"},
        {"product": "power", "domain": "x..y", "applicationUrl": "https://o.test"},
        {"product": "secure", "domain": "c1.customer.test", "redirectTo": "https://c2.customer.test"},
        {"product": "secure", "domain": "c2.customer.test", "redirectTo": "https://c1.customer.test"},
        {"product": "power", "domain": "shop.customer.test", "applicationUrl": "https://o.test"},
    ]
    file = tmp_path / "a.csv"
    file.write_text(as_csv(*rows))
    found = imported(env, file)
    assert [(each["line"], each["error"].partition(" (")[0]) for each in found.pop("errors")] == [
        (3, "held.customer.test: domain: another application holds it"),
        (4, "b.partner.test: domain: a name of the service or a cname target, which is no customer's domain"),
        (5, "domain: labels are of letters, digits and inner hyphens, up to 63 characters each"),
        (7, "c2.customer.test: redirectTo: would send visitors round in a circle"),
    ]
    assert found == {"added": 2, "unchanged": 1, "refused": 4}
    done = frontage.run("import", str(file), "--application", "a", env=env)
    assert "line 3: held.customer.test" in done.stderr
    assert "run the same command again" in done.stderr
    assert "0 added, 0 changed, 3 as they were, 4 refused" in done.stdout


async def test_an_import_takes_no_origin_that_post_would_refuse(
    database: Database, env: dict[str, str], tmp_path: Path
) -> None:
    async with database.transaction() as connection:
        await applications.update_application(connection, "a", application_url="https://o.test/path")
    file = tmp_path / "a.json"
    rows = [
        {"product": "power", "domain": "p1.customer.test", "applicationUrl": "http://10.0.0.1"},
        {"product": "secure", "domain": "s1.customer.test", "applicationUrl": "http://10.0.0.1"},
        {"product": "secure", "domain": "s2.customer.test"},
    ]
    file.write_text(json.dumps(rows))
    found = imported(env, file)
    assert [each["error"] for each in found["errors"]] == [
        "p1.customer.test: applicationUrl: its address may not be dialled",
        "s1.customer.test: applicationUrl: its address may not be dialled",
        "s2.customer.test: applicationUrl: Secure forwards paths unchanged, and the application's has one",
    ]
    assert found["refused"] == 3


async def test_a_killed_import_is_run_again_and_each_row_is_there_once(
    database: Database, env: dict[str, str], tmp_path: Path
) -> None:
    lines = as_csv(
        *({"product": "power", "domain": f"d{n}.customer.test", "applicationUrl": "https://o.test"} for n in range(130))
    ).splitlines(keepends=True)
    file = tmp_path / "a.csv"
    file.write_text("".join(lines))

    async def enrolled() -> int:
        async with database.connection() as connection:
            return int(await connection.fetchval("select count(*) from domains"))

    with subprocess.Popen(
        frontage.argv("import", "-", "--format", "csv", "--application", "a"),
        env=env,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.writelines(lines[:90])  # the file is not over: it waits in the middle of its second batch
        process.stdin.flush()

        async def has_begun() -> bool:
            return await enrolled() > 0

        await until(has_begun)
        process.kill()
    assert await enrolled() == 50
    assert imported(env, file) == {"added": 80, "unchanged": 50}
    async with database.connection() as connection:
        assert await connection.fetchval("select count(*) from audit where action = 'power.enrol'") == 130


async def test_what_cannot_be_imported_is_refused_in_a_line(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("product,domain\n")
    for words, arguments in (
        ("there is no application x", ("import", str(tmp_path / "a.csv"), "--application", "x")),
        ("cannot be read", ("import", str(tmp_path / "none.csv"), "--application", "a")),
        ("--format", ("import", str(tmp_path / "a"), "--application", "a")),
        ("there is no application x", ("export", "--application", "x")),
    ):
        done = frontage.run(*arguments, env=env)
        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr.splitlines()[-1]
