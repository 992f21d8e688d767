"""The key exchange groups that OpenSSL accepts from a client, as the library and the system configure them.

`ssl` does not list them, but a server accepts the groups that a client of the same library offers.
"""

from __future__ import annotations

import ssl

from edge.tls.client_hello import FINITE_FIELDS, read_groups


def accepted_groups() -> frozenset[int]:
    """Return numbers of the IANA registry "TLS Supported Groups", without finite fields.

    It takes a millisecond, once a process.
    """
    return read_groups(_own_hello()).difference(FINITE_FIELDS)


def _own_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a client cannot be done after its first message")
