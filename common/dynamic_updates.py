"""Updates of a zone at its primary name server (RFC 2136), signed by a TSIG key (RFC 8945)."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.tsig
import dns.update

from common.errors import FrontageError
from common.host_ports import HostPort

ALGORITHMS: Final = frozenset({"hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224"})
_SECONDS: Final = 10.0
_MAX_ANSWER_BYTES: Final = 4096  # a zone and a signature; reading 64 KB of a hostile server takes the loop for long


KeyPart: TypeAlias = Literal["key", "secret", "clock"]
"""What of a key a server refuses: it knows no key of that name with that algorithm, the secret is another, or the
server's clock and this machine's differ."""


_PARTS: Final[Mapping[type[Exception], KeyPart]] = {
    dns.tsig.PeerBadKey: "key",
    dns.tsig.PeerBadSignature: "secret",
    dns.tsig.PeerBadTime: "clock",
}


class KeyRefused(FrontageError):
    """The server does not accept the key. `part`: what of it, where the server tells (RFC 8945 §5.2)."""

    def __init__(self, words: str, part: KeyPart | None = None) -> None:
        super().__init__(words)
        self.part = part


class ServerSilent(FrontageError):
    """The server did not answer, so whether it took the update is unknown."""


def read_key(name: str, secret: str, algorithm: str = "hmac-sha256") -> dns.tsig.Key:
    """Read a TSIG key whose `secret` is base64; `algorithm` is one of `ALGORITHMS`. Raises: ValueError."""
    try:
        return dns.tsig.Key(dns.name.from_text(name), binascii.a2b_base64(secret), dns.name.from_text(algorithm))
    except (dns.exception.DNSException, UnicodeError) as error:
        raise ValueError("the key cannot be read") from error


def new_update(zone: str, key: dns.tsig.Key) -> dns.update.UpdateMessage:
    """Begin an update of the zone, to be signed by the key."""
    return dns.update.UpdateMessage(dns.name.from_text(zone), keyring={key.name: key}, keyalgorithm=key.algorithm)


async def send_update(update: dns.update.UpdateMessage, server: HostPort) -> dns.rcode.Rcode:
    """Send the update, and return the server's answer. Raises: `KeyRefused`, `ServerSilent`."""
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await _ask(update.to_wire(), server)
        reply = dns.message.from_wire(answer, keyring=update.keyring, request_mac=update.mac, continue_on_error=True)
    except (dns.exception.DNSException, OSError, EOFError) as error:
        raise ServerSilent(str(error)) from error
    return _read_reply(update, reply)


async def _ask(question: bytes, server: HostPort) -> bytes:
    """Return the answer that comes over TCP (RFC 1035 §4.2.2). Raises: OSError, EOFError."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        writer.write(len(question).to_bytes(2, "big") + question)
        size = int.from_bytes(await reader.readexactly(2), "big")
        if size > _MAX_ANSWER_BYTES:
            raise OSError(f"an answer of {size} octets")
        return await reader.readexactly(size)
    finally:
        writer.close()


def _read_reply(update: dns.update.UpdateMessage, reply: dns.message.Message) -> dns.rcode.Rcode:
    """Return the answer to the update, which is believed without a signature where it is a refusal.

    A server that does not know the key has none to sign with; some state so in a TSIG record, others have none at all.

    Raises: `KeyRefused`, `ServerSilent`.
    """
    for failed in reply.errors:
        error = failed.exception
        if isinstance(error, dns.tsig.PeerError | dns.tsig.BadSignature | dns.tsig.BadKey | dns.tsig.BadTime):
            raise KeyRefused(str(error), _PARTS.get(type(error))) from error
    code = reply.rcode()
    if not update.is_response(reply) or (code == dns.rcode.NOERROR and not reply.had_tsig):
        raise ServerSilent("the answer is not signed, or answers something else")
    if code == dns.rcode.NOTAUTH and not reply.had_tsig:
        raise KeyRefused("the answer is not signed", "key")
    return code
