"""Parses problem documents (RFC 7807, RFC 8555 §6.7) and explains them in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from acme import messages
from josepy.errors import DeserializationError

from common.errors import FrontageError
from monitor.certificates.issuer import FailureKind, IssuanceFailed

_MOST_WORDS: Final = 500  # characters of a CA's text that are kept
_LONGEST_RETRY_AFTER_SECONDS: Final = 7 * 86_400.0
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e\xa0-\uffff]+")


class AcmeProblem(FrontageError):
    """A CA's refusal. `code` is the error type after RFC 8555's prefix, "" for any other."""

    def __init__(self, status: int, code: str, detail: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(f"{code or status}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds

    @property
    def is_passing(self) -> bool:
        """Return whether the same request may succeed a moment later."""
        return self.status >= 500 or self.code == "serverInternal"


def read_problem(status: int, body: bytes, retry_after_seconds: float) -> AcmeProblem:
    """Parse the refusal in a response of that status; the body may be anything."""
    try:
        error = messages.Error.json_loads(body.decode("utf-8"))
        return AcmeProblem(status, _code(error), _detail(error), retry_after_seconds)
    except (DeserializationError, ValueError, AttributeError, TypeError):  # the library does not check types
        return AcmeProblem(status, "", "", retry_after_seconds)


def failure(problem: AcmeProblem, authority: str) -> IssuanceFailed:
    """Explain a refusal to the domain's owner; `authority` is the CA's host name."""
    kind = _kind(problem)
    detail = f": {problem.detail}" if problem.detail else ""
    retry_after = problem.retry_after_seconds
    match kind:
        case "rate_limited":
            words = f"{authority} has had too many requests for now{detail}"
        case "caa":
            words = f"a CAA record forbids {authority} to issue{detail}"
        case "unavailable":
            words = f"{authority} is not available{detail or f' (it answered {problem.status})'}"
        case _:
            words = f"{authority} refused{detail or f' (it answered {problem.status})'}"
    return IssuanceFailed(words, retry_after_seconds=retry_after, kind=kind)


def failed_validation(domain: str, error: messages.Error | None, authority: str) -> IssuanceFailed:
    """Explain an order that ended as invalid to the domain's owner, with the reason that the CA gives."""
    kind: FailureKind = "caa" if error is not None and _code(error) == "caa" else "validation"
    reason = _detail(error) if error is not None else ""
    return IssuanceFailed(f"{authority} could not validate {domain}: {reason or 'it gives no reason'}", kind=kind)


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float:
    """Return the pause that ``Retry-After`` asks for (RFC 9110 §10.2.3); 0.0 when it is absent or unreadable."""
    text = headers.get("Retry-After", "").strip()
    try:
        seconds = (
            float(text) if text.isascii() and text.isdigit() else (parsedate_to_datetime(text) - now).total_seconds()
        )
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_SECONDS)


def _kind(problem: AcmeProblem) -> FailureKind:
    """Classify a refusal as one of the kinds of failure."""
    if problem.status == 429 or problem.code == "rateLimited":
        return "rate_limited"
    if problem.code == "caa":
        return "caa"
    return "unavailable" if problem.is_passing or problem.code == "badNonce" else "other"


def _code(error: messages.Error) -> str:
    """Return the error type without RFC 8555's prefix; "" for an error of another namespace."""
    return error.typ.removeprefix(messages.ERROR_PREFIX) if messages.is_acme_error(error) else ""


def _detail(error: messages.Error) -> str:
    """Return the detail text and that of its subproblems on one line, for logs and API answers."""
    texts = [error.detail or error.title or error.description or "", *map(_detail, error.subproblems or ())]
    return _UNPRINTABLE.sub(" ", "; ".join(filter(None, texts)))[:_MOST_WORDS]
