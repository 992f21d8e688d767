"""`frontage master-key …`: another master key under a running system, with the command killed at any step."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from common.clock import SystemClock
from common.db import acme_accounts, application_secrets, certificates, envelopes, internal_root
from common.db.pool import Database
from common.db.secrets_canary import ensure_canary
from common.errors import OperatorError, SecretUnreadable
from common.secrets import Keyring, key_id_of, load_keyring, read_key_file
from monitor.certificates.internal import open_internal
from tests.integration.cli import frontage
from tests.integration.monitor import parts
from tests.waiting import until

NO_GRACE = ("--grace", "0")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "master.key"


@pytest.fixture
async def keyring(database: Database, key_file: Path) -> Keyring:
    keyring = load_keyring(key_file, create=True)
    async with database.connection() as connection:
        await ensure_canary(connection, keyring)
    return keyring


@pytest.fixture
def env(dsn: str, tmp_path: Path, keyring: Keyring) -> dict[str, str]:
    return frontage.environment(tmp_path, DATABASE_URL=dsn)


def output(env: dict[str, str], *arguments: str) -> str:
    done = frontage.run("master-key", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def fill(database: Database, keyring: Keyring, *, domains: int = 3) -> None:
    """Something sealed in every place."""
    now = datetime.now(UTC)
    secret = {
        identity: keyring.seal(b"of an application", identity)
        for identity in (
            application_secrets.client_secret_identity("app"),
            application_secrets.webhook_secret_identity("app"),
            application_secrets.service_auth_identity("app"),
            application_secrets.signature_key_identity("app"),
        )
    }
    client, webhook, service_auth, signature = secret.values()
    names = [f"shop{number:05d}.customer.example" for number in range(domains)]
    keys = [keyring.seal(name.encode(), certificates.key_identity(name)) for name in names]
    async with database.transaction() as connection:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, previous_client_secret, webhook_secret,"
            " previous_webhook_secret, service_auth, next_service_auth, signature_key, previous_signature_key)"
            " values ('app', 'app', 'app', $1, $1, $2, $2, $3, $3, $4, $4)",
            *(client, webhook, service_auth, signature),
        )
        await acme_accounts.keep_key(
            connection, acme_accounts.SealedKey(keyring.seal(b"account", acme_accounts.KEY_IDENTITY), "thumbprint")
        )
        root = internal_root.SealedRoot("PEM", keyring.seal(b"root", internal_root.KEY_IDENTITY))
        await internal_root.keep(connection, root)
        await connection.execute(
            "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after)"
            " select domain, 'app', 'ca', 'chain', key, $3, $4 from unnest($1::text[], $2::bytea[]) as t (domain, key)",
            *(names, keys, now, now + timedelta(days=90)),
        )
        await connection.execute(
            "insert into orders (domain, application_id, hold_until, placed_issuer, placed_url, placed_at, placed_key)"
            " values ($1, 'app', now(), 'ca', 'url', now(), $2)",
            *(names[0], keys[0]),
        )


async def opened(database: Database, keyring: Keyring) -> dict[str, list[bytes]]:
    """All that is sealed, by its place. Raises: `SecretUnreadable`."""
    found: dict[str, list[bytes]] = {}
    for place in envelopes.SEALED_COLUMNS:
        columns = ", ".join(place.key)
        rows = await parts.fetch(
            database,
            f"select {columns}, {place.column} as envelope from {place.table}"
            f" where {place.column} is not null order by {columns}",
        )
        found[str(place)] = [keyring.open(row["envelope"], place.identity(row[place.key[0]])) for row in rows]
    return found


# Bytes that are no envelopes: digests, a public document, and answers that their application has had
NOT_SEALED = {
    "answered_challenges.challenge_hash",
    "connect_configurations.digest",
    "idempotent_requests.body",
    "idempotent_requests.key",
    "idempotent_requests.request",
    "passkeys.credential_id",
    "passkeys.public_key",
    "user_keys.token_hash",
    "rdap_bootstrap.content",
    "sessions.token_hash",
    "sign_in_links.token_hash",
}


async def test_every_column_of_envelopes_is_known(database: Database) -> None:
    rows = await parts.fetch(
        database,
        "select table_name || '.' || column_name as place from information_schema.columns"
        " where table_schema = 'public' and data_type = 'bytea'",
    )
    assert {row["place"] for row in rows} == {*map(str, envelopes.SEALED_COLUMNS), "canary.envelope", *NOT_SEALED}


async def test_everything_is_sealed_anew_and_the_old_key_is_gone(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path, tmp_path: Path
) -> None:
    issuer = open_internal(tmp_path, keyring, SystemClock())
    await fill(database, keyring, domains=450)
    before = await opened(database, keyring)
    [old] = read_key_file(key_file)
    owner = key_file.stat()
    out = output(env, "rotate", *NO_GRACE)
    [new] = read_key_file(key_file)
    assert new.id != old.id
    assert new.id.hex() in out
    assert old.line.split()[1] not in out
    assert (key_file.stat().st_mode & 0o777, key_file.stat().st_uid) == (0o600, owner.st_uid)
    for still_running_or_new in (keyring, load_keyring(key_file)):
        assert await opened(database, still_running_or_new) == before
        assert key_id_of(still_running_or_new.seal(b"", "")) == new.id
    async with database.connection() as connection:
        await ensure_canary(connection, load_keyring(key_file))
        assert await envelopes.count(connection, old.id) == 0
    assert open_internal(tmp_path, load_keyring(key_file), SystemClock())._root == issuer._root
    key_file.write_text(old.line)
    with pytest.raises(OperatorError, match="does not belong to this database"):
        async with database.connection() as connection:
            await ensure_canary(connection, load_keyring(key_file))


async def test_rotation_killed_at_any_moment_is_gone_on_with(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path
) -> None:
    await fill(database, keyring, domains=3000)
    before = await opened(database, keyring)
    [old] = read_key_file(key_file)
    for share in (1.0, 0.7, 0.3):
        process = subprocess.Popen(
            frontage.argv("master-key", "rotate", *NO_GRACE), env=env, stdout=subprocess.DEVNULL, cwd="/"
        )
        try:
            await until(partial(has_left, database, old.id, int(3000 * share)))
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
        assert await opened(database, keyring) == before
        load_keyring(key_file)
    output(env, "rotate", *NO_GRACE)
    [new] = read_key_file(key_file)
    assert new.id != old.id
    assert await opened(database, load_keyring(key_file)) == before


async def has_left(database: Database, key_id: bytes, most: int) -> bool:
    async with database.connection() as connection:
        return await envelopes.count(connection, key_id) <= most


async def test_what_is_sealed_meanwhile_is_sealed_under_the_new_key(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path
) -> None:
    """By a role that knows nothing of the rotation."""
    await fill(database, keyring, domains=1000)
    stop = asyncio.Event()

    async def renew_all_the_time() -> int:
        number = 0
        while not stop.is_set():
            domain = f"shop{number % 1000:05d}.customer.example"
            sealed = keyring.seal(b"renewed", certificates.key_identity(domain))
            async with database.transaction() as connection:
                await connection.execute("update certificates set private_key = $2 where domain = $1", domain, sealed)
            number += 1
        return number

    renewing = asyncio.create_task(renew_all_the_time())
    await asyncio.to_thread(output, env, "rotate", *NO_GRACE)
    stop.set()
    assert await renewing > 10
    await opened(database, load_keyring(key_file))


async def test_key_can_be_added_first_and_the_old_one_kept(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path
) -> None:
    await fill(database, keyring)
    [old] = read_key_file(key_file)
    output(env, "add")
    assert frontage.run("master-key", "add", env=env).returncode == 1
    first, second = read_key_file(key_file)
    assert first == old
    assert key_id_of(keyring.seal(b"", "")) == old.id  # it opens, and seals nothing yet
    sealed = output(env, "rotate", "--keep-old", *NO_GRACE).split()
    assert read_key_file(key_file) == (second, old)
    shown = output(env, "show").split()
    assert shown.index(second.id.hex()) < shown.index(old.id.hex())
    assert "secrets" in sealed
    assert "secrets" in shown  # what one command counts has one name
    output(env, "rotate", *NO_GRACE)
    assert read_key_file(key_file) == (second,)


async def test_no_key_is_added_while_another_command_changes_the_file(
    database: Database, env: dict[str, str], key_file: Path
) -> None:
    before = key_file.read_bytes()
    async with database.connection() as connection, envelopes.rotating(connection):
        done = await asyncio.to_thread(frontage.run, "master-key", "add", env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert "by another command" in done.stderr
    assert key_file.read_bytes() == before
    output(env, "add")


async def test_old_key_stays_while_something_is_damaged(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path
) -> None:
    await fill(database, keyring)
    async with database.transaction() as connection:
        await connection.execute("update applications set service_auth = client_secret")  # another row's words
    done = frontage.run("master-key", "rotate", *NO_GRACE, env=env)
    assert done.returncode == 1
    assert "1 in applications.service_auth" in done.stderr
    assert len(read_key_file(key_file)) == 2
    async with database.transaction() as connection:
        await connection.execute("update applications set service_auth = null")
    output(env, "rotate", *NO_GRACE)
    assert len(read_key_file(key_file)) == 1


async def test_file_sealed_elsewhere_is_named_and_keeps_the_old_key(
    env: dict[str, str], keyring: Keyring, key_file: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "ca" / "root.key"
    foreign.parent.mkdir()
    foreign.write_bytes(load_keyring(tmp_path / "other.key", create=True).seal(b"root", "ca/root-key"))
    done = frontage.run("master-key", "rotate", *NO_GRACE, env=env)
    assert done.returncode == 1
    words = done.stderr.splitlines()[-1]
    assert words.startswith(f"frontage: no key of the file opens {foreign}: ")
    assert "restart" in words
    assert len(read_key_file(key_file)) == 2
    foreign.parent.rename(tmp_path / "ca-moved")
    output(env, "rotate", *NO_GRACE)
    assert len(read_key_file(key_file)) == 1


async def test_a_copy_of_the_root_that_was_sealed_anew_elsewhere_becomes_that(
    database: Database, env: dict[str, str], keyring: Keyring, key_file: Path, tmp_path: Path
) -> None:
    """Another machine rotated, and this one's monitor has not been started since."""
    copy = tmp_path / "ca" / "root.key"
    copy.parent.mkdir()
    copy.write_bytes(load_keyring(tmp_path / "former.key", create=True).seal(b"root", "ca/root-key"))
    (copy.parent / "root.pem").write_text("the certificate")
    sealed = keyring.seal(b"root", "ca/root-key")
    async with database.transaction() as connection:
        await internal_root.keep(connection, internal_root.SealedRoot("the certificate", sealed))
    output(env, "rotate", *NO_GRACE)
    fresh = load_keyring(key_file)
    assert fresh.open(copy.read_bytes(), "ca/root-key") == b"root"
    assert key_id_of(copy.read_bytes()) == fresh.current != key_id_of(sealed)
    async with database.connection() as connection:
        kept = await internal_root.find(connection)
    assert kept is not None
    assert kept.private_key == copy.read_bytes(), "a monitor that starts has nothing to place"


