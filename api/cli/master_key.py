"""`frontage master-key …`: another master key in place of the one in use, while everything runs.

    1  a new key joins the file; it opens, and seals nothing yet      `add`
    2  it moves to the file's first line: from now on it seals        `rotate`, from here on
    3  everything sealed before is sealed anew, a few hundred rows a transaction, until nothing is left
    4  the old keys are retired in the database, and leave the file

Roles follow the file by themselves (`common.secrets`). A rotation that was interrupted, by SIGKILL too, is gone on with
by running it again: the file and the database say how far it came. One command changes the file at a time.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.printing import AsJson, make_console, print_json, print_result
from common.errors import OperatorError, SecretUnreadable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rich.progress import Progress

    from common.db.envelopes import SealedColumn
    from common.db.pool import Database
    from common.secrets import Keyring, MasterKey
    from common.settings import Settings

app = typer.Typer(help="The master key, under which all secrets are sealed.", no_args_is_help=True)


class ExportRole(StrEnum):
    """Roles that have key files of their own."""

    EDGE = "edge"


_ROWS_AT_ONCE = 200
_EDGES_SECONDS = 30.0

KeepOld = Annotated[
    bool, typer.Option("--keep-old", help="Leave the old key in the file: other machines have yet to get the new one.")
]
Grace = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=0.0, help="How long what was sealed before the switch may take until it is stored."
    ),
]


@app.command()
def show(as_json: AsJson = False) -> None:
    """Print the keys of the file, which of them seals, and how many secrets of the database each has sealed."""
    from rich import box
    from rich.table import Table

    from common.secrets import read_key_file
    from common.settings import load

    settings = load(os.environ)
    keys = read_key_file(settings.key_file)
    counts = asyncio.run(_counts(settings, keys))
    if as_json:
        print_json([{"key": key.id.hex(), "seals": not n, "secrets": counts[key.id]} for n, key in enumerate(keys)])
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("key", "", "secrets"):
        table.add_column(heading, justify="right" if heading == "secrets" else "left")
    for number, key in enumerate(keys):
        table.add_row(key.id.hex(), "opens" if number else "seals and opens", str(counts[key.id]))
    make_console().print(table)


@app.command()
def add(as_json: AsJson = False) -> None:
    """Add a new key that opens and does not seal yet. Copy the file to all machines before you rotate."""
    from common.settings import load

    settings = load(os.environ)
    key = asyncio.run(_add(settings))
    words = f"{key.id.hex()} is in {settings.key_file}; copy that to all machines, then `frontage master-key rotate`"
    print_result({"key": key.id.hex(), "file": settings.key_file}, words, as_json=as_json)


@app.command()
def rotate(keep_old: KeepOld = False, grace: Grace = 90.0, as_json: AsJson = False) -> None:
    """Seal with a new key (or the one `add` made), seal everything anew, and forget the old key."""
    from common.settings import load

    settings = load(os.environ)
    sealed, key = asyncio.run(_rotate(settings, keep_old=keep_old, grace_seconds=grace))
    if keep_old:
        words = f"{sealed} secrets are sealed under {key}; the old key is kept in the file"
    else:
        words = (
            f"{sealed} secrets are sealed under {key}, the only key of {settings.key_file} now\n"
            "keep the old key with your backups from before: they open with it alone"
        )
    print_result({"key": key, "secrets": sealed, "oldKeyKept": keep_old}, words, as_json=as_json)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; it must not exist yet.")],
    role: Annotated[ExportRole, typer.Option(help="The role that will use the file.")],
    as_json: AsJson = False,
) -> None:
    """Write a key file that opens only what a role needs. Copy it to that role's machines.

    Set FRONTAGE_MASTER_KEY_FILE there. Export again when `add` has added a key.
    """
    from common.secrets import create_key_file, read_key_file
    from common.settings import load

    settings = load(os.environ)
    keys = read_key_file(settings.key_file)
    if older := asyncio.run(_count_sealed_whole(settings)):
        raise OperatorError(
            f"{older} secrets of edges are sealed in an older form, which opens with the whole key only: "
            "run `frontage master-key rotate` first"
        )
    create_key_file(file, [key.of_edge() for key in keys])
    words = f"{file} opens the secrets of an {role.value}, and no others"
    print_result({"file": file, "role": role.value}, words, as_json=as_json)


# The work --------------------------------------------------------------------------------------------------


async def _add(settings: Settings) -> MasterKey:
    """Add a key to the file, while no rotation writes it. Raises: `OperatorError`."""
    from common.secrets import new_master_key, read_key_file, write_key_file

    async with _alone(settings):
        keys = read_key_file(settings.key_file)
        _refuse_part(settings, keys)
        if len(keys) > 1:
            raise OperatorError(
                f"{settings.key_file} has two keys already: `frontage master-key rotate` goes on with them"
            )
        key = new_master_key()
        write_key_file(settings.key_file, (*keys, key))
    return key


async def _rotate(settings: Settings, *, keep_old: bool, grace_seconds: float) -> tuple[int, str]:
    """Seal all secrets anew. Return how many they were, and the key that seals."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from common.secrets import load_keyring, read_key_file, write_key_file

    async with _alone(settings) as database:
        current = await _promote(settings, database)
        keyring = load_keyring(settings.key_file)
        switched_at = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True) as progress:
            sealed = await _seal_anew(database, keyring, progress)
            await _pass_time(progress, switched_at + grace_seconds - time.monotonic())
            while again := await _seal_anew(database, keyring, progress):
                sealed += again
        await _refuse_unreadable(database, keyring)  # first: a file may be replaced by what the database has
        await _seal_files(settings, database, keyring)
        if not keep_old:
            await _await_edges(database)
            await _retire(database, keyring)
            write_key_file(settings.key_file, [key for key in read_key_file(settings.key_file) if key.id == current.id])
    return sealed, current.id.hex()


