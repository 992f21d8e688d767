"""Checks of the certificate authorities: the internal one, or each ACME directory."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from api.cli.doctor.asking import ANSWER_SECONDS
from api.cli.doctor.findings import Finding, broken, note, ok
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.settings import Settings

_SUBJECT = "certificates"


def check_authorities(settings: Settings) -> Iterator[Finding]:
    """Check that the authorities can be reached, and that they know our account."""
    if settings.issuer == "internal":
        yield note(_SUBJECT, "from a CA of our own, which browsers do not trust", "handbook, Go live with a public CA")
        return
    if not settings.acme_directory:
        remedy = "set FRONTAGE_ACME_DIRECTORY to the address of a CA's ACME directory"
        yield broken(_SUBJECT, "no CA is configured", remedy)
    for directory in settings.acme_directory:
        problem = _problem_of_directory(settings, directory)
        yield ok(_SUBJECT, directory) if problem is None else broken(_SUBJECT, f"{directory} {problem[0]}", problem[1])
    if settings.edge_http.port != 80:
        seen = f"public CAs ask port 80, the edge listens on {settings.edge_http}"
        yield note(_SUBJECT, seen, "let port 80 lead there")


def _problem_of_directory(settings: Settings, url: str) -> tuple[str, str] | None:
    """Return what keeps us from an account there, and the remedy."""
    from common.trust import authority_trust

    try:
        trust = authority_trust(settings)
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS, context=trust) as response:  # noqa: S310 - https only
            directory = json.loads(response.read())
        needs_external = directory.get("meta", {}).get("externalAccountRequired", False)
        is_directory = "newOrder" in directory
    except (OSError, OperatorError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"is not trusted ({reason.verify_message})", "set FRONTAGE_ACME_CA_FILE if that CA is your own"
        return f"cannot be asked ({reason})", "see whether this machine reaches it"
    except (ValueError, AttributeError):
        is_directory, needs_external = False, False
    if not is_directory:
        return "is no ACME directory", "set FRONTAGE_ACME_DIRECTORY to the address that the CA documents"
    if needs_external and urlsplit(url).netloc not in {account.authority for account in settings.acme_eab}:
        return "wants an external account", "set FRONTAGE_ACME_EAB"
    return None
