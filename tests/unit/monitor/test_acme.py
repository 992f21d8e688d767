"""What the ACME issuer reads without asking anybody: problems, times to wait, certificates' ids, renewal windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from acme import messages
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from monitor.certificates.acme.problems import failed_validation, failure, read_problem, retry_after_seconds
from monitor.certificates.acme.renewal_information import certificate_id, read_window
from monitor.certificates.acme.transport import CaResponse

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CA = "acme.ca.example"


def problem(status: int, code: str, detail: str = "said so", **more: object) -> bytes:
    return orjson.dumps({"type": f"urn:ietf:params:acme:error:{code}", "detail": detail, "status": status, **more})


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (429, problem(429, "rateLimited"), "rate_limited", f"{CA} has had too many requests for now: said so"),
        (403, problem(403, "rateLimited"), "rate_limited", f"{CA} has had too many requests for now: said so"),
        (429, b"<html>", "rate_limited", f"{CA} has had too many requests for now"),
        (403, problem(403, "caa"), "caa", f"a CAA record forbids {CA} to issue: said so"),
        (500, problem(500, "serverInternal"), "unavailable", f"{CA} is not available: said so"),
        (503, b"", "unavailable", f"{CA} is not available (it answered 503)"),
        (400, problem(400, "badNonce"), "unavailable", f"{CA} is not available: said so"),
        (400, problem(400, "rejectedIdentifier"), "other", f"{CA} refused: said so"),
        (404, b"not found", "other", f"{CA} refused (it answered 404)"),
        (400, b"[]", "other", f"{CA} refused (it answered 400)"),
        (400, b'{"type": 7, "detail": []}', "other", f"{CA} refused (it answered 400)"),
        (400, b"\xff", "other", f"{CA} refused (it answered 400)"),
    ],
)
def test_refusals_in_plain_words(status: int, body: bytes, kind: str, words: str) -> None:
    failed = failure(read_problem(status, body, 60.0), CA)
    assert (failed.kind, str(failed), failed.retry_after_seconds) == (kind, words, 60.0)


def test_parts_of_a_problem_are_told_and_kept_to_one_line() -> None:
    parts = [
        {"type": "urn:ietf:params:acme:error:malformed", "detail": "one\r\nSet-Cookie: x"},
        {"type": "urn:ietf:params:acme:error:dns", "title": "two\x1b[31m"},
    ]
    failed = failure(read_problem(400, problem(400, "compound", "several", subproblems=parts), 0.0), CA)
    assert str(failed) == f"{CA} refused: several; one Set-Cookie: x; two [31m"
    assert len(str(failure(read_problem(400, problem(400, "malformed", "x" * 9000), 0.0), CA))) < 600


@given(st.integers(min_value=400, max_value=599), st.binary(max_size=200))
def test_any_answer_at_all_is_read_as_a_refusal(status: int, body: bytes) -> None:
    assert "\n" not in str(failure(read_problem(status, body, 0.0), CA))


def test_failed_validation_gives_the_reason() -> None:
    error = messages.Error(typ="urn:ietf:params:acme:error:unauthorized", detail="the answer was wrong")  # type: ignore[call-arg]
    failed = failed_validation("shop.example", error, CA)
    assert (failed.kind, str(failed)) == ("validation", f"{CA} could not validate shop.example: the answer was wrong")
    assert failed_validation("shop.example", messages.Error.with_code("caa", detail="no"), CA).kind == "caa"
    assert "gives no reason" in str(failed_validation("shop.example", None, CA))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Thu, 01 Jan 2026 12:01:00 GMT", 60.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("99999999999", 7 * 86_400.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("Thu, 01 Jan 2026 12:01:00", 0.0),  # without a zone it means nothing
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float) -> None:
    assert retry_after_seconds({"Retry-After": text}, NOW) == seconds
    assert retry_after_seconds({}, NOW) == 0.0


def certificate(serial: int, authority: bytes | None) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=90))
    )
    if authority is not None:
        builder = builder.add_extension(x509.AuthorityKeyIdentifier(authority, None, None), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_certificate_id_is_that_of_the_rfcs_example() -> None:
    authority = bytes.fromhex("69885b6b87464041e1b37b847bd0ae2cde01c8d4")
    assert certificate_id(certificate(0x8765_4321, authority)) == "aYhba4dGQEHhs3uEe9CuLN4ByNQ.AIdlQyE"
    assert certificate_id(certificate(0x7F, authority)).endswith(".fw")


def test_certificate_without_an_authoritys_key_has_no_id() -> None:
    with pytest.raises(ValueError, match="authority"):
        certificate_id(certificate(1, None))
    with pytest.raises(ValueError, match=r".*"):
        certificate_id("no certificate")


def window(start: str, end: str, retry_after: float = 0.0) -> CaResponse:
    return CaResponse(orjson.dumps({"suggestedWindow": {"start": start, "end": end}}), "", retry_after)


def test_renewal_window() -> None:
    read = read_window(window("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 7200.0))
    assert (read.start, read.end) == (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    assert read.ask_again_seconds == 7200
    for asked, taken in ((0.0, 21_600), (1.0, 60), (10**6, 86_400)):
        assert read_window(window("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", asked)).ask_again_seconds == taken


@pytest.mark.parametrize(
    "answer",
    [
        window("2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z"),
        window("tomorrow", "2026-03-01T00:00:00Z"),
        CaResponse(b"{}", "", 0.0),
        CaResponse(b"[]", "", 0.0),
        CaResponse(b'{"suggestedWindow": {}}', "", 0.0),
        CaResponse(b'{"suggestedWindow": 7}', "", 0.0),
        CaResponse(b"no json", "", 0.0),
    ],
)
def test_what_is_no_window_is_refused(answer: CaResponse) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_window(answer)
