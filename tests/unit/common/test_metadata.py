"""Notes as header fields: whatever the text, one valid field, and the text again for the origin."""

from __future__ import annotations

import re
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from common.metadata import field_name, field_value

# RFC 9110 §5.5, without the obs-text that nobody reads the same
FIELD_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")


@given(st.text())
def test_any_text_is_a_field_value_that_says_it(text: str) -> None:
    value = field_value(text)
    assert FIELD_VALUE.fullmatch(value)
    assert unquote(value) == text


def test_a_key_is_a_field_that_cgi_and_proxies_pass_on() -> None:
    assert field_name("customer_id") == "X-Service-Metadata-customer-id"
