"""`frontage up`: everything on one machine, as children of one process that ends them all.

The order is: refuse what cannot work (settings, no Postgres, a second `up`, ports), then key, database, schema, then
the roles.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn

import typer

from api.cli.printing import AsJson, print_json
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.postgres import EmbeddedPostgres
    from common.processes import Group
    from common.settings import Settings

_ROLES = ("edge", "api", "monitor")  # the edge takes longest: its processes start one another
_RESTART_SECONDS = 1.0


def up(as_json: AsJson = False) -> None:
    """Run everything on this machine: database, API, monitor and edge. Ctrl-C ends it.

    Prints one line beginning "ready" when every role serves; with --json, that is a document with the addresses.
    """
    from common import logs
    from common.settings import load

    settings = load(os.environ)
    logs.configure("up", level=settings.log_level)
    asyncio.run(_until_signalled(settings, as_json=as_json))


async def _until_signalled(settings: Settings, *, as_json: bool) -> None:
    """Run `everything` until a signal: a first one ends it in order, a second one at once."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    require_database(settings)
    try:
        with state_dir_held(settings):
            async with everything(settings, os.environ) as group:
                if as_json:
                    print_json(_addresses(settings))
                else:
                    typer.echo(ready_line(settings))
                group.pass_output_on()  # an access log on standard output, and only behind the line above
                await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


def ready_line(settings: Settings) -> str:
    """Return the line that says where everything serves."""
    return (
        f"ready: http://{settings.edge_http} and https://{settings.edge_https} (edge),"
        f" {settings.base_url} (API), state in {settings.state_dir}"
    )


def _addresses(settings: Settings) -> dict[str, str]:
    edge = {"http": f"http://{settings.edge_http}", "https": f"https://{settings.edge_https}"}
    return {**edge, "api": settings.base_url, "stateDir": str(settings.state_dir)}


@contextlib.asynccontextmanager
async def everything(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[Group]:
    """Run the database and all roles until the block is left. The caller holds the state directory.

    Raises: OperatorError, ChildFailed.
    """
    async with database(settings) as postgres, roles(environ, postgres) as group:
        yield group


@contextlib.asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[EmbeddedPostgres | None]:
    """Provide a database with the newest schema until the block is left: the one that is set, or the embedded one.

    Raises: OperatorError, also when a port that the roles will need is taken.
    """
    from api.cli import ports
    from api.cli.database import prepare
    from common.postgres import EmbeddedPostgres

    ports.require_free(settings)
    loop = asyncio.get_running_loop()
    loading = loop.run_in_executor(None, importlib.import_module, "common.db.migrate")  # while Postgres starts
    with contextlib.ExitStack() as stack:
        postgres = None
        if settings.database_url is None:
            postgres = EmbeddedPostgres(settings.state_dir)
            stack.callback(postgres.stop)
            postgres.start()
        await loading
        await prepare(settings)
        yield postgres


@contextlib.asynccontextmanager
async def roles(environ: Mapping[str, str], postgres: EmbeddedPostgres | None) -> AsyncIterator[Group]:
    """Run all roles until the block is left. Restart those that end, and `postgres`.

    Raises: ChildFailed when one does not start.
    """
    from common.processes import Group, role_argv
    from common.settings import load

    async with contextlib.AsyncExitStack() as stack:
        group = Group()
        stack.push_async_callback(group.stop, load(environ).edge_shutdown_delay_seconds)
        argvs = {role: role_argv(role) for role in _ROLES}
        await asyncio.gather(*(group.start(role, argv, environ) for role, argv in argvs.items()))
        keepers: list[Coroutine[None, None, NoReturn]] = [
            group.keep(role, argv, environ) for role, argv in argvs.items()
        ]
        if postgres is not None:
            keepers.append(_keep(postgres))
        await stack.enter_async_context(_running(keepers))  # the first to end: what stops must not be restarted
        yield group


def require_database(settings: Settings) -> None:
    """Refuse to start without a database.

    Raises: OperatorError when none is set and the embedded Postgres is not installed.
    """
    from common.postgres.binaries import require_installed

    if settings.database_url is None:
        require_installed()


@contextlib.contextmanager
def state_dir_held(settings: Settings) -> Iterator[None]:
    """Hold the state directory within the block, for us alone. Nothing in it may be written before.

    Raises: OperatorError when it cannot be written, or another `up` holds it.
    """
    from common.file_locks import FileLock, last_holder
    from common.postgres.layout import ensure_state_dir

    ensure_state_dir(settings.state_dir)
    path = settings.state_dir / "up.lock"
    lock = FileLock.try_acquire(path)
    if lock is None:
        first = last_holder(path)
        raise OperatorError(
            f"Frontage already runs on {settings.state_dir}{f' (process {first.pid})' if first else ''}: "
            "stop it first, or set FRONTAGE_STATE_DIR to another directory"
        )
    try:
        yield
    finally:
        lock.release()


async def _keep(postgres: EmbeddedPostgres) -> NoReturn:
    """Bring the database back when it dies by itself, under the same DSN; the roles find it again by themselves."""
    from common.logs import get_logger
    from common.processes import exited

    log = get_logger(__name__)
    while True:
        status = await exited(postgres.process)
        log.error("the embedded Postgres has ended and is started again", status=status)
        await asyncio.sleep(_RESTART_SECONDS)
        try:
            postgres.launch()
        except OperatorError as error:
            log.error("the embedded Postgres does not start", reason=str(error))


@contextlib.asynccontextmanager
async def _running(keepers: Iterable[Coroutine[None, None, NoReturn]]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(keeper, name="keep") for keeper in keepers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
