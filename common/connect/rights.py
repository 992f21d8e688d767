"""What a flow may ask for that a browser began: a token with a scope, or a sharing link.

Rules
    where visitors are led (applicationUrl, redirectTo, powerRootPathAccess) is the application's own setting, or stands
        in a configuration that was registered, or shared, with full rights; a browser may repeat it, and not change it
    of such a configuration a browser may change what it shows and how the domain is entered (all but `BOUND_KEYS`)
    ``wwwRedirect`` leads only to a name of the same flow, so it is the browser's to ask for
    our name vouches (a Domain Connect signature) for records of such a configuration, and else for those alone that
        lead to us or prove the domain to us
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from common.connect.configuration import Configuration, RecordTemplate
from common.db.applications import Application
from common.enrolment.ownership import txt_record
from common.errors import FrontageError
from common.flows.enrolments import ProductEnrolment
from common.flows.requested import Requested
from common.records import normal_name, normal_value
from common.urls import parse_application_url, parse_redirect_target

BOUND_KEYS: Final = ("dnsRecords", "power", "monitor", "wwwRedirect", "secureRootDomain")

_BOUND_IF_GIVEN: Final = ("prefilledDomain",)  # a sharing link's

Vouches = Callable[[Requested], bool]
"""Whether our name may stand for a record."""


class BeyondRights(FrontageError):
    """A browser gave a value that only the application's server may give; the text is what to do instead."""

    code = "outside_configuration"


def merge(registered: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a flow: the registered one, with what a browser may add.

    Raises: `BeyondRights`.
    """
    bound = (*BOUND_KEYS, *(key for key in _BOUND_IF_GIVEN if registered.get(key) is not None))
    for key in bound:
        if given.get(key) is not None and given[key] != registered.get(key):
            hint = f"leave {key} out: the registered configuration has it; or have the server register another one"
            raise BeyondRights(hint)
    return dict(registered) | {key: value for key, value in given.items() if key not in bound and value is not None}


def refuse_foreign_values(configuration: Configuration, application: Application) -> None:
    """Refuse values that are not the application's own.

    Raises: `BeyondRights`.
    """
    for template in (*configuration.of_domain, *configuration.of_subdomain):
        key = _foreign_key(template, application)
        if key is not None:
            raise BeyondRights(
                f"{key} is not the application's own: have the server register the configuration"
                " (POST /connect/configurations), and give the browser its configurationId",
            )


def _foreign_key(template: RecordTemplate, application: Application) -> str | None:
    if template.redirect_to is not None:
        return "redirectTo"
    if not is_own_url(template.application_url, application):
        return "applicationUrl"
    return None if is_own_paths(template.root_path_access, application) else "powerRootPathAccess"


def is_own_enrolment(wanted: ProductEnrolment, application: Application, host: str | None) -> bool:
    """Return whether an enrolment leads only where the application's settings lead, or to the flow's own `host`."""
    settings = wanted.settings
    leads_here = settings.redirect_to is None or (
        host is not None and settings.redirect_to == str(parse_redirect_target(host))
    )
    return (
        leads_here
        and is_own_url(settings.application_url, application)
        and is_own_paths(settings.root_path_access, application)
    )


def is_own_url(url: str | None, application: Application) -> bool:
    """Return whether a URL is the application's own, or none."""
    if url is None:
        return True
    own = application.application_url
    return bool(own) and parse_application_url(url) == parse_application_url(own or "")


def is_own_paths(paths: tuple[str, ...] | None, application: Application) -> bool:
    """Return whether paths are the application's own, or none."""
    return paths is None or set(paths) == set(application.root_path_access)


def vouches_for_own(application: Application, apex: str, service_servers: frozenset[str]) -> Vouches:
    """Return which records our name stands for in a flow that no server has vouched for."""
    targets = {normal_name(each) for each in (application.cname_target, application.secure_cname_target) if each}

    def vouches(each: Requested) -> bool:
        record = each.record
        value = normal_value(record.type, record.value)
        match record.type:
            case "CNAME":
                return value in targets
            case "A" | "AAAA":
                return value in service_servers
            case "TXT":
                of_name = each.name(apex).partition(".")[2]
                return (each.name(apex), value) == txt_record(of_name, application.id)
            case _:
                return False

    return vouches
