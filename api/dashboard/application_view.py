"""What the pages of one application share: its frame, its redirects, and the fields of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from aiohttp import web
from pydantic import ValidationError

from api.answers.webhooks import shown_url
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import FORM, text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.dashboard.words import sentence
from api.errors import INVALID_BODY, Refused
from api.rules import application_settings as rules
from api.rules.application_settings import InvalidSetting
from api.rules.application_tokens import PREVIOUS_SECRET_LIFETIME
from api.schemas.bodies import Strict, describe, first_of
from common.db.applications import Application
from common.enrolment.ownership import OwnNames
from common.names import DomainName

_Body = TypeVar("_Body", bound=Strict)


class RefusedField(Refused):
    """A value that the body of the API call cannot have; `name` is its field there."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(INVALID_BODY, hint=f"{name}: {words}")
        self.name = name
        self.words = words


@dataclass(frozen=True, slots=True)
class RefusedForm:
    """A form that is shown again with what was typed, and with what is wrong with it.

    The fault is that of a field, or of the whole form. An empty one stands for none.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    hint: str = ""

    def __bool__(self) -> bool:
        return bool(self.errors or self.message)

    def of_action(self, *actions: str) -> RefusedForm:
        """Itself where it was one of these actions' form, else an empty one."""
        return self if self.values.get("action") in actions else RefusedForm()

    def value(self, name: str, stored: str | None) -> str:
        """Return what was typed into a field, or else what is stored."""
        return self.values.get(name, stored or "")

    def error(self, name: str) -> str:
        """Return what is wrong with a field; an empty text where nothing is."""
        return self.errors.get(name, "")

    @classmethod
    def of(cls, values: Mapping[str, str], error: Refused, fields: Mapping[str, str]) -> Self:
        """`fields` are the form's by their names in the body."""
        if isinstance(error, RefusedField) and error.name in fields:
            return cls(values, {fields[error.name]: sentence(error.words)})
        return cls(values, {}, sentence(error.refusal.message), sentence(error.hint) if error.hint else "")


class ApplicationView:
    """Renders pages of one application, and reads its forms; each group of pages creates its own."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def page(
        self, request: web.Request, template: str, application: Application, *, status: int = 200, **values: Any
    ) -> web.Response:
        """Render a page of the application, with what the visitor may do with it."""
        visitor = visitor_of(request)
        may_change = visitor.may_change(application)
        return self._context.renderer.page(
            request,
            template,
            status=status,
            application=application,
            may_change=may_change,
            webhook_url=shown_url(application.webhook_url, shows_query=may_change),
            may_own=visitor.may_own(application),
            overlap_hours=int(PREVIOUS_SECRET_LIFETIME.total_seconds() // 3600),
            **values,
        )

    def redirect(self, application: Application, path: str, flash: Flash) -> web.Response:
        """To the page `path` of the application, which then shows `flash`."""
        return self._context.renderer.redirect(f"{ROOT}/applications/{application.id}{path}", flash)

    def targets(self) -> dict[str, str]:
        """Return the names that the cname targets of Power and of Secure must lead to."""
        return {"power": self._context.settings.power_target, "secure": self._context.settings.ssl_target}

    def read_cname_target(self, text: str) -> str:
        """Read a cname target. Raises: `InvalidSetting`."""
        return rules.read_cname_target(text.strip(), OwnNames.of(self._context.settings))

    def read_application_url(self, text: str) -> str:
        """Read the URL of an origin. Raises: `InvalidSetting`."""
        return rules.read_application_url(text, self._context.enrolment.enrolling.addresses)

    def read_webhook_url(self, text: str) -> str:
        """Read the URL of a webhook. Raises: `InvalidSetting`."""
        return rules.read_webhook_url(text, self._context.enrolment.enrolling.addresses)

    def require_typed(self, request: web.Request, name: DomainName) -> None:
        """Refuse a form into which the name was not typed. Raises: HTTPBadRequest."""
        if text_of(request, "typed").strip().lower().rstrip(".") != name.text:
            raise web.HTTPBadRequest

    def read(
        self, request: web.Request, fields: dict[str, Callable[[str], Any]]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of the form's fields, and an error message for each that cannot be read."""
        values, errors = {}, {}
        for name, read in fields.items():
            try:
                values[name] = read(text_of(request, name).strip())
            except InvalidSetting as error:
                errors[name] = sentence(str(error))
        return values, errors


def parse_body(schema: type[_Body], given: Mapping[str, Any]) -> _Body:
    """Read the form's values as the body of the API call. Raises: `Refused` in the words of the API."""
    try:
        return schema.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        place, words = first_of(error)
        raise RefusedField(str(place[0]), words if len(place) == 1 else describe(error)) from None


def optional(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader that takes an empty field for None."""
    return lambda text: read(text) if text else None


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a reader that takes one of these texts only. The reader raises `InvalidSetting`."""

    def read(text: str) -> str:
        if text not in choices:
            raise InvalidSetting(f"expected one of {', '.join(choices)}")
        return text

    return read


def texts(request: web.Request) -> dict[str, Any]:
    """Return the form's fields as they were sent, to be shown again."""
    return {name: value for name, value in request[FORM].items() if isinstance(value, str) and name != "csrf"}
