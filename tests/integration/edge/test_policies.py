"""From `frontage domain block` and `app suspend` to the answer of a running edge, and back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from common.db.pool import Database
from common.secrets import load_keyring
from tests.component.edge_process import EdgeProcess
from tests.integration.cli.frontage import environment, run
from tests.integration.edge.origins import an_echo
from tests.integration.edge.test_application_options import browse_until
from tests.integration.edge.test_role import DOMAIN, edge, power

__all__ = ["edge"]


async def test_a_blocked_name_and_a_suspended_application_show_the_reason(
    edge: EdgeProcess, database: Database, dsn: str, tmp_path: Path
) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn)

    async def command(*arguments: str) -> Any:
        done = await asyncio.to_thread(run, *arguments, "--json", env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    async with an_echo() as origin:
        await power(database, origin)
        await edge.start()
        await browse_until(edge, lambda status, body: status == 200)
        await command("domain", "block", DOMAIN, "--reason", "  Phishing was\n reported. ")
        await browse_until(edge, lambda status, body: status == 403 and "Phishing was reported." in body)
        shown = await command("domain", "show", DOMAIN)
        assert (shown["blocked"]["status"], shown["blocked"]["scope"]) == (403, "domain")
        assert shown["products"][0]["product"] == "power"
        await command("app", "suspend", "app", "--reason", "Unpaid.", "--legal")
        await command("domain", "block", DOMAIN, "--reason", "A court said so.", "--legal")
        await browse_until(edge, lambda status, body: status == 451 and "A court said so." in body)
        listed = await command("domain", "list", "--blocked")
        assert [(each["domain"], each["status"]) for each in listed["domains"]] == [(DOMAIN, 451)]
        await command("domain", "unblock", DOMAIN)
        await browse_until(edge, lambda status, body: status == 451 and "Unpaid." in body)
        await command("app", "resume", "app")
        await browse_until(edge, lambda status, body: status == 200)

        entries = await command("audit", "--limit", "10")
        actions = [entry["action"] for entry in entries["entries"]]
        assert sorted(actions) == sorted(
            ["domain.block", "application.suspend", "domain.block", "domain.unblock", "application.resume"]
        )


async def test_what_is_not_blocked_cannot_be_unblocked(database: Database, dsn: str, tmp_path: Path) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn)
    load_keyring(tmp_path / "master.key", create=True)
    for arguments, words in (
        (("domain", "unblock", DOMAIN), "is not blocked"),
        (("domain", "block", DOMAIN, "--reason", " "), "printable characters"),
        (("domain", "block", DOMAIN, "--reason", "x" * 501), "printable characters"),
        (("app", "suspend", "none", "--reason", "x"), "there is no application none"),
    ):
        done = await asyncio.to_thread(run, *arguments, env=env)
        assert done.returncode != 0
        assert words in " ".join(done.stderr.split())
