"""What the placeholders of a connect configuration stand for, for an application."""

from __future__ import annotations

from api.connect.resolution import PlaceholderValues
from common.db.applications import Application
from common.enrolment.ownership import is_lost_target
from common.settings import Settings


def placeholder_values_of(application: Application, settings: Settings) -> PlaceholderValues:
    """Return what placeholders of an application's configuration stand for."""
    cname_target = "" if is_lost_target(application.cname_target) else application.cname_target
    return PlaceholderValues(
        cname_target,
        application.secure_cname_target or cname_target,
        tuple(map(str, settings.service_servers)),
    )
