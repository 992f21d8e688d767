"""The one factory of server-side SSL contexts: how the edge speaks TLS.

A context serves one domain. This module does not know how records are stored or cached.

Session tickets (RFC 8446 §4.6.1, RFC 5077). Each context seals its tickets with a random key of its own, made by
OpenSSL with the context. So a ticket resumes only under the name, the application and the certificate that it was
issued under: every other context fails to open it, and the handshake is a full one. The key lives as long as the
context, which `certificates` discards after half a day; a ticket is valid for two hours (OpenSSL's default). No early
data is accepted, and TLS 1.3 resumes with a fresh key exchange only (psk_dhe_ke), both OpenSSL's default.

The ticket resumes within the worker that issued it. Python's `ssl` has no call for a shared ticket key; writing one
through the address of the SSL_CTX inside the context object would depend on a private memory layout, in the process
that faces the internet. With N workers about one returning connection in N is resumed, unless connections are spread
by the client's address (`edge.process.address_spreading`).

One ticket for each handshake, not OpenSSL's two: each costs a tenth of a handshake.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence

# Mozilla's "intermediate" list, TLS 1.2 part, without finite-field Diffie-Hellman; TLS 1.3's are OpenSSL's own.
_CIPHERS = ":".join(
    f"ECDHE-{signature}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
    for signature in ("ECDSA", "RSA")
)
HTTP2 = "h2"
PROTOCOLS = ("http/1.1", "http/1.0")
PROTOCOLS_WITH_HTTP2 = (HTTP2, *PROTOCOLS)
_MAX_SESSIONS = 64


class ServerContext(ssl.SSLContext):
    """A domain's context, which knows the protocols that it offers by ALPN: OpenSSL has no call that returns them."""

    protocols: frozenset[bytes]

    def offer_protocols(self, protocols: Sequence[str]) -> None:
        """Choose the first of these that the client offers."""
        self.set_alpn_protocols(list(protocols))
        self.protocols = frozenset(protocol.encode() for protocol in protocols)


def build_context(chain: str, private_key: bytes, protocols: Sequence[str] = PROTOCOLS) -> ServerContext:
    """Return a context that presents `chain` (PEM, leaf first) with `private_key` (PEM, not encrypted).

    It chooses the first of `protocols` that the client offers.

    Raises: `ssl.SSLError` (an OSError) or ValueError when the two are unusable or do not belong together.
    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE  # all are good; the client knows what its hardware likes
    context.num_tickets = 1
    context.set_ciphers(_CIPHERS)
    context.offer_protocols(protocols)
    _load(context, chain.encode("ascii") + b"\n" + private_key)
    return context


def holds_too_many_sessions(context: ssl.SSLContext) -> bool:
    """Return whether the context keeps so many sessions that a new one is to take its place."""
    return context.session_stats()["number"] >= _MAX_SESSIONS


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate through memory: `ssl` reads files only, and a key must never be in one."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(pem)
        # The empty password: without one OpenSSL would ask the terminal for an encrypted key's.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    finally:
        os.close(descriptor)
