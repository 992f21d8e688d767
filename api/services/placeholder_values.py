"""What the placeholders of a connect configuration stand for, for an application. Pure."""

from __future__ import annotations

from common.connect.resolution import PlaceholderValues
from common.db.applications import Application
from common.settings import Settings


def placeholder_values_of(application: Application, settings: Settings) -> PlaceholderValues:
    return PlaceholderValues(
        application.cname_target,
        application.secure_cname_target or application.cname_target,
        tuple(map(str, settings.service_servers)),
    )