def _refuse_part(settings: Settings, keys: tuple[MasterKey, ...]) -> None:
    """Refuse a file that holds an edge's part of the keys only. Raises: `OperatorError`."""
    if any(key.room is not None for key in keys):
        raise OperatorError(f"{settings.key_file} is the key file of an edge: use the one of the API and the monitor")


async def _promote(settings: Settings, database: Database) -> MasterKey:
    """Have a new key seal.

    The one to go on with is in the file already if the database has not retired it, and it either seals nothing yet or
    stands first.
    """
    from common.db.secrets_canary import ensure_canary, known_keys
    from common.secrets import load_keyring, new_master_key, read_key_file, write_key_file

    keys = read_key_file(settings.key_file)
    _refuse_part(settings, keys)
    async with database.transaction() as connection:
        await ensure_canary(connection, load_keyring(settings.key_file))
        known = await known_keys(connection)
    added = [key for key in keys if key.id not in known]
    needed = [key for key in keys if known.get(key.id)]
    if added:
        current = added[0]
    elif len(keys) > 1:
        current = needed[0]  # a rotation that did not end: what stands first was promoted
    else:
        current = new_master_key()
    rest = [key for key in keys if key.id != current.id]
    if keys[0].id != current.id:
        write_key_file(settings.key_file, (current, *rest))
    async with database.transaction() as connection:
        await ensure_canary(connection, load_keyring(settings.key_file))
    return current


async def _seal_anew(database: Database, keyring: Keyring, progress: Progress) -> int:
    from common.db import envelopes

    count = 0
    for place in envelopes.SEALED_COLUMNS:
        async with database.connection() as connection:
            old = await envelopes.count_old(connection, place, keyring.current)
        if old:
            count += await _seal_place(database, keyring, place, progress, old)
    return count


async def _seal_place(database: Database, keyring: Keyring, place: SealedColumn, progress: Progress, total: int) -> int:
    """Small transactions: each holds its rows, and the change feed, only for a moment."""
    from common.db import envelopes
    from common.db.envelopes import SealedValue

    task = progress.add_task(str(place), total=total)
    count, after = 0, None
    while True:
        async with database.transaction() as connection:
            found = await envelopes.lock_old(connection, place, keyring.current, after, most=_ROWS_AT_ONCE)
            fresh = []
            for each in found:
                with suppress(SecretUnreadable):  # seen to in the end
                    identity = place.identity(each.key[0])
                    fresh.append(SealedValue(each.key, keyring.seal(keyring.open(each.envelope, identity), identity)))
            await envelopes.replace(connection, place, fresh)
        count += len(fresh)
        progress.update(task, completed=count)
        if len(found) < _ROWS_AT_ONCE:
            progress.remove_task(task)
            return count
        after = found[-1].key


