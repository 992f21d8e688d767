"""The settings that an application gives a domain: one type from the body of a request down to its row.

A field is a column of ``domains`` under the same name, and of JSON under its name in `_JSON_NAMES`. Bodies, files,
flows and enrolments carry the type as it is, and the statements of `common.db.domains` are made of its fields: a new
one needs a migration, and its place in the bodies and the answers that show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class DomainSettings:
    """The settings of a domain under a product. None: not given, so the application's own applies.

    `root_path_access` is Power's. `redirect_to` is Secure's; in a change, the empty text ends the redirect. `metadata`
    are the application's notes (`common.metadata`), `visitors` its rules for visitors as they are kept
    (`common.visitors`), `response_policy` what its responses carry before what its application's do, under the API's
    names; in a change, each takes the place of all of before.
    """

    application_url: str | None = None
    root_path_access: tuple[str, ...] | None = None
    redirect_to: str | None = None
    metadata: Mapping[str, str] | None = None
    visitors: Mapping[str, Any] | None = None
    response_policy: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> DomainSettings:
        """Read the settings from a row, or from the fields of a body; what is not in it is not given."""
        return cls(**{name: _frozen(values.get(name)) for name in SETTINGS})

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DomainSettings:
        """Return the value that `as_json` stored."""
        return cls(**{name: _frozen(stored.get(key)) for name, key in _JSON_NAMES.items()})

    def as_json(self) -> dict[str, Any]:
        """Return the value under the API's names, with null for what is not given; notes and rules only where given."""
        every = {key: _plain(getattr(self, name)) for name, key in _JSON_NAMES.items()}
        return {key: value for key, value in every.items() if value is not None or key not in _ONLY_GIVEN}

    def given(self) -> dict[str, Any]:
        """Return the settings that are given, by name."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}

    def over(self, earlier: DomainSettings) -> DomainSettings:
        """Return the settings after a change that gives these: what it leaves out stays."""
        return replace(earlier, **self.given())


NO_SETTINGS: Final = DomainSettings()

SETTINGS: Final = tuple(field.name for field in fields(DomainSettings))
"""The names of the settings, in the order of the type's fields."""

_JSON_NAMES: Final = {
    "application_url": "applicationUrl",
    "root_path_access": "powerRootPathAccess",
    "redirect_to": "redirectTo",
    "metadata": "metadata",
    "visitors": "visitors",
    "response_policy": "responsePolicy",
}


_ONLY_GIVEN: Final = ("metadata", "visitors", "responsePolicy")


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
