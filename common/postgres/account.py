"""Chooses the account that the server runs as.

It is the current user or, for root (which Postgres refuses), an existing unprivileged user.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from common.errors import OperatorError
from common.processes import UnixAccount

_CANDIDATES = ("frontage", "postgres", "nobody")


def choose(home: Path) -> UnixAccount | None:
    """Return the account that the server runs as, or None for the current user.

    The owner of an existing `home` wins, so that the cluster in it stays readable.

    Raises: OperatorError when it is another user's, or no user fits.
    """
    found = home.stat() if home.exists() else None
    if os.geteuid() != 0:
        if found is not None and found.st_uid != os.geteuid():
            raise OperatorError(f"{home} belongs to {_name(found.st_uid)}: run frontage as that user, or as root")
        return None
    if found is not None and found.st_uid != 0:  # root's: an interrupted start had not yet changed its owner
        return UnixAccount(_name(found.st_uid), found.st_uid, found.st_gid)
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return UnixAccount(name, entry.pw_uid, entry.pw_gid)
    raise OperatorError(f"PostgreSQL does not run as root: add a user named {_CANDIDATES[0]}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
