"""Checks of this machine: the state directory, its disk, the master key, the ports."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from api.cli.doctor.asking import accepts, get_json
from api.cli.doctor.findings import Finding, FindingState, broken, from_error, note, ok
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.settings import Settings

_FULL_BYTES = 100 * 1024**2
_LOW_BYTES = 1024**3
_LOW_RATIO, _LOW_RATIO_BYTES = 0.1, 10 * 1024**3
"""A tenth of a small disk is little; the rule FrontageDiskFull has the same bounds."""


def is_up(settings: Settings) -> bool:
    """Whether `frontage up` runs on the state directory."""
    from common.file_locks import is_held

    try:
        return is_held(settings.state_dir / "up.lock")
    except OSError:
        return False


def check_state_dir(settings: Settings) -> Finding:
    """Check that the state directory can be used."""
    directory = settings.state_dir
    subject = "state directory"
    if not directory.exists():
        return note(subject, f"{directory} does not exist yet", "`frontage up` or `frontage migrate` makes it")
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return broken(subject, f"{directory} is not yours to write", "run as its owner, or choose another")
    return ok(subject, str(directory))


def check_disk(path: Path, subject: str) -> Finding:
    """Check the disk of `path`, or of the nearest directory above it that exists. Raises: `OSError`."""
    while not path.exists():
        path = path.parent
    found = os.statvfs(path)
    free, size = (blocks * found.f_frsize for blocks in (found.f_bavail, found.f_blocks))
    return judge_space(subject, path, free, found.f_favail if found.f_files else None, size_bytes=size)


def judge_space(
    subject: str, path: Path, free_bytes: int, free_inodes: int | None, *, size_bytes: int | None = None
) -> Finding:
    """`free_inodes`, `size_bytes`: None where they are not known."""
    if free_inodes == 0:
        return broken(subject, f"{path} has room for no further file", "remove files, or enlarge the file system")
    seen = f"{path} has {free_bytes / 1024**2:,.0f} MiB free"
    if free_bytes < _FULL_BYTES:
        return broken(subject, seen, "free space, or enlarge the disk, before the edge and Postgres stop writing")
    is_nearly_full = size_bytes is not None and free_bytes < min(_LOW_RATIO * size_bytes, _LOW_RATIO_BYTES)
    if free_bytes < _LOW_BYTES or is_nearly_full:
        return note(subject, seen, "free space, or enlarge the disk")
    return ok(subject, seen)


def check_master_key(settings: Settings, *, is_needed: bool | None = None) -> Finding:
    """`is_needed`: whether the database holds secrets sealed under a key; None where it could not be asked."""
    from common.secrets import load_keyring

    subject, path = "master key", settings.key_file
    if not _exists(path):
        if is_needed:
            seen = f"no master key at {path}, and the database holds secrets sealed under one"
            remedy = (
                "restore it from your backup, or point FRONTAGE_MASTER_KEY_FILE at it; a new key opens none of them"
            )
            return broken(subject, seen, remedy)
        if is_needed is None:
            return note(subject, f"no master key at {path}", "restore it if the database has been used before")
        return note(subject, f"no master key at {path} yet", "`frontage up` or `frontage migrate` makes it")
    try:
        load_keyring(path)
        mode = stat.S_IMODE(path.stat().st_mode)
    except (OperatorError, OSError) as error:
        return from_error(subject, error)
    if mode & 0o077:
        return broken(subject, f"others can read {path}", f"run `chmod 600 {path}`")
    return Finding(subject, FindingState.OK, str(path), "keep a copy of it apart from the database's backups")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True


def check_ports(settings: Settings, *, is_up: bool) -> Finding:
    """Check that the ports are free, or in use by what should hold them."""
    return _check_ports_of_up(settings) if is_up else _check_ports_of_roles(settings)


def check_plain_text(settings: Settings) -> list[Finding]:
    """Check that no secret crosses a network in plain text."""
    from api.rules.plain_text import find_exposure, find_open_listener

    subject = "plain text"
    if (exposure := find_exposure(settings)) is not None:
        return [broken(subject, exposure.seen, exposure.remedy)]
    if (exposure := find_open_listener(settings)) is not None:
        return [note(subject, exposure.seen, exposure.remedy)]
    return []


def _check_ports_of_up(settings: Settings) -> Finding:
    from api.cli.ports import LISTENERS
    from common.settings import PREFIX

    listeners = {PREFIX + field.upper(): getattr(settings, field) for field in LISTENERS}
    silent = [name for name, address in listeners.items() if address is not None and not accepts(address)]
    if silent:
        return broken("ports", f"nothing answers on {', '.join(silent)}", "see the log of `frontage up`")
    return ok("ports", "`frontage up` answers on all of them")


def _check_ports_of_roles(settings: Settings) -> Finding:
    """Each may run or not; the ports of one that does not have to be free."""
    from api.cli.ports import LISTENERS, find_problem

    asked = {"edge": settings.edge_admin, "api": settings.api_listen, "monitor": settings.monitor_admin}
    serving = [role for role, address in asked.items() if address is not None and get_json(address, "/healthz")]
    problem = find_problem(settings, [field for field in LISTENERS if field.partition("_")[0] not in serving])
    if problem:
        return from_error("ports", OperatorError(problem))
    answering = " and ".join(f"`frontage {role}`" for role in serving)
    return ok("ports", f"{answering} on this machine; the other ports are free" if serving else "free for the roles")
