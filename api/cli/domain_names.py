"""The domain that a command is about: the argument, and how it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import OperatorError

if TYPE_CHECKING:
    from common.names import DomainName

DomainArgument = Annotated[str, typer.Argument(metavar="DOMAIN", help="The host name.")]


def name_of(domain: str) -> DomainName:
    """Parse a domain name. Raises: `OperatorError`."""
    from common.errors import InvalidName
    from common.names import parse_enrollable

    try:
        return parse_enrollable(domain)
    except InvalidName as error:
        raise OperatorError(f"{domain!r} is no domain name: {error}") from error
