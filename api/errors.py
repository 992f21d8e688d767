"""The API's errors: one table of statuses and messages, and how any failure finds its row.

Every error answers ``{"message": …, "request_id": …, "code": …}``; ``hint`` may stand beside it. Handlers and
services raise `Refused` with a row of this table and never choose a status themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from common.errors import DatabaseUnavailable, FrontageError


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row of the table: a status, its message, and the code that stands for both where no closer one does."""

    status: int
    message: str
    code: str


class Refused(FrontageError):
    """A request that is answered with an error.

    `code` is for programs, the row's unless a closer one is given, and `hint` for people; after `retry_after_seconds`
    the same request may succeed. `details` stand beside the message.
    """

    def __init__(
        self,
        refusal: Refusal,
        *,
        code: str | None = None,
        hint: str | None = None,
        retry_after_seconds: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.code = code or refusal.code
        self.hint = hint
        self.retry_after_seconds = retry_after_seconds
        self.details = details or {}


# Everywhere
UNAUTHORIZED: Final = Refusal(401, "Unauthorized", "unauthorized")
FORBIDDEN: Final = Refusal(403, "Forbidden", "forbidden")
NOT_FOUND: Final = Refusal(404, "Not Found", "not_found")
METHOD_NOT_ALLOWED: Final = Refusal(405, "Method Not Allowed", "method_not_allowed")
BODY_TOO_LARGE: Final = Refusal(413, "Request body too large", "body_too_large")
NOT_JSON: Final = Refusal(415, "Unsupported Media Type", "not_json")
TOO_MANY_REQUESTS: Final = Refusal(429, "Too Many Requests", "too_many_requests")
KEY_RUNNING: Final = Refusal(409, "A request with this Idempotency-Key is running", "idempotency_key_running")
KEY_REUSED: Final = Refusal(409, "This Idempotency-Key belongs to another request", "idempotency_key_reused")
INVALID_BODY: Final = Refusal(400, "Invalid request body", "invalid_body")
INTERNAL: Final = Refusal(500, "Internal Server Error", "internal")
UNAVAILABLE: Final = Refusal(503, "Service Unavailable", "unavailable")

# Power and Secure: eligibility
UNRESOLVED: Final = Refusal(400, "Domain provided couldn't be resolved.", "invalid")

# Power and Secure: POST, PUT, DELETE, whose failures are 502 throughout
STEP_ONE: Final = Refusal(502, "Please complete step 1.", "step_one")
ALREADY_POWERED: Final = Refusal(502, "This domain has been already powered.", "enrolled")
REVIEW_POWER: Final = Refusal(502, "Please review Power eligibility status of this domain.", "not_eligible")
POWERED_TOO_OFTEN: Final = Refusal(
    502, "This domain has been powered too many times in 24 hours.", "enrolled_too_often"
)
ALREADY_SECURED: Final = Refusal(502, "There is already a valid certificate for this domain.", "enrolled")
REVIEW_SSL: Final = Refusal(502, "Please review SSL eligibility status of this domain.", "not_eligible")
PROVISIONED_TOO_OFTEN: Final = Refusal(
    502, "This domain has been provisioned too many times in 24 hours.", "enrolled_too_often"
)
UNREACHABLE_ORIGIN: Final = Refusal(502, "ApplicationUrl is not reachable", "origin_unreachable")
DOMAIN_NOT_VALID: Final = Refusal(502, "Domain not valid", "domain_not_valid")
INVALID_APPLICATION_URL: Final = Refusal(502, "Invalid 'applicationUrl' parameter", "invalid_parameter")
INVALID_REDIRECT: Final = Refusal(502, "Invalid 'redirectTo' parameter", "invalid_parameter")
INVALID_PRODUCT_BODY: Final = Refusal(502, INVALID_BODY.message, "invalid_body")
PRODUCT_INTERNAL: Final = Refusal(502, "Internal Server Error.", "internal")

# Applications, and domains by hand
NO_SUCH_EDGE: Final = Refusal(404, "No such edge", "edge_not_found")
EDGE_RUNS: Final = Refusal(409, "The edge runs", "edge_runs")
NO_SUCH_APPLICATION: Final = Refusal(404, "No such application", "application_not_found")
NOT_ENROLLED: Final = Refusal(404, "Domain not enrolled", "not_enrolled")
NOT_BLOCKED: Final = Refusal(409, "The domain is not blocked", "not_blocked")
NOT_RENEWABLE: Final = Refusal(409, "The certificate cannot be renewed", "not_renewable")
CERTIFICATE_UNUSABLE: Final = Refusal(400, "The certificate cannot be served", "certificate_invalid")
NO_OWN_CERTIFICATE: Final = Refusal(404, "The domain has no certificate of yours", "no_own_certificate")
NOT_PREPARABLE: Final = Refusal(409, "Domains cannot be prepared here", "preparing_unavailable")
NOT_PREPARED: Final = Refusal(404, "Domain not prepared", "not_prepared")
TOO_MANY_PREPARED: Final = Refusal(409, "The application prepares as many domains as it may", "too_many_prepared")
PREPARED_ALREADY: Final = Refusal(409, "The domain is active already", "already_active")
NOT_TRANSFERABLE: Final = Refusal(409, "The domain cannot be transferred", "not_transferable")
CNAME_TARGET_TAKEN: Final = Refusal(409, "The cname target cannot be used", "target_taken")
SERVICE_AUTH_STATE: Final = Refusal(409, "X-Service-Auth is not in a state for this", "service_auth_state")

# Organisations and users
ORGANISATION_TAKEN: Final = Refusal(409, "There is an organisation of this name", "organisation_taken")
NOT_A_MEMBER: Final = Refusal(404, "No such member", "not_a_member")
MEMBER_REFUSED: Final = Refusal(409, "The member cannot be changed", "members")
NO_SUCH_ORGANISATION: Final = Refusal(404, "No such organisation", "organisation_not_found")
NO_SUCH_USER: Final = Refusal(404, "No such user", "user_not_found")
USER_TAKEN: Final = Refusal(409, "There is a user with this address", "user_taken")
TOO_MANY_KEYS: Final = Refusal(409, "The user has as many API keys as are allowed", "too_many_keys")
NO_SUCH_PASSKEY: Final = Refusal(404, "No such passkey", "passkey_not_found")
NO_SUCH_KEY: Final = Refusal(404, "No such API key", "key_not_found")
TOO_MANY_APPLICATIONS: Final = Refusal(
    409, "The organisation has as many applications as it may have", "too_many_applications"
)

# Monitor
NOT_MONITORED: Final = Refusal(404, "Domain not monitored", "not_monitored")
NOT_MONITORED_OR_FOREIGN: Final = Refusal(
    404, "Domain not monitored or application not authorized for it", "not_monitored"
)
ALREADY_UNWATCHED: Final = Refusal(400, "Domain not monitored or already deleted", "not_monitored")
NOT_EMPTY: Final = Refusal(400, "Monitored records remain for this domain", "not_empty")
MISSING_DOMAINS: Final = Refusal(400, "Missing domains in the request body.", "missing_domains")
BATCH_UNKNOWN: Final = Refusal(404, "No status for this request id", "batch_not_found")
FOREIGN_BATCH: Final = Refusal(403, "The request belongs to a different application", "batch_forbidden")

# Webhooks
NO_WEBHOOK: Final = Refusal(409, "No webhook URL is set.", "no_webhook")
WEBHOOK_DISABLED: Final = Refusal(409, "The webhook is disabled.", "webhook_disabled")

# Flows of the connect modal
FLOW_NOT_FOUND: Final = Refusal(404, "No such flow", "flow_not_found")
FLOW_STATE: Final = Refusal(409, "The flow is not in a state for this", "way_not_open")
FLOW_BUSY: Final = Refusal(409, "The flow is changing", "flow_busy")
PLAN_CHANGED: Final = Refusal(409, "The plan has changed", "plan_changed")
ZONE_CHANGED: Final = Refusal(409, "The zone has changed", "zone_changed")
ZONE_UNKNOWN: Final = Refusal(409, "The zone could not be read", "zone_unknown")

_HTTP_STATUSES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "invalid_parameter": 400,
        "invalid_body": 400,
        "no_origin": 400,
        "origin_path": 400,
        "origin_refused": 400,
        "loop": 400,
        "root": 400,
        "reserved": 400,
        "domain_blocked": 403,
        "application_suspended": 403,
        "domain_not_valid": 404,
        "step_one": 409,
        "not_eligible": 409,
        "nxdomain": 409,
        "cname_chain": 409,
        "txt_record_needed": 409,
        "delegation_needed": 409,
        "enrolled": 409,
        "already_enrolled": 409,
        "ordering": 409,
        "held": 409,
        "leads_to_holder": 409,
        "not_renewable": 409,
        "origin_unreachable": 409,
        "enrolled_too_often": 429,
    }
)
"""The status of a code of Power and Secure for applications that ask for HTTP's own; 502 for every other, which are
failures of ours, or of the DNS, where the same request may succeed a moment later."""

