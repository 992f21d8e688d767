"""`frontage app …` and `token` against a real database found through the state directory."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import jwt
import pytest

from common.postgres import EmbeddedPostgres
from tests.integration.cli.frontage import environment, run

Frontage = Callable[..., Any]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    state_dir = tmp_path_factory.mktemp("applications") / "state"
    settings = environment(state_dir)
    with EmbeddedPostgres(state_dir):
        migrated = run("migrate", env=settings)
        assert migrated.returncode == 0, migrated.stderr
        yield settings


@pytest.fixture
def frontage(env: dict[str, str]) -> Frontage:
    """Run a command that must succeed; what it printed, read as JSON."""

    def command(*arguments: str) -> Any:
        result = run(*arguments, env=env)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return command


def create(frontage: Frontage, target: str, *more: str) -> dict[str, str]:
    return cast("dict[str, str]", frontage("app", "create", "--name", "Shop", "--cname-target", target, *more))


def test_create_prints_id_and_secrets_once_and_show_never(env: dict[str, str], frontage: Frontage) -> None:
    made = create(frontage, "Create.Partner.Example.", "--application-url", "https://origin.example/shop", "--test")
    assert made.keys() == {"applicationId", "clientSecret", "webhookSecret"}
    assert made["webhookSecret"].startswith("whsec_")
    shown = run("app", "show", made["applicationId"], env=env).stdout
    assert made["clientSecret"] not in shown
    assert made["webhookSecret"] not in shown
    application = json.loads(shown)
    assert application["cnameTarget"] == "create.partner.example"
    assert application["test"]
    assert application["applicationUrl"] == "https://origin.example/shop"
    assert application in frontage("app", "list")


def test_set_changes_what_is_given_and_an_empty_value_removes(frontage: Frontage) -> None:
    made = create(frontage, "set.partner.example", "--webhook-url", "https://hooks.example/in")
    before = frontage("app", "show", made["applicationId"])
    after = frontage(
        "app", "set", made["applicationId"], "--webhook-url", "", "--root-path-access", "/static",
        "--root-path-access", "/img/", "--tier", "enterprise",
    )  # fmt: skip
    assert after == before | {"webhookUrl": None, "rootPathAccess": ["/static", "/img/"], "tier": "enterprise"}
    assert frontage("app", "set", made["applicationId"], "--root-path-access", "")["rootPathAccess"] == []


def test_service_auth_token_is_printed_only_when_made(frontage: Frontage) -> None:
    set_ = ("app", "set", create(frontage, "auth.partner.example")["applicationId"], "--service-auth")
    first = frontage(*set_, "on")
    assert first["serviceAuth"] == "on"
    assert "serviceAuthToken" not in frontage(*set_, "on")
    rotated = frontage(*set_, "rotate")
    assert rotated["serviceAuthToken"] != first["serviceAuthToken"]
    assert rotated["serviceAuthRotating"]
    assert not frontage(*set_, "finish")["serviceAuthRotating"]
    assert frontage(*set_, "off")["serviceAuth"] == "off"


def test_signature_key_is_printed_only_when_made_and_its_predecessor_signs_for_a_day(frontage: Frontage) -> None:
    id_ = create(frontage, "signature.partner.example")["applicationId"]
    set_ = ("app", "set", id_, "--signature")
    first = frontage(*set_, "on")
    assert (first["signature"], first["previousSignatureKeySignsUntil"]) == ("on", None)
    assert "signatureKey" not in frontage(*set_, "on")
    rotated = frontage(*set_, "rotate")
    assert rotated["signatureKey"] != first["signatureKey"]
    until = datetime.fromisoformat(rotated["previousSignatureKeySignsUntil"]).timestamp()
    assert until == pytest.approx(time.time() + 86_400, abs=30)
    shown = frontage("app", "show", id_)
    assert "signatureKey" not in shown
    assert rotated["signatureKey"] not in json.dumps(shown)
    off = frontage(*set_, "off")
    assert (off["signature"], off["previousSignatureKeySignsUntil"]) == ("off", None)


def test_options_about_the_origin_and_its_absence_are_set_shown_and_taken_away(
    frontage: Frontage, tmp_path: Path
) -> None:
    id_ = create(frontage, "options.partner.example")["applicationId"]
    before = frontage("app", "show", id_)
    page = tmp_path / "page.html"
    page.write_text("<h1>ä {{status}}</h1>")
    after = frontage(
        "app", "set", id_, "--send-host", "customer", "--origin-server-name", "Origin.Example.", "--origin-verify",
        "off", "--maintenance", "on", "--error-page", str(page), "--buffer-uploads", "10m",
        "--http2", "off", "--minimum-tls", "1.3",
    )  # fmt: skip
    assert after == before | {
        "sendHost": "customer",
        "originServerName": "origin.example",
        "originVerify": "off",
        "maintenance": "on",
        "bufferUploadsBytes": 10_485_760,
        "http2": "off",
        "minimumTls": "1.3",
        "errorPageBytes": page.stat().st_size,
    }
    assert after in frontage("app", "list")
    assert frontage("app", "set", id_, "--name", "Shop") == after
    back = frontage(
        "app", "set", id_, "--send-host", "origin", "--origin-server-name", "none", "--origin-verify", "on",
        "--maintenance", "off", "--error-page", "none", "--buffer-uploads", "off",
        "--http2", "on", "--minimum-tls", "1.2",
    )  # fmt: skip
    assert back == before


@pytest.mark.parametrize("content", [b"", b"x" * 65_537, b"\xff", b"<p>\0"])
def test_what_is_no_page_is_refused(env: dict[str, str], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "page.html").write_bytes(content)
    for file in ("page.html", "nosuch.html", "."):
        result = run("app", "set", "any", "--error-page", str(tmp_path / file), env=env)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr


def test_token_is_signed_with_the_secret_for_an_hour_and_follows_a_rotation(
    env: dict[str, str], frontage: Frontage
) -> None:
    made = create(frontage, "token.partner.example")

    def claims(secret: str) -> dict[str, Any]:
        token = run("token", made["applicationId"], env=env).stdout.strip()
        return jwt.decode(token, secret, algorithms=["HS256"], options={"require": ["exp"]})

    assert claims(made["clientSecret"])["exp"] == pytest.approx(time.time() + 3600, abs=30)
    rotated = frontage("app", "rotate-secret", made["applicationId"])
    assert claims(rotated["clientSecret"])["applicationId"] == made["applicationId"]
    assert rotated["previousSecretWorksUntil"]
    assert frontage("app", "show", made["applicationId"])["previousSecretWorks"] is True


def test_a_browsers_token_names_what_it_is_for(env: dict[str, str], frontage: Frontage) -> None:
    made = create(frontage, "browser.partner.example")
    configuration = f"cfg_{'0' * 32}"
    bounds = ("--domain", "Customer.Example.", "--configuration", configuration, "--user", "user-7")
    token = run("token", made["applicationId"], "--scope", "connect", *bounds, env=env).stdout.strip()
    claims = jwt.decode(token, made["clientSecret"], algorithms=["HS256"])
    assert {name: claims[name] for name in ("scope", "domain", "configurationId", "userId")} == {
        "scope": "connect",
        "domain": "customer.example",
        "configurationId": configuration,
        "userId": "user-7",
    }
    refused = run("token", made["applicationId"], "--domain", "customer.example", env=env)
    assert (refused.returncode, "--scope connect" in refused.stderr) == (1, True)
    assert frontage("app", "rotate-secret", made["applicationId"], "--keep-links")["clientSecret"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cname-target", "not a name"),
        ("--cname-target", "127.0.0.1"),
        ("--cname-target", "a.partner.example", "--application-url", "ftp://origin.example"),
        ("--cname-target", "a.partner.example", "--application-url", "https://user@origin.example"),
        ("--cname-target", "a.partner.example", "--webhook-url", "https://hooks.example/#part"),
        ("--cname-target", "a.partner.example", "--webhook-url", "http://10.1.2.3/in"),
        ("--cname-target", "a.partner.example", "--webhook-url", "http://localhost:9000/in?key=1"),
        ("--cname-target", "a.partner.example", "--webhook-url", "http://169.254.169.254/latest/meta-data"),
        ("--cname-target", "a.partner.example", "--name", " "),
    ],
)
def test_bad_values_are_refused_as_usage(env: dict[str, str], arguments: tuple[str, ...]) -> None:
    result = run("app", "create", "--name", "Shop", *arguments, env=env)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--name", ""),
        ("--origin-server-name", "no name"),
        ("--origin-server-name", "127.0.0.1"),
        ("--send-host", "both"),
        ("--maintenance", "rotate"),
        ("--buffer-uploads", "0"),
        ("--buffer-uploads", "1.5M"),
        ("--buffer-uploads", "1025G"),
        ("--buffer-uploads", "on"),
    ],
)
def test_bad_options_are_refused_as_usage(env: dict[str, str], arguments: tuple[str, ...]) -> None:
    result = run("app", "set", "any", *arguments, env=env)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def assert_one_line(result: Any, *words: str) -> None:
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("frontage: ")
    assert result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in words), result.stderr


def test_a_target_of_another_application_and_an_unknown_id_are_one_line(
    env: dict[str, str], frontage: Frontage
) -> None:
    create(frontage, "taken.partner.example")
    taken = run("app", "create", "--name", "Other", "--cname-target", "taken.partner.example", env=env)
    assert_one_line(taken, "taken.partner.example")
    for command in (["app", "show"], ["app", "set"], ["app", "rotate-secret"], ["token"]):
        assert_one_line(run(*command, "nosuch", env=env), "nosuch", "app list")


def test_a_wrong_master_key_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    other.write_text("00000000 " + "A" * 43 + "=\n")
    other.chmod(0o600)
    assert_one_line(run("app", "list", env=env | {"FRONTAGE_MASTER_KEY_FILE": str(other)}), "master key")
    assert_one_line(run("migrate", env=env | {"FRONTAGE_MASTER_KEY_FILE": str(other)}), "master key")
    mistyped = tmp_path / "mistyped.key"
    # Which makes the first key, but no second one.
    assert_one_line(run("migrate", env=env | {"FRONTAGE_MASTER_KEY_FILE": str(mistyped)}), str(mistyped), "restore")
    assert not mistyped.exists()
    assert "does not belong to this database" in run(
        "doctor", env=env | {"FRONTAGE_MASTER_KEY_FILE": str(other)}
    ).stdout.replace("\n", " ")


@pytest.mark.parametrize(
    "dsn", ["postgresql://me:hidden@/nosuch?host={host}", "mysql://me:hidden@there/x", "hidden", "postgresql://[::1"]
)
def test_a_database_url_that_leads_nowhere_is_one_line_without_its_password(env: dict[str, str], dsn: str) -> None:
    url = dsn.format(host=Path(env["FRONTAGE_STATE_DIR"], "postgres.socket").read_text().strip())
    result = run("migrate", env=env | {"FRONTAGE_DATABASE_URL": url})
    assert_one_line(result)
    assert "hidden" not in result.stderr


def test_master_key_is_readable_by_its_owner_alone(env: dict[str, str]) -> None:
    assert stat.S_IMODE(Path(env["FRONTAGE_STATE_DIR"], "master.key").stat().st_mode) == 0o600


def test_webhook_secret_is_rotated_and_the_old_one_signs_for_a_day(env: dict[str, str], frontage: Frontage) -> None:
    made = create(frontage, "webhook-secret.partner.example", "--webhook-url", "https://hooks.example/a?key=1")
    assert frontage("app", "show", made["applicationId"])["webhookUrl"] == "https://hooks.example/a?key=1"
    rotated = frontage("app", "rotate-webhook-secret", made["applicationId"])
    assert rotated["webhookSecret"].startswith("whsec_")
    assert rotated["webhookSecret"] != made["webhookSecret"]
    hours = (datetime.fromisoformat(rotated["previousSecretSignsUntil"]).timestamp() - time.time()) / 3600
    assert 23.9 < hours <= 24
    shown = frontage("app", "show", made["applicationId"])
    assert shown["previousWebhookSecretSignsUntil"] is not None
    assert shown["webhookDisabledAt"] is None
    missing = run("app", "rotate-webhook-secret", "nobody", env=env)
    assert missing.returncode == 1
    assert "there is no application nobody" in missing.stderr


def test_the_audit_log_prints_what_changed_in_words(env: dict[str, str], frontage: Frontage) -> None:
    made = create(frontage, "audit.partner.example")
    frontage("app", "set", made["applicationId"], "--webhook-url", "https://hooks.partner.example/in")
    changed, created = run("audit", "--application", made["applicationId"], env=env).stdout.splitlines()
    none = run("audit", "--application", "nobody", env=env)
    assert (none.returncode, none.stdout, none.stderr) == (0, "", "the audit log has no such entry\n")
    assert "(webhook url: none → https://hooks.partner.example/in)" in changed
    assert "cname target: none → audit.partner.example" in created
    assert "webhook url" not in created
