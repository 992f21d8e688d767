"""Bodies of organisations and their members."""

from __future__ import annotations

from api.schemas.bodies import Strict
from common.accounts import Role


class OrganisationCreation(Strict):
    """POST /organisations."""

    name: str


class MemberChange(Strict):
    """A user that is missing is made."""

    email: str
    role: Role
