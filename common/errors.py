"""The one root of Frontage's errors.

An error carries what happened in words a reader can act on. How it is rendered belongs to the border
that renders it: the command line prints an `OperatorError` as one line, the API has a table from error
to status and message (`api.errors`), the edge has another (`edge.http.error_responses`).
"""

from __future__ import annotations

from typing import ClassVar


class FrontageError(Exception):
    """Root of every error this project raises on purpose."""


class OperatorError(FrontageError):
    """A problem that the operator can solve; the text states what to do, in one line."""


class DatabaseForbidden(OperatorError):
    """Postgres lets the login of the database's address not do this."""


class DatabaseUnavailable(FrontageError):
    """Postgres could not be reached, or did not answer in time. Retrying later is safe.

    `remedy` is what an operator does who waits for it.
    """

    remedy: ClassVar[str] = "start it, or check FRONTAGE_DATABASE_URL"

    @property
    def for_operator(self) -> str:
        """Return what happened and what to do, in one line."""
        return f"{self}: {self.remedy}"


class DatabaseBusy(DatabaseUnavailable):
    """Postgres answers, and gave this work up: a lock of another session, a full disk, no connection left."""

    remedy = "see Postgres' log for the reason"


class ReadOnlyDatabase(DatabaseUnavailable):
    """Postgres answers as a standby, which takes no writes; after a fail-over it may be the primary."""

    remedy = "point FRONTAGE_DATABASE_URL at the primary"


class InvalidName(FrontageError):
    """Text that is no domain name we serve (RFC 1035 §2.3, RFC 5890)."""


class AddressRefused(FrontageError):
    """An address the policy does not let us dial."""


class SecretUnreadable(FrontageError):
    """An envelope that this master key does not open: another key, another row, or damage."""


class FenceLost(FrontageError):
    """Another worker holds the claimed row, or the row is gone.

    The result of this work must not be stored (`monitor.claims`).
    """
