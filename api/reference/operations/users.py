"""The user of an API key, organisations with their members, and the installation: for API keys alone."""

from __future__ import annotations

from functools import partial
from typing import Final

from api.answers.installation import Operations
from api.answers.messages import Message
from api.answers.organisations import Account, Keys, MemberLink, Members, Organisation, Organisations, SignInLink
from api.reference.operations.operation import Operation
from api.reference.operations.parameters import LIMIT, NEXT
from api.schemas import organisations
from common.accounts import Permission

_by_key = partial(Operation, by_key_alone=True, has_application=False)
_ORGANISATION: Final = {"organisation": "The organisation's id."}
_MEMBER: Final = {**_ORGANISATION, "user": "The member's id."}

OPERATIONS: Final[tuple[Operation, ...]] = (
    _by_key("GET", "/account", "getAccount", "Account", "Show the user and the API key that asks", Account),
    _by_key("GET", "/account/keys", "listKeys", "Account", "List the user's API keys", Keys),
    _by_key(
        "DELETE",
        "/account/keys/{key}",
        "revokeKey",
        "Account",
        "Revoke an API key of the user, at once",
        Message,
        errors=(404,),
        paths={"key": "The key's id, as the list shows it."},
    ),
    _by_key(
        "GET",
        "/organisations",
        "listOrganisations",
        "Organisations",
        "List the organisations that the user may see, by name",
        Organisations,
        queries=(LIMIT, NEXT),
        errors=(400,),
    ),
    _by_key(
        "POST",
        "/organisations",
        "createOrganisation",
        "Organisations",
        "Make an organisation, as an operator",
        Organisation,
        status=201,
        body=organisations.OrganisationCreation,
        example={"name": "Acme"},
        errors=(400, 404, 409),
        permission=Permission.OWN,
    ),
    _by_key(
        "GET",
        "/organisations/{organisation}",
        "getOrganisation",
        "Organisations",
        "Show an organisation",
        Organisation,
        errors=(404,),
        paths=_ORGANISATION,
    ),
    _by_key(
        "GET",
        "/organisations/{organisation}/members",
        "listMembers",
        "Organisations",
        "List the members, by address",
        Members,
        queries=(LIMIT, NEXT),
        errors=(400, 404),
        paths=_ORGANISATION,
    ),
    _by_key(
        "PUT",
        "/organisations/{organisation}/members",
        "putMember",
        "Organisations",
        "Add a member or change a role, as an owner; new users and those that gain rights get a link to sign in once",
        MemberLink,
        body=organisations.MemberChange,
        example={"email": "ada@acme.example", "role": "developer"},
        errors=(400, 404, 409),
        paths=_ORGANISATION,
        permission=Permission.OWN,
    ),
    _by_key(
        "DELETE",
        "/organisations/{organisation}/members/{user}",
        "removeMember",
        "Organisations",
        "End a membership, as an owner, or your own",
        Message,
        errors=(404, 409),
        paths=_MEMBER,
        permission=Permission.OWN,
    ),
    _by_key(
        "PUT",
        "/organisations/{organisation}/members/{user}/link",
        "makeLink",
        "Organisations",
        "Make a link that signs a member in to the dashboard once, as an owner; it replaces the one before",
        SignInLink,
        errors=(404, 409),
        paths=_MEMBER,
        permission=Permission.OWN,
    ),
    _by_key(
        "GET",
        "/operations",
        "getOperations",
        "Operations",
        "Show what runs, what is due and what needs a hand, as an operator",
        Operations,
        errors=(404,),
    ),
)
