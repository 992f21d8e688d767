"""`frontage backup` and `restore`: the database in one file, by Postgres' own programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote

import typer

from api.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.settings import Settings

# What Postgres' programs keep to where the address has none of its own: of several servers a silent one is passed
# over, and a restore passes over those that only read.
_WAITS = {"PGCONNECT_TIMEOUT": "3"}
_WRITES = {"PGTARGETSESSIONATTRS": "read-write"}


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Write the database to a file, while everything runs. Keep a copy of the master key file apart from it."""
    from common.atomic_files import file_replaced
    from common.db.address import resolve_dsn
    from common.settings import load

    settings = load(os.environ)
    if file.exists():
        raise OperatorError(f"{file} exists: choose another name, so that no backup is overwritten")
    try:
        with file_replaced(file) as draft:
            _run("pg_dump", resolve_dsn(settings), "--format=custom", f"--file={draft}")
    except OSError as error:
        raise OperatorError(f"{file} cannot be written: {error.strerror}") from error
    size = file.stat().st_size
    shown = {"file": file, "bytes": size, "masterKeyFile": settings.key_file}
    print_result(shown, f"{file}: {size / 1_000_000:.1f} MB", as_json=as_json)
    typer.echo(f"the secrets in it open with {settings.key_file}: keep a copy of that file elsewhere", err=True)


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `frontage backup` wrote.", exists=True, dir_okay=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Bring a backup into an empty database, before any role starts; the master key file of its time must be in place.

    Without FRONTAGE_DATABASE_URL, into the embedded Postgres of a state directory on which nothing runs.
    """
    from api.cli.database import prepare
    from common.settings import load

    settings = load(os.environ)
    if not settings.key_file.exists():
        raise OperatorError(f"no master key at {settings.key_file}: put the copy of it there that belongs to {file}")
    with _database(settings) as dsn:
        if asyncio.run(_has_tables(dsn)):
            raise OperatorError("the database is not empty: restore into a new one, so that nothing is overwritten")
        _restore(dsn, file)
        asyncio.run(prepare(settings))
    print_result({"file": file}, "restored; start the roles, then run `frontage doctor`", as_json=as_json)


@contextlib.contextmanager
def _database(settings: Settings) -> Iterator[str]:
    """Provide the address of the database set, or of the embedded one, which runs until the block is left."""
    from api.cli.up import require_database, state_dir_held
    from common.postgres import EmbeddedPostgres, running_dsn

    if settings.database_url is not None:
        yield settings.database_url
        return
    require_database(settings)
    with state_dir_held(settings):
        postgres = EmbeddedPostgres(settings.state_dir)
        try:
            postgres.start()
            dsn = running_dsn(settings.state_dir)
            assert dsn is not None
            yield dsn
        finally:
            postgres.stop()


async def _has_tables(dsn: str) -> bool:
    from common.db.schema import has_tables
    from common.db.session import open_session

    session = await open_session(dsn, "frontage restore")
    try:
        return await has_tables(session)
    finally:
        await session.close()


def _run(program: str, dsn: str, *arguments: str) -> None:
    """Run one of Postgres' client programs. Raises: `OperatorError`."""
    from common.postgres.binaries import client_program

    address, environ = _address(dsn)
    argv = [client_program(program), *arguments, address]
    try:
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    except OSError as error:
        raise OperatorError(f"{program} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise _failure(program, done.stderr, done.returncode)


def _restore(dsn: str, file: Path) -> None:
    """Restore in one transaction: pg_restore writes the SQL, and psql runs the part that the server knows.

    Raises: OperatorError.
    """
    from common.postgres.binaries import client_program

    address, environ = _address(dsn)
    environ = _WRITES | environ
    reader = [client_program("pg_restore"), "--no-owner", "--no-privileges", "--file=-", str(file)]
    writer = [client_program("psql"), "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
    writer += ["--output=/dev/null", address]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as reader_words,
        tempfile.TemporaryFile("w+") as writer_words,
        subprocess.Popen(reader, stdout=pipe, stderr=reader_words) as reading,
        subprocess.Popen(writer, stdin=pipe, stderr=writer_words, env=environ) as writing,
    ):
        assert reading.stdout is not None
        assert writing.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # psql has ended, and says why
            writing.stdin.writelines(without_newer_settings(reading.stdout))
            writing.stdin.flush()
        reading.stdout.close()
        if reading.wait() and writing.poll() is None:
            writing.kill()  # at the end of its input it would commit what it has
        with contextlib.suppress(BrokenPipeError):
            writing.stdin.close()
        for program, process, words in (("psql", writing, writer_words), ("pg_restore", reading, reader_words)):
            if process.wait() > 0:
                words.seek(0)
                raise _failure(program, words.read(), process.returncode)
        if writing.returncode or reading.returncode:
            raise OperatorError("the restore was interrupted: nothing was changed")


def without_newer_settings(script: Iterable[bytes]) -> Iterator[bytes]:
    """Return the SQL of a restore without a setting that Postgres 17's and later programs begin it with.

    Older servers refuse it, and no session of ours has it set.
    """
    is_beginning = True
    for line in script:
        if is_beginning and line == b"SET transaction_timeout = 0;\n":
            is_beginning = False
        else:
            yield line


def _address(dsn: str) -> tuple[str, dict[str, str]]:
    """Return the argument that names the database, and the environment with its password.

    Other users cannot read that environment.
    """
    from common.db.hosts import split_authority

    authority, parts = split_authority(dsn)
    credentials, _, servers = authority.rpartition("@")
    name, _, password = credentials.partition(":")
    account = quote(unquote(name), safe="")
    address = parts._replace(netloc=f"{account}@{servers}" if account else servers).geturl()
    environ = _WAITS | os.environ | ({"PGPASSWORD": unquote(password)} if password else {})
    return f"--dbname={address}", environ


def _failure(program: str, words: str, status: int) -> OperatorError:
    lines = words.strip().splitlines()
    return OperatorError(f"{program} failed: {lines[0] if lines else f'status {status}'}")
