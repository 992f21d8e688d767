"""Compiles what responses carry from the records of an application and of a domain that states parts of it itself."""

from __future__ import annotations

from msgspec import structs

from edge.replica.records import DomainPolicyRecord, ResponsePolicyRecord
from edge.routing.response_policy import ResponsePolicy, compile_policy

_NOTHING = ResponsePolicyRecord()


def application_policy(record: ResponsePolicyRecord | None) -> ResponsePolicy | None:
    """Return the fields that responses of the application carry, the partner's own ones last."""
    if record is None:
        return None
    fields = {}
    if record.hsts_seconds is not None:
        fields["Strict-Transport-Security"] = (
            f"max-age={record.hsts_seconds}"
            + ("; includeSubDomains" if record.hsts_subdomains else "")
            + ("; preload" if record.hsts_preload else "")
        )
    if record.nosniff:
        fields["X-Content-Type-Options"] = "nosniff"
    if record.referrer_policy is not None:
        fields["Referrer-Policy"] = record.referrer_policy
    return compile_policy({**fields, **record.fields}.items(), record.compression)


def domain_policy(application: ResponsePolicyRecord | None, own: DomainPolicyRecord) -> ResponsePolicy | None:
    """Return the fields that responses of a domain carry: what it states itself, else what its application does."""
    return application_policy(_over(application or _NOTHING, own))


def _over(inherited: ResponsePolicyRecord, own: DomainPolicyRecord) -> ResponsePolicyRecord:
    record = inherited
    if own.hsts == "off":
        record = structs.replace(record, hsts_seconds=None)
    elif own.hsts is not None:
        seconds, subdomains, preload = structs.astuple(own.hsts)
        record = structs.replace(record, hsts_seconds=seconds, hsts_subdomains=subdomains, hsts_preload=preload)
    if own.nosniff is not None:
        record = structs.replace(record, nosniff=own.nosniff)
    if own.compression is not None:
        record = structs.replace(record, compression=own.compression)
    if own.referrer_policy is not None:
        record = structs.replace(record, referrer_policy=None if own.referrer_policy == "off" else own.referrer_policy)
    if own.fields:
        stated = {name.lower() for name in own.fields}
        kept = {name: value for name, value in inherited.fields.items() if name.lower() not in stated}
        added = {name: value for name, value in own.fields.items() if value}
        record = structs.replace(record, fields=kept | added)
    return record
