"""What an edge reads of its copy: strictly, and without showing what it could not read."""

from __future__ import annotations

import pytest

from edge.replica.records import (
    AcmeKeyRecord,
    ApplicationRecord,
    CertificateRecord,
    OrderRecord,
    RecordUnusable,
    RouteRecord,
    read_record,
)


def test_what_an_older_migration_left_out_has_its_default_and_what_a_newer_one_adds_is_ignored() -> None:
    assert read_record(ApplicationRecord, b'{"send_host":"customer","colour":"red"}') == ApplicationRecord(
        send_host="customer"
    )
    route = read_record(RouteRecord, b'{"application_id":"a","root_path_access":["/x","/y"]}')
    assert route == RouteRecord(application_id="a", root_path_access=("/x", "/y"))
    assert read_record(OrderRecord, b'{"hold_until":1780000000}').hold_until == 1_780_000_000


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (RouteRecord, b""),
        (RouteRecord, b"[]"),
        (RouteRecord, b"null"),
        (RouteRecord, b"{}"),
        (RouteRecord, b"{" * 5000),
        (RouteRecord, b'{"application_id":"\xff"}'),
        (RouteRecord, b'{"application_id":"a\\n"}'),
        (RouteRecord, b'{"application_id":""}'),
        (RouteRecord, b'{"application_id":"a","root_path_access":"/"}'),
        (ApplicationRecord, b'{"maintenance":1}'),
        (ApplicationRecord, b'{"maintenance":"true"}'),
        (ApplicationRecord, b'{"send_host":"other"}'),
        (ApplicationRecord, b'{"buffer_uploads_bytes":0}'),
        (ApplicationRecord, b'{"buffer_uploads_bytes":1.5}'),
        (OrderRecord, b'{"hold_until":"1"}'),
        (OrderRecord, b'{"hold_until":1e999}'),
        (OrderRecord, b'{"hold_until":NaN}'),
        (AcmeKeyRecord, b'{"thumbprint":"a\\n"}'),
    ],
)
def test_anything_else_is_unusable(kind: type[RouteRecord], content: bytes) -> None:
    with pytest.raises(RecordUnusable):
        read_record(kind, content)


def test_the_error_names_the_field_and_not_its_value() -> None:
    with pytest.raises(RecordUnusable) as caught:
        read_record(CertificateRecord, b'{"chain":"c","private_key":["hushhush"]}')
    assert "private_key" in str(caught.value)
    assert "hushhush" not in str(caught.value)