async def _seal_files(settings: Settings, database: Database, keyring: Keyring) -> None:
    """Seal anew what lies sealed in this state directory. Raises: `OperatorError`."""
    from common.secrets import SEALED_FILES, key_id_of, replace_file

    for name, identity in SEALED_FILES.items():
        path = settings.state_dir / name
        try:
            envelope = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OperatorError(f"cannot read {path}: {error.strerror or error}") from error
        if key_id_of(envelope) == keyring.current:
            continue
        try:
            fresh = keyring.seal(keyring.open(envelope, identity), identity)
        except SecretUnreadable as error:
            shared = await _find_shared_root(database, path)
            if shared is None:
                raise OperatorError(
                    f"no key of the file opens {path}: the old key stays in the file. If this machine's monitor uses"
                    " the internal authority, restart it, which places the installation's root there; if no monitor"
                    f" does, move {path.parent} away. Then run the command again"
                ) from error
            fresh = shared
        replace_file(path, fresh)


async def _find_shared_root(database: Database, path: Path) -> bytes | None:
    """Return the sealed key of the installation's root, if the file is a copy that a removed key has sealed.

    The root was sealed anew elsewhere, and a monitor replaces its copy only when it starts.
    """
    from common.db import internal_root

    async with database.connection() as connection:
        root = await internal_root.find(connection)
    try:
        certificate = path.with_name("root.pem").read_bytes()
    except OSError:
        return None
    return root.private_key if root is not None and root.certificate.encode("ascii") == certificate else None


async def _refuse_unreadable(database: Database, keyring: Keyring) -> None:
    """Refuse to go on while anything is left that could not be sealed anew. Raises: `OperatorError`."""
    from common.db import envelopes

    async with database.connection() as connection:
        left = {
            str(each): await envelopes.count_old(connection, each, keyring.current) for each in envelopes.SEALED_COLUMNS
        }
    damaged = [f"{count} in {place}" for place, count in left.items() if count]
    if damaged:
        raise OperatorError(
            f"no key of the file opens {', '.join(damaged)}: the old key stays in the file until they are replaced"
        )


async def _pass_time(progress: Progress, seconds: float) -> None:
    """Work that had sealed something before the switch may store it for so long."""
    if seconds <= 0:
        return
    task = progress.add_task("waiting for work begun before", total=round(seconds))
    for second in range(round(seconds)):
        await asyncio.sleep(1)
        progress.update(task, completed=second + 1)
    progress.remove_task(task)


async def _await_edges(database: Database, *, within_seconds: float = _EDGES_SECONDS) -> None:
    """Wait until no edge serves what is sealed under the old key. Raises: `OperatorError`."""
    from common.clock import SystemClock
    from common.liveness import await_edges

    reach = await await_edges(database, SystemClock(), within_seconds=within_seconds)
    if reach.behind:
        edges = ", ".join(f"{edge.node_id} {edge.host}".strip() for edge in reach.behind)
        raise OperatorError(
            f"everything is sealed anew, but these edges have not applied it: {edges};"
            " run the command again once they have"
        )


async def _retire(database: Database, keyring: Keyring) -> None:
    from common.db.secrets_canary import retire_all_but

    async with database.transaction() as connection:
        await retire_all_but(connection, keyring.current)


@asynccontextmanager
async def _alone(settings: Settings) -> AsyncIterator[Database]:
    """Open the database for one rotation at a time. Raises: `OperatorError`."""
    from common.db.address import resolve_dsn
    from common.db.envelopes import rotating
    from common.db.pool import open_pool
    from common.db.schema import check_schema

    async with (
        open_pool(resolve_dsn(settings), size=2, application_name="frontage master-key") as database,
        database.connection() as connection,
    ):
        await check_schema(connection)
        async with rotating(connection) as is_alone:
            if not is_alone:
                raise OperatorError("the master key is being rotated, or a key added, by another command")
            yield database


async def _count_sealed_whole(settings: Settings) -> int:
    from common.db import envelopes
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool

    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage master-key") as database,
        database.connection() as connection,
    ):
        return await envelopes.count_sealed_whole(connection, "edge")


async def _counts(settings: Settings, keys: tuple[MasterKey, ...]) -> dict[bytes, int]:
    from common.db import envelopes
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool

    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage master-key") as database,
        database.connection() as connection,
    ):
        return {key.id: await envelopes.count(connection, key.id) for key in keys}