_WRITES: Final = frozenset({"POST", "PUT", "DELETE"})
_PRODUCT_PATHS: Final = frozenset({"/power", "/ssl"})
_UNAVAILABLE_PATHS: Final = frozenset({"/token", "/readyz"})


def invalid_parameter(name: str, *, status: int = 400) -> Refusal:
    """Return the row for a parameter or a field that is not valid."""
    return Refusal(status, f"Invalid '{name}' parameter", "invalid_parameter")


def refused_by_http(status: int, reason: str) -> Refusal:
    """Return the row for a request that is none by HTTP's own rules."""
    return Refusal(status, reason, "http")


def too_many_domains(most: int) -> Refusal:
    """Return the row for a batch of more domains than it may have."""
    return Refusal(400, f"The maximum number of domains is {most}", "too_many_domains")


def too_many_requests(retry_after_seconds: float, hint: str) -> Refused:
    """`retry_after_seconds`: the earliest time for another request; the response asks for a random later one."""
    return Refused(TOO_MANY_REQUESTS, hint=hint, retry_after_seconds=retry_after_seconds)


def renewal_failed(words: str) -> Refusal:
    """`words` are for the domain's owner."""
    return Refusal(502, words, "not_renewable")


def status_of(error: Refused, *, by_kind: bool) -> int:
    """Return the status of an error. `by_kind`: a 502 for what is not ours becomes the status that HTTP has for it."""
    if by_kind and error.refusal.status == PRODUCT_INTERNAL.status:
        return _HTTP_STATUSES.get(error.code, error.refusal.status)
    return error.refusal.status


def is_product_write(method: str, path: str) -> bool:
    """Whether a request's failures are 502."""
    return method in _WRITES and path in _PRODUCT_PATHS


def invalid_body(method: str, path: str) -> Refusal:
    """Return the row for a body that is no JSON object."""
    return INVALID_PRODUCT_BODY if is_product_write(method, path) else INVALID_BODY


def refusal_of_failure(error: Exception, method: str, path: str) -> Refusal:
    """Return the row for a failure of ours, as opposed to what a service refuses."""
    if is_product_write(method, path):
        return PRODUCT_INTERNAL
    if isinstance(error, DatabaseUnavailable) and path in _UNAVAILABLE_PATHS:
        return UNAVAILABLE
    return INTERNAL
