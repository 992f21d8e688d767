"""The requests and responses of each case of `bench.instructions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench import answers, heads, typical
from bench.cases import KB

HOST: Final = "shop.customer.localhost"
SECURE_ORIGIN_HOST: Final = "tls.customer.localhost"
_HANDSHAKE_SHARE: Final = 8  # a whole one costs as much as thirty requests


@dataclass(frozen=True, slots=True)
class InstructionCase:
    """One case of `bench.instructions`.

    `requests` are sent in turn, and answered with the `answers` in turn, on one connection; or on new ones, of so many
    requests in turn (`connections`), which may offer the last one's TLS session (`resumes`).
    With `streams`, they are sent in HTTP/2, so many at once.
    """

    key: str
    title: str
    requests: Sequence[bytes]
    answers: Sequence[bytes] = field(default_factory=answers.same)
    secure: bool = False
    connections: Sequence[int] = ()
    resumes: bool = False
    logs: bool = False
    is_origin_secure: bool = False
    streams: int = 0

    def count(self, requests: int) -> int:
        """Return how many requests to count where a case of cheap ones counts `requests`."""
        return max(1, requests // _HANDSHAKE_SHARE) if self.connections else requests

    @property
    def host(self) -> str:
        """Return the domain that is asked for."""
        return SECURE_ORIGIN_HOST if self.is_origin_secure else HOST


def cases() -> list[InstructionCase]:
    """Return all cases."""
    return [*_with_logs_and_tls(), *_of_heads_and_answers(), *_over_tls(), *_over_http2(), *_of_handshakes()]


def _with_logs_and_tls() -> list[InstructionCase]:
    return [
        InstructionCase(
            "typical",
            "a typical mix, TLS on both sides, the access log written",
            typical.requests(SECURE_ORIGIN_HOST),
            typical.answers(),
            secure=True,
            logs=True,
            is_origin_secure=True,
        ),
        InstructionCase(
            "both-log",
            "both different, TLS on both sides, the access log written",
            heads.varied(SECURE_ORIGIN_HOST, KB),
            answers.varied(),
            secure=True,
            logs=True,
            is_origin_secure=True,
        ),
    ]


def _of_heads_and_answers() -> list[InstructionCase]:
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
        InstructionCase("sizes", "both different, bodies of 200 bytes to 20 KB", varied, answers.sized()),
        InstructionCase("not-modified", "both different, answers 304", varied, answers.not_modified()),
        InstructionCase("head", "both different, HEAD", heads.asking_heads(HOST, KB), answers.for_head()),
        InstructionCase("missing", "both different, answers 404", varied, answers.missing()),
        InstructionCase("redirect", "both different, answers 302", varied, answers.redirects()),
        InstructionCase("cookies", "both different, Set-Cookie twice", varied, answers.with_two_cookies()),
        InstructionCase(
            "long-cookie", "both different, 2 KB of cookies", heads.long_cookies(HOST, KB), answers.varied()
        ),
        InstructionCase("fields", "both different, 30 response fields", varied, answers.with_many_fields()),
        InstructionCase("gzip", "both different, gzip", varied, answers.compressed()),
        InstructionCase(
            "short",
            "both different, connections of 1 to 10 requests",
            varied,
            answers.varied(),
            connections=range(1, 11),
        ),
        InstructionCase("host-last", "the same request again, Host last", heads.host_last(heads.same(HOST, KB))),
        InstructionCase(
            "host-last-varied", "every block different, Host last", heads.host_last(heads.varied(HOST, KB))
        ),
        InstructionCase("page", "a recorded browser's page load", heads.page(HOST, heads.read_page())),
    ]


def _over_tls() -> list[InstructionCase]:
    return [
        InstructionCase("tls", "the same request again, over TLS", heads.same(HOST, KB), secure=True),
        InstructionCase("tls-varied", "every block different, over TLS", heads.varied(HOST, KB), secure=True),
    ]


def _over_http2() -> list[InstructionCase]:
    kinds = (
        ("h2", "both", heads.varied(HOST, KB)),
        ("h2-path", "path and response", heads.other_paths(HOST, KB)),
        ("h2-cookies", "path, a cookie and response", heads.other_cookies(HOST, KB)),
        ("h2-kinds", "a page's requests, path and response", heads.other_kinds(HOST, KB)),
    )
    return [
        InstructionCase(
            f"{key}-{streams}",
            f"{what} different, HTTP/2, {how_many}",
            requests,
            answers.varied(),
            secure=True,
            streams=streams,
        )
        for key, what, requests in kinds
        for streams, how_many in ((1, "one request at a time"), (10, "ten requests at once"))
    ]


def _of_handshakes() -> list[InstructionCase]:
    closing = heads.closing(HOST, KB)
    return [
        InstructionCase("tls-new", "a new connection, whole handshake", closing, secure=True, connections=(1,)),
        InstructionCase(
            "tls-resumed", "a new connection, resumed session", closing, secure=True, connections=(1,), resumes=True
        ),
    ]
