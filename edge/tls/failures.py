"""Why a handshake ends without a stream, and which alert the client gets before the close.

Whatever is wrong with the *name* gets one and the same answer: the alert does not reveal which names exist here, or
which are being set up.
"""

from __future__ import annotations

from enum import StrEnum

_ALERT_RECORD = b"\x15\x03\x03\x00\x02\x02"  # alert, TLS 1.2 on the wire (RFC 8446 §5.1), two bytes, fatal
_HTTPS_ONLY = b"This port speaks HTTPS: use https:// in the address.\n"


class Failure(StrEnum):
    """Why a handshake ended. The values name counters."""

    # decided by the hello
    PLAIN_HTTP = "plain_http"
    NOT_TLS = "not_tls"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    OLD_VERSION = "old_version"
    NO_GROUP = "no_group"
    NO_NAME = "no_name"
    BAD_NAME = "bad_name"
    # decided by what we know of the name
    UNKNOWN_NAME = "unknown_name"
    NO_PROTOCOL = "no_protocol"
    HOLD_LIMIT = "hold_limit"
    HOLD_TIMEOUT = "hold_timeout"
    UNUSABLE_CERTIFICATE = "unusable_certificate"
    BUSY = "busy"
    # decided by the client's behaviour, or by time
    ENGINE = "engine"  # OpenSSL refused; it has written its own alert
    CLIENT_LEFT = "client_left"
    TIMEOUT = "timeout"


# RFC 8446 §6.2; unrecognized_name is RFC 6066 §3, no_application_protocol RFC 7301 §3.2.
_ALERTS = {
    Failure.MALFORMED: 50,  # decode_error
    Failure.TOO_LARGE: 47,  # illegal_parameter
    Failure.OLD_VERSION: 70,  # protocol_version
    Failure.NO_GROUP: 40,  # handshake_failure
    Failure.NO_PROTOCOL: 120,
    Failure.NO_NAME: 112,
    Failure.BAD_NAME: 112,
    Failure.UNKNOWN_NAME: 112,
    Failure.HOLD_LIMIT: 112,
    Failure.HOLD_TIMEOUT: 112,
    Failure.UNUSABLE_CERTIFICATE: 80,  # internal_error
    Failure.BUSY: 80,
}


def answer_to(failure: Failure) -> bytes:
    """Return the bytes to send before closing; empty where the peer would not understand any."""
    if failure is Failure.PLAIN_HTTP:
        return (
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(_HTTPS_ONLY), _HTTPS_ONLY)
        )
    alert = _ALERTS.get(failure)
    return b"" if alert is None else _ALERT_RECORD + bytes((alert,))
