"""Whom the system's roots are trusted for: the same certificates, whatever Python runs us."""

from __future__ import annotations

import ssl

from common.settings import load
from common.trust import authority_trust, verifying_context


def test_no_version_of_python_is_stricter_than_another() -> None:
    for context in (verifying_context(), authority_trust(load({}))):
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
