"""What the placeholders of a connect configuration stand for, for an application. Pure."""

from __future__ import annotations

from common.connect.configuration import Surroundings
from common.db.applications import Application
from common.settings import Settings


def surroundings_of(application: Application, settings: Settings) -> Surroundings:
    return Surroundings(
        application.cname_target,
        application.secure_cname_target or application.cname_target,
        tuple(map(str, settings.service_servers)),
    )
