"""The one factory of server-side SSL contexts: every rule of how we speak TLS stands here.

A context serves one domain. It must not know how records are stored or cached.

No session tickets: OpenSSL's ticket key would live as long as the context (weeks) and undo forward secrecy,
workers would not take each other's, and making two costs a fifth of a handshake (seen: 184 µs with, 153 µs
without). TLS 1.2 clients may still resume by session id, which only the same context, so only the same
name, knows; `holds_too_many_sessions` says when to replace a context, for OpenSSL would keep 20,480.
"""

from __future__ import annotations

import os
import ssl

# Mozilla's "intermediate" list, TLS 1.2 part, without finite-field Diffie-Hellman; TLS 1.3's are OpenSSL's own.
_CIPHERS = ":".join(
    f"ECDHE-{signature}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
    for signature in ("ECDSA", "RSA")
)
PROTOCOLS = ("http/1.1",)
_MAX_SESSIONS = 64


def build_context(chain: str, private_key: bytes) -> ssl.SSLContext:
    """A context that presents `chain` (PEM, leaf first) with `private_key` (PEM, not encrypted).

    Raises: `ssl.SSLError` (an OSError) or ValueError when the two are unusable or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE  # all are good; the client knows what its hardware likes
    context.num_tickets = 0
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(list(PROTOCOLS))
    _load(context, chain.encode("ascii") + b"\n" + private_key)
    return context


def holds_too_many_sessions(context: ssl.SSLContext) -> bool:
    return context.session_stats()["number"] >= _MAX_SESSIONS


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Through memory: `ssl` reads certificates from files only, and a key must never be in one."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(pem)
        # The empty password: without one OpenSSL would ask the terminal for an encrypted key's.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    finally:
        os.close(descriptor)
