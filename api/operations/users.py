"""The user of an API key, organisations with their members, and the installation: for API keys alone."""

from __future__ import annotations

from typing import Any, Final

from api.answers.installation import Operations
from api.answers.lists import ListOf
from api.answers.messages import Message
from api.answers.organisations import Account, Key, Member, MemberLink, Organisation, SignInLink
from api.handlers.account import AccountHandlers
from api.handlers.operations import OperationsHandler
from api.handlers.organisations import OrganisationHandlers
from api.operations.operation import Operation
from api.operations.parameters import LIMIT, NEXT
from api.schemas import organisations
from common.accounts import Permission

_ORGANISATION: Final = {"organisation": "The organisation's id."}
_MEMBER: Final = {**_ORGANISATION, "user": "The member's id."}

ACCOUNT: Final[tuple[Operation[AccountHandlers], ...]] = (
    Operation(
        "GET",
        "/account",
        AccountHandlers.get,
        "getAccount",
        "Account",
        "Show the user and the API key that asks",
        Account,
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "GET",
        "/account/keys",
        AccountHandlers.list_keys,
        "listKeys",
        "Account",
        "List the user's API keys",
        ListOf[Key],
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "DELETE",
        "/account/keys/{key}",
        AccountHandlers.delete_key,
        "revokeKey",
        "Account",
        "Revoke an API key of the user, at once",
        Message,
        errors=(404,),
        paths={"key": "The key's id, as the list shows it."},
        by_key_alone=True,
        has_application=False,
    ),
)

ORGANISATIONS: Final[tuple[Operation[OrganisationHandlers], ...]] = (
    Operation(
        "GET",
        "/organisations",
        OrganisationHandlers.list_all,
        "listOrganisations",
        "Organisations",
        "List the organisations that the user may see, by name",
        ListOf[Organisation],
        queries=(LIMIT, NEXT),
        errors=(400,),
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "POST",
        "/organisations",
        OrganisationHandlers.post,
        "createOrganisation",
        "Organisations",
        "Make an organisation, as an operator",
        Organisation,
        status=201,
        body=organisations.OrganisationCreation,
        example={"name": "Acme"},
        errors=(400, 404, 409),
        permission=Permission.OWN,
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "GET",
        "/organisations/{organisation}",
        OrganisationHandlers.get,
        "getOrganisation",
        "Organisations",
        "Show an organisation",
        Organisation,
        errors=(404,),
        paths=_ORGANISATION,
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "GET",
        "/organisations/{organisation}/members",
        OrganisationHandlers.list_members,
        "listMembers",
        "Organisations",
        "List the members, by address",
        ListOf[Member],
        queries=(LIMIT, NEXT),
        errors=(400, 404),
        paths=_ORGANISATION,
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "PUT",
        "/organisations/{organisation}/members",
        OrganisationHandlers.put_member,
        "putMember",
        "Organisations",
        "Add a member or change a role, as an owner; new users and those that gain rights get a link to sign in once",
        MemberLink,
        body=organisations.MemberChange,
        example={"email": "ada@acme.example", "role": "developer"},
        errors=(400, 404, 409),
        paths=_ORGANISATION,
        permission=Permission.OWN,
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "DELETE",
        "/organisations/{organisation}/members/{user}",
        OrganisationHandlers.delete_member,
        "removeMember",
        "Organisations",
        "End a membership, as an owner, or your own",
        Message,
        errors=(404, 409),
        paths=_MEMBER,
        permission=Permission.OWN,
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "PUT",
        "/organisations/{organisation}/members/{user}/link",
        OrganisationHandlers.put_link,
        "makeLink",
        "Organisations",
        "Make a link that signs a member in to the dashboard once, as an owner; it replaces the one before",
        SignInLink,
        errors=(404, 409),
        paths=_MEMBER,
        permission=Permission.OWN,
        by_key_alone=True,
        has_application=False,
    ),
)

INSTALLATION: Final[tuple[Operation[OperationsHandler], ...]] = (
    Operation(
        "GET",
        "/operations",
        OperationsHandler.get,
        "getOperations",
        "Operations",
        "Show what runs, what is due and what needs a hand, as an operator",
        Operations,
        errors=(404,),
        by_key_alone=True,
        has_application=False,
    ),
)

OPERATIONS: Final[tuple[Operation[Any], ...]] = (*ACCOUNT, *ORGANISATIONS, *INSTALLATION)