async def test_a_root_that_no_key_opens_in_the_database_either_is_left_as_it_was(
    database: Database, env: dict[str, str], keyring: Keyring, tmp_path: Path
) -> None:
    copy = tmp_path / "ca" / "root.key"
    copy.parent.mkdir()
    copy.write_bytes(load_keyring(tmp_path / "former.key", create=True).seal(b"root", "ca/root-key"))
    (copy.parent / "root.pem").write_text("the certificate")
    unreadable = load_keyring(tmp_path / "other.key", create=True).seal(b"root", "ca/root-key")
    async with database.transaction() as connection:
        await internal_root.keep(connection, internal_root.SealedRoot("the certificate", unreadable))
    before = copy.read_bytes()
    done = frontage.run("master-key", "rotate", *NO_GRACE, env=env)
    assert done.returncode == 1
    assert "1 in internal_root.private_key" in done.stderr
    assert copy.read_bytes() == before


async def test_edge_that_has_not_applied_it_keeps_the_old_key(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path
) -> None:
    from api.cli import master_key

    await fill(database, keyring)
    async with database.transaction() as connection:
        await connection.execute(
            "insert into edge_nodes (node_id, feed_identity, version, lease_until)"
            " values ('edge-1', '', 0, now() + interval '1 minute')"
        )
    with pytest.raises(OperatorError, match="edge-1"):
        await master_key._await_edges(database, within_seconds=0.1)


