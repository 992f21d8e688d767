"""The requests and responses of each case of `bench.instructions`. Pure, but for reading the recorded page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench import answers, heads
from bench.cases import KB

HOST: Final = "shop.customer.localhost"
SECURE_ORIGIN_HOST: Final = "tls.customer.localhost"
_HANDSHAKE_SHARE: Final = 8  # a whole one costs as much as thirty requests


@dataclass(frozen=True, slots=True)
class InstructionCase:
    """`requests` are sent in turn, on one connection; or each on a new one (`reconnects`), which may offer the last
    one's TLS session (`resumes`)."""

    key: str
    title: str
    requests: Sequence[bytes]
    answers: Sequence[bytes] = field(default_factory=answers.same)
    secure: bool = False
    reconnects: bool = False
    resumes: bool = False
    logs: bool = False
    is_origin_secure: bool = False

    def count(self, requests: int) -> int:
        return max(1, requests // _HANDSHAKE_SHARE) if self.reconnects else requests


def cases() -> list[InstructionCase]:
    page, closing = heads.page(HOST, heads.read_page()), heads.closing(HOST, KB)
    varied = heads.varied(HOST, KB)
    return [
        InstructionCase("repeated", "the same request again", heads.same(HOST, KB)),
        InstructionCase("varied", "every header block different", varied),
        InstructionCase("answers", "every header block and every response different", varied, answers.varied()),
        InstructionCase("log", "every header block different, the access log written", varied, logs=True),
        InstructionCase(
            "origin-tls",
            "every header block different, the origin over TLS",
            heads.varied(SECURE_ORIGIN_HOST, KB),
            is_origin_secure=True,
        ),
        InstructionCase(
            "post", "every header block different, a POST of 200 bytes", heads.posts(HOST, KB), answers.keeping()
        ),
        InstructionCase("host-last", "the same request again, Host last", heads.host_last(heads.same(HOST, KB))),
        InstructionCase(
            "host-last-varied", "every block different, Host last", heads.host_last(heads.varied(HOST, KB))
        ),
        InstructionCase("page", "a recorded browser's page load", page),
        InstructionCase("tls", "the same request again, over TLS", heads.same(HOST, KB), secure=True),
        InstructionCase("tls-varied", "every block different, over TLS", heads.varied(HOST, KB), secure=True),
        InstructionCase("tls-new", "a new connection, whole handshake", closing, secure=True, reconnects=True),
        InstructionCase(
            "tls-resumed", "a new connection, resumed session", closing, secure=True, reconnects=True, resumes=True
        ),
    ]
