"""`frontage domain status-link`: a page that a partner shows its customer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.domain_names import DomainArgument, name_of
from api.cli.enrolment import ApplicationOption
from api.cli.printing import AsJson, print_result

if TYPE_CHECKING:
    from api.cli.services import CommandServices


def status_link(
    domain: DomainArgument,
    application: ApplicationOption,
    days: Annotated[int, typer.Option(min=1, max=365, help="How long the link works.")] = 90,
    revoke: Annotated[bool, typer.Option("--revoke", help="End the link instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a link to a page that shows a customer how a domain is, in plain words; it ends the former link."""
    from api.cli.services import run_with_services

    async def work(services: CommandServices) -> tuple[dict[str, str | None], str]:
        owner, name, pages = await services.application(application), name_of(domain), services.status_pages
        if revoke:
            await pages.revoke(owner, name)
            return {"domain": name.text, "link": None}, "the link works no longer"
        made = await pages.make(owner, name, days)
        url, until = pages.url(made), made.expires_at.isoformat()
        return {"domain": name.text, "link": url, "expiresAt": until}, f"{url}\nworks until {until}"

    shown, words = run_with_services(work)
    print_result(shown, words, as_json=as_json)