def seal_whole(keyring: Keyring, key_file: Path, secret: bytes, identity: str) -> bytes:
    """An envelope of version 1, under the master key itself."""
    [master] = read_key_file(key_file)
    nonce = bytes(12)
    return b"\x01" + master.id + nonce + AESGCM(master.key).encrypt(nonce, secret, identity.encode())


async def test_envelopes_of_before_open_and_are_sealed_anew_for_edges(
    database: Database, keyring: Keyring, env: dict[str, str], key_file: Path, tmp_path: Path
) -> None:
    await fill(database, keyring, domains=1)
    identity = application_secrets.service_auth_identity("app")
    async with database.connection() as connection:
        await connection.execute(
            "update applications set service_auth = $1", seal_whole(keyring, key_file, b"of an application", identity)
        )
    before = await opened(database, keyring)
    edge_file = tmp_path / "edge.key"
    arguments = ("export", "--role", "edge", str(edge_file))
    refused = frontage.run("master-key", *arguments, env=env)
    assert refused.returncode == 1
    assert "run `frontage master-key rotate` first" in refused.stderr
    assert not edge_file.exists()
    output(env, "rotate", *NO_GRACE)
    output(env, *arguments)
    assert edge_file.stat().st_mode & 0o777 == 0o600
    assert await opened(database, load_keyring(key_file)) == before
    edge = load_keyring(edge_file)
    assert edge.derive("probe") == load_keyring(key_file).derive("probe")
    rows = await parts.fetch(database, "select service_auth, client_secret from applications")
    assert edge.open(rows[0]["service_auth"], identity) == b"of an application"
    with pytest.raises(SecretUnreadable, match="secrets of edges only"):
        edge.open(rows[0]["client_secret"], application_secrets.client_secret_identity("app"))


def test_keyring_follows_its_file_and_outlives_it(tmp_path: Path) -> None:
    path, other = tmp_path / "master.key", tmp_path / "other.key"
    keyring, others = load_keyring(path, create=True), load_keyring(other, create=True)
    sealed = others.seal(b"secret", "row")
    with pytest.raises(SecretUnreadable):
        keyring.open(sealed, "row")
    both = other.read_text() + path.read_text()
    (tmp_path / "draft").write_text(both)
    (tmp_path / "draft").rename(path)
    assert keyring.open(sealed, "row") == b"secret"
    assert keyring.derive("probe") == others.derive("probe")
    path.write_text("damaged")
    assert keyring.open(keyring.seal(b"kept", "row"), "row") == b"kept"
    path.unlink()
    assert keyring.open(keyring.seal(b"kept", "row"), "row") == b"kept"
