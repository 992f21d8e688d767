"""Verdicts: what answers say of a record, and when "missing" is believed.

Rules
    a failure to ask (server failure, refusal, time-out, truncation that TCP could not mend) is unknown, never missing
    "present" from one server is believed, unless a cache may hold it for longer than the check interval: then the
        zone's authoritative servers decide, and where none answers it stays present
    "missing" from a resolver is only a suspicion, until in the same run
        the zone's authoritative servers confirm it, all that answer, and no other resolver contradicts;
        or, none of them being reached, another resolver gives the same answer, and both repeat it
    authoritative servers that all have the record outweigh the resolver; disagreement of any kind is unknown
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from common.dns.questions import Answer, Outcome
from common.records import Record, matches


class RecordVerdict(StrEnum):
    """Whether a record is in the DNS."""

    PRESENT = "present"
    MISSING = "missing"
    UNKNOWN = "unknown"


def judge_answer(record: Record, answer: Answer) -> RecordVerdict:
    """Return the verdict of one server's answer to the record's own question."""
    if not answer.outcome.is_known:
        return RecordVerdict.UNKNOWN
    return RecordVerdict.PRESENT if matches(record, answer.values) else RecordVerdict.MISSING


def judge_flattened(owner: Collection[Answer], target: Collection[Answer]) -> RecordVerdict:
    """Decide whether the owner of a CNAME that cannot be one (an apex) has an address of its target.

    Some providers answer an apex with its target's addresses instead (ALIAS, ANAME, CNAME flattening); which ones,
    they may choose.
    """
    here, there = _addresses(owner), _addresses(target)
    if here & there:
        return RecordVerdict.PRESENT
    doubted = (*owner, *target) if here else owner
    if any(not answer.outcome.is_known for answer in doubted):
        return RecordVerdict.UNKNOWN
    return RecordVerdict.MISSING


def confirm(authorities: Collection[RecordVerdict], others: Collection[RecordVerdict]) -> RecordVerdict:
    """Return the verdict after a resolver found nothing.

    `authorities` are the verdicts of the zone's own servers, one each, `others` those of the other resolvers.
    """
    first, second = (
        {each for each in verdicts if each is not RecordVerdict.UNKNOWN} for verdicts in (authorities, others)
    )
    if not first:
        return RecordVerdict.MISSING if second == {RecordVerdict.MISSING} else RecordVerdict.UNKNOWN
    if first == {RecordVerdict.MISSING} and RecordVerdict.PRESENT not in second:
        return RecordVerdict.MISSING
    return RecordVerdict.PRESENT if first == {RecordVerdict.PRESENT} else RecordVerdict.UNKNOWN


def confirm_present(authorities: Collection[RecordVerdict]) -> RecordVerdict:
    """Return the verdict after a resolver found a record that may be gone since.

    `authorities` are the verdicts of the zone's own servers, one each. MISSING only if all that answer agree.
    """
    return (
        RecordVerdict.MISSING
        if set(authorities) - {RecordVerdict.UNKNOWN} == {RecordVerdict.MISSING}
        else RecordVerdict.PRESENT
    )


def _addresses(answers: Collection[Answer]) -> set[str]:
    return {value for answer in answers if answer.outcome is Outcome.RECORDS for value in answer.values}
