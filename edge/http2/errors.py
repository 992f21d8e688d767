"""How HTTP/2 fails: error codes (RFC 9113 §7), and the two scopes of errors (§5.4)."""

from __future__ import annotations

from enum import IntEnum

from common.errors import FrontageError


class ErrorCode(IntEnum):
    """The error codes of RFC 9113 §7."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class ConnectionFailed(FrontageError):
    """The connection cannot go on (§5.4.1).

    `reason` is for the operator's log and the client's GOAWAY; `budget` names the budget that was exceeded, "" for a
    violation of the protocol.
    """

    def __init__(self, code: ErrorCode, reason: str, budget: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.budget = budget


class StreamFailed(FrontageError):
    """One stream is reset, and the connection goes on (§5.4.2)."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
