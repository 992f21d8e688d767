import pytest
from aiohttp import web

from api.errors import REVIEW_POWER, Refusal, Refused, refusal_of_failure, status_of
from api.middlewares import refusal_of_http
from common.dns import Outcome
from common.enrolment.outcome import EnrolmentCode
from common.errors import DatabaseUnavailable


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("POST", "/power", Refusal(502, "Internal Server Error.", "internal")),
        ("PUT", "/power", Refusal(502, "Internal Server Error.", "internal")),
        ("DELETE", "/power", Refusal(502, "Internal Server Error.", "internal")),
        ("GET", "/power", Refusal(500, "Internal Server Error", "internal")),
        ("POST", "/ssl", Refusal(502, "Internal Server Error.", "internal")),
        ("PUT", "/ssl", Refusal(502, "Internal Server Error.", "internal")),
        ("DELETE", "/ssl", Refusal(502, "Internal Server Error.", "internal")),
        ("GET", "/ssl", Refusal(500, "Internal Server Error", "internal")),
        ("POST", "/token", Refusal(503, "Service Unavailable", "unavailable")),
        ("GET", "/readyz", Refusal(503, "Service Unavailable", "unavailable")),
    ],
)
def test_a_database_that_is_down_shows_as_the_spec_says(method: str, path: str, refusal: Refusal) -> None:
    assert refusal_of_failure(DatabaseUnavailable("gone"), method, path) == refusal


def test_any_other_failure_is_internal() -> None:
    assert refusal_of_failure(RuntimeError(), "POST", "/token") == Refusal(500, "Internal Server Error", "internal")


def test_what_aiohttp_refuses_keeps_its_status() -> None:
    assert refusal_of_http(web.HTTPMethodNotAllowed("PATCH", ["GET"])).status == 405
    assert refusal_of_http(web.HTTPRequestEntityTooLarge(1, 2)).status == 413
    assert refusal_of_http(web.HTTPTooManyRequests()) == Refusal(429, "Too Many Requests", "http")


def test_only_what_may_succeed_a_moment_later_stays_a_502_for_applications_with_http_statuses() -> None:
    open_ends = (Outcome.NO_NAME, Outcome.CHAIN, Outcome.SERVER_FAILURE, Outcome.TIMEOUT)
    codes = {each.value for each in (*EnrolmentCode, *open_ends)}
    kept = {code for code in codes if status_of(Refused(REVIEW_POWER, code=code), by_kind=True) == 502}
    assert kept == {"not_asked", "held_unknown", "servfail", "timeout"}
    assert {status_of(Refused(REVIEW_POWER, code=code), by_kind=False) for code in codes} == {502}
    assert status_of(Refused(Refusal(409, "Not in the present state.", "held")), by_kind=True) == 409
