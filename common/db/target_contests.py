"""What other applications have of a name that an application wants as its cname target. Owns no table."""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from asyncpg import Connection, Record

from common.db.target_sightings import has_lapsed
from common.enrolment.ownership import REMEMBERED_DAYS
from common.errors import FrontageError

_SET_AT = "case when cname_target = t.name then cname_target_set_at else secure_cname_target_set_at end"
_TARGET_HAS_LAPSED = has_lapsed("t.name", f"coalesce({_SET_AT}, created_at)")
_FORMER_HAS_LAPSED = has_lapsed("t.name", "seen.elsewhere_since")


@dataclass(frozen=True, slots=True)
class TargetContest:
    """A claim of the application `rival` to a name that another application wants as its cname target.

    The name is the rival's target or its enrolled domain, or was. `has_lapsed`: it was a target, and reserves nothing
    any more.
    """

    target: str
    kind: Literal["target", "domain", "former"]
    rival: str
    has_lapsed: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        match self.kind:
            case "target":
                return f"the cname target {self.target} belongs to another application"
            case "domain":
                return f"{self.target} is an enrolled domain, so it cannot be a cname target"
            case "former":
                return f"{self.target} was another application's, and domains may still lead to it"


class CnameTargetTaken(FrontageError):
    """Another application has the cname target, or it is an enrolled domain; the text is for the operator."""

    def __init__(self, contests: Sequence[TargetContest]) -> None:
        first = contests[0]
        remedies = {
            "target": f": `frontage app id {first.target}` prints which",
            "former": f": `frontage domain release {first.target}` frees it",
        }
        super().__init__(f"{first}{remedies.get(first.kind, '')}")
        self.contests = contests


async def find_contests(
    connection: Connection[Record], application_id: str, wanted: Sequence[str]
) -> list[TargetContest]:
    """Return what other applications have of the wanted names that the application does not have as targets already."""
    rows = await connection.fetch(
        "select t.name as target, kind, rival, has_lapsed from unnest($2::text[]) t (name), lateral ("
        f"select 'target' as kind, id as rival, {_TARGET_HAS_LAPSED} as has_lapsed from applications"
        "  where t.name in (cname_target, secure_cname_target) and id <> $1"
        " union select 'domain', application_id, false from domains where domain = t.name"
        f" union select 'former', application_id, target_until is not null and {_FORMER_HAS_LAPSED}"
        "  from former_holders where domain = t.name and application_id <> $1"
        "  and released_at > now() - make_interval(days => $3)) contest"
        " where not exists (select from applications where id = $1 and t.name in (cname_target, secure_cname_target))"
        " order by kind desc, target",
        application_id,
        wanted,
        REMEMBERED_DAYS,
    )
    return [TargetContest(**row) for row in rows]
