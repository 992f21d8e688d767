"""`frontage backup` and `restore`: the database in one file, by Postgres' own programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote, urlsplit

import typer

from common.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.settings import Settings


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
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
    file: Annotated[Path, typer.Argument(help="What `frontage backup` wrote.", exists=True, dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Bring a backup into an empty database, before any role starts; the master key file of its time must be in place.

    Without FRONTAGE_DATABASE_URL, into the embedded Postgres of a state directory on which nothing runs.
    """
    from common.cli.database import prepare
    from common.settings import load

    settings = load(os.environ)
    if not settings.key_file.exists():
        raise OperatorError(f"no master key at {settings.key_file}: put the copy of it there that belongs to {file}")
    with _database(settings) as dsn:
        if asyncio.run(_has_tables(dsn)):
            raise OperatorError("the database is not empty: restore into a new one, so that nothing is overwritten")
        _run("pg_restore", dsn, "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", str(file))
        asyncio.run(prepare(settings))
    print_result({"file": file}, "restored; start the roles, then run `frontage doctor`", as_json=as_json)


@contextlib.contextmanager
def _database(settings: Settings) -> Iterator[str]:
    """The address of the database set, or of the embedded one, which runs until the block is left."""
    from common.cli.up import require_database, state_dir_held
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
    """One of Postgres' client programs. The password goes by the environment, which other users cannot read.

    Raises: OperatorError.
    """
    from common.postgres.binaries import client_program

    parts = urlsplit(dsn)
    account = quote(unquote(parts.username or ""), safe="")
    host = parts.netloc.rpartition("@")[2]
    address = parts._replace(netloc=f"{account}@{host}" if account else host).geturl()
    environ = os.environ | ({"PGPASSWORD": unquote(parts.password)} if parts.password else {})
    argv = [client_program(program), *arguments]
    argv += [f"--dbname={address}"]
    try:
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    except OSError as error:
        raise OperatorError(f"{program} cannot be run: {error.strerror}") from error
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise OperatorError(f"{program} failed: {words[0] if words else f'status {done.returncode}'}")
