"""The messages for a refused enrolment: one row for each code, with the text for each of three readers.

partner   the hint beside the error of POST and PUT of Power and Secure; None where `api.services.enrolment_refusals`
          makes it of the case, such as of the application's id
person    the hint of a connect flow, read by a customer at the modal
operator  the error of a row of an import; None where an import asks nothing that could be refused so
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from common.db.domains import MOST_AGAIN
from common.enrolment.outcome import EnrolmentCode as Code


class RefusalWords(NamedTuple):
    """The words of a code, for each of its readers."""

    partner: str | None
    person: str
    operator: str | None = None


RESERVED_NAME: Final = "a name of this service, or your application's cname target, and never enrolled"

WORDS: Final[Mapping[Code, RefusalWords]] = {
    Code.ROOT: RefusalWords(
        "POST /power takes no root domain: POST /ssl does, and the connect modal powers one",
        "a root domain cannot be enrolled this way: connect a subdomain, such as www",
    ),
    Code.RESERVED: RefusalWords(
        f"it is {RESERVED_NAME}",
        "it is a name of this service, or the application's own cname target: connect another name",
        "domain: a name of the service or a cname target, which is no customer's domain",
    ),
    Code.BLOCKED: RefusalWords(
        "the operator of this service has blocked this name: ask the operator why, and to unblock it",
        "the operator of the service has blocked the name: ask them for the reason",
        "domain: blocked by an operator (`frontage domain unblock` ends that)",
    ),
    Code.SUSPENDED: RefusalWords(
        "the operator of this service has suspended the application: ask the operator why, and to resume it",
        "the operator of the service has suspended the application: it can be enrolled once that is lifted",
        "domain: its application is suspended (`frontage app resume` ends that)",
    ),
    Code.HELD: RefusalWords(
        None,
        "another application holds the name: remove it there first, or prove by the TXT record in the domain's"
        " diagnosis that it is yours",
        "domain: another application holds it (`frontage domain transfer` moves it)",
    ),
    Code.LEADS_TO_HOLDER: RefusalWords(
        None,
        "another application holds the name, and its DNS leads there: remove the name there, or change its DNS, then"
        " check again",
    ),
    Code.HELD_UNKNOWN: RefusalWords(
        None, "another application holds the name, and its DNS could not be asked: check again in a moment"
    ),
    Code.STEP_ONE: RefusalWords(
        "step 1 is the CNAME record of your application's cname target: its page in the dashboard shows the record to"
        " set, and what the DNS answers now",
        "the application's cname target does not lead to this service: correct its DNS, then check again",
    ),
    Code.NOT_ELIGIBLE: RefusalWords(
        None, "the records are live, but do not lead to the application: see the diagnosis of the domain"
    ),
    Code.NOT_ASKED: RefusalWords(None, "its DNS could not be asked: check again in a moment"),
    Code.UNPROVEN: RefusalWords(
        None,
        "it leads here, but nothing proves whose it is: add the TXT record in the domain's diagnosis, then check again",
    ),
    Code.UNDELEGATED: RefusalWords(
        None,
        "a wildcard is connected where its challenge is delegated: add the CNAME record that the application shows,"
        " then check again",
        "domain: a wildcard is enrolled once its challenge is delegated: import it with --prepare",
    ),
    Code.ENROLLED: RefusalWords(None, "the application has enrolled it already: nothing is left to do"),
    Code.ENROLLED_OTHERWISE: RefusalWords(
        None, "it is enrolled already, with other settings: only the application's server changes them"
    ),
    Code.ORDERING: RefusalWords(
        "a certificate is on its way", "its certificate is being ordered: check again in a few minutes"
    ),
    Code.TOO_OFTEN: RefusalWords(
        None, f"it was enrolled {MOST_AGAIN} times within 24 hours: try again when 24 hours have passed"
    ),
    Code.NO_ORIGIN: RefusalWords(
        "the application has none: send one",
        "neither the record nor the application has an applicationUrl: set one, then check again",
        "applicationUrl: missing, and the application has none",
    ),
    Code.ORIGIN_PATH: RefusalWords(
        None,
        "the applicationUrl has a path, and requests keep their own: give it without one",
        "applicationUrl: Secure forwards paths unchanged, and the application's has one",
    ),
    Code.ORIGIN_REFUSED: RefusalWords(
        None,
        "the applicationUrl's address is not public: use one that the internet reaches",
        "applicationUrl: its address may not be dialled",
    ),
    Code.ORIGIN_UNREACHABLE: RefusalWords(
        None, "the applicationUrl does not answer: start the application, then check again"
    ),
    Code.LOOP: RefusalWords(
        "it leads back to the domain",
        "the redirect leads back to the domain: redirect to another name",
        "redirectTo: would send visitors round in a circle",
    ),
}
"""Of every code."""
