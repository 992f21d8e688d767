"""Updates of a zone at its primary name server (RFC 2136), signed by a TSIG key (RFC 8945)."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import dns.asyncquery
import dns.exception
import dns.name
import dns.rcode
import dns.tsig
import dns.update

from common.errors import FrontageError
from common.host_ports import HostPort

ALGORITHMS: Final = frozenset({"hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224"})
_SECONDS: Final = 10.0


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
        reply = await dns.asyncquery.tcp(update, server.host, port=server.port, timeout=_SECONDS)
    except (dns.tsig.PeerError, dns.tsig.BadSignature, dns.tsig.BadKey, dns.tsig.BadTime) as error:
        raise KeyRefused(str(error), _PARTS.get(type(error))) from error
    except (dns.exception.DNSException, OSError, EOFError) as error:
        raise ServerSilent(str(error)) from error
    return reply.rcode()
