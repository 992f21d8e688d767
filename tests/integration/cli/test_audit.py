"""What an operator changes by a command is in the audit log once, with the operator's login name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import frontage

PASSWORD = "correct horse battery staple\n"


class Terminal:
    """Runs commands, and reads what each of them added to the audit log."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._seen: set[str] = set()

    def run(self, *arguments: str) -> Any:
        done = frontage.run(*arguments, env=self._env)
        assert done.returncode == 0, (arguments, done.stderr)
        return json.loads(done.stdout)

    def changes(self, *arguments: str) -> tuple[Any, list[str]]:
        """Return what the command prints, and the actions that it added to the log."""
        shown = self.run(*arguments, "--json")
        added = [
            each for each in self.run("audit", "--json", "--limit", "1000")["entries"] if each["id"] not in self._seen
        ]
        self._seen |= {each["id"] for each in added}
        assert {(each["way"], each["actor"]) for each in added} <= {("command", "operator-of-the-test")}, added
        return shown, [each["action"] for each in reversed(added)]


@pytest.fixture
def terminal(dsn: str, tmp_path: Path) -> Terminal:
    env = frontage.environment(tmp_path / "state", DATABASE_URL=dsn, DNS_SERVERS="127.0.0.1:1")
    env["SUDO_USER"] = "operator-of-the-test"
    return Terminal(env)


def test_changes_of_people_are_recorded_once(terminal: Terminal) -> None:
    terminal.run("migrate", "--json")

    def recorded(*arguments: str) -> list[str]:
        return terminal.changes(*arguments)[1]

    ada = "ada@acme.test"
    assert recorded("organisation", "create", "Acme") == ["organisation.create"]
    assert recorded("user", "create", ada, "--organisation", "Acme") == ["user.create", "member.put"]
    assert recorded("user", "create", "eve@acme.test", "--organisation", "New") == [
        "user.create",
        "organisation.create",
        "member.put",
    ]
    assert recorded("organisation", "add-member", "Acme", "bob@acme.test", "--role", "viewer") == ["member.put"]
    assert recorded("organisation", "remove-member", "Acme", "bob@acme.test") == ["member.remove"]
    assert recorded("user", "link", ada) == ["user.link"]
    assert recorded("user", "operator", ada, "--off") == ["user.operator"]
    assert recorded("user", "sign-out", ada) == ["user.sign_out"]
    key, actions = terminal.changes("user", "create-key", ada, "--name", "deployment")
    assert actions == ["user_key.create"]
    assert recorded("user", "revoke-key", ada, key["id"]) == ["user_key.revoke"]
    assert recorded("user", "delete", "bob@acme.test") == ["user.delete"]
    assert recorded("user", "list") == recorded("organisation", "list") == recorded("user", "keys", ada) == []


def test_changes_of_domains_and_webhooks_are_recorded_once(terminal: Terminal) -> None:
    terminal.run("migrate", "--json")

    def recorded(*arguments: str) -> list[str]:
        return terminal.changes(*arguments)[1]

    shop, url = "shop.customer.example", "https://app.partner.example"
    one = terminal.run("app", "create", "--name", "One", "--cname-target", "apps.one.example", "--webhook-url", url)
    two = terminal.run("app", "create", "--name", "Two", "--cname-target", "apps.two.example")
    first, second = one["applicationId"], two["applicationId"]
    terminal.changes("domain", "power", shop, "--application", first, "--application-url", url)
    reason = ("--reason", "Phishing was reported.")
    assert recorded("domain", "block", shop, *reason) == ["domain.block"]
    assert recorded("domain", "block", shop, *reason) == []
    assert recorded("domain", "unblock", shop) == ["domain.unblock"]
    assert recorded("app", "suspend", first, *reason, "--legal") == ["application.suspend"]
    assert recorded("app", "resume", first) == ["application.resume"]
    assert recorded("domain", "recheck", shop) == ["domain.recheck"]
    assert recorded("webhook", "enable", first) == ["webhook.enable"]
    event, actions = terminal.changes("webhook", "test", first)
    assert actions == ["webhook.test"]
    assert recorded("webhook", "replay-event", first, event["event"]) == ["webhook.replay"]
    assert recorded("webhook", "replay", first, "--from", "2026-01-01") == ["webhook.replay_failed"]
    assert recorded("alarms", "release") == ["alarms.release"]
    assert recorded("domain", "transfer", second, shop, "--application-url", url) == ["domain.moved", "power.enrol"]
    assert recorded("domain", "release", shop) == ["domain.released"]


def test_changes_of_applications_are_recorded_once(terminal: Terminal) -> None:
    terminal.run("migrate", "--json")

    def recorded(*arguments: str) -> list[str]:
        return terminal.changes(*arguments)[1]

    made, actions = terminal.changes("app", "create", "--name", "One", "--cname-target", "apps.one.example")
    one = made["applicationId"]
    assert actions == ["application.create"]
    assert recorded("app", "set", one, "--name", "Uno", "--tier", "premium") == ["application.set"]
    assert recorded("app", "set", one, "--name", "Uno") == []
    assert recorded("app", "set", one, "--service-auth", "on") == ["application.set"]
    assert recorded("app", "set", one, "--signature", "on") == ["application.rotate_signature_key"]
    assert recorded("app", "set", one, "--signature", "off") == ["application.end_signature"]
    assert recorded("app", "rotate-secret", one) == ["application.rotate_client_secret"]
    assert recorded("app", "rotate-webhook-secret", one) == ["application.rotate_webhook_secret"]
    assert recorded("app", "delete", one, "--yes") == ["application.delete"]
    assert recorded("app", "list") == []


def test_a_refused_change_is_not_recorded(terminal: Terminal) -> None:
    terminal.run("migrate", "--json")
    terminal.changes("user", "create", "ada@acme.test", "--organisation", "Acme")
    for arguments in (
        ("organisation", "remove-member", "Acme", "ada@acme.test"),
        ("organisation", "add-member", "Acme", "ada@acme.test"),
        ("user", "delete", "ada@acme.test"),
        ("user", "link", "bob@acme.test"),
        ("organisation", "create", "A\x07cme"),
    ):
        done = frontage.run(*arguments, env=terminal._env)
        assert done.returncode == 1, arguments
        assert not re.search("Traceback", done.stderr)
    assert terminal.changes("user", "list")[1] == []
