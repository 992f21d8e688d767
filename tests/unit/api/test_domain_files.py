"""Files of domains: what is read of each row, which line an error names, and that written rows are read back."""

from __future__ import annotations

import io
from itertools import chain

import orjson
import pytest

from api.services.domain_files import FORMATS, Format, end_of, format_of, read_rows, write_rows
from common.db.domain_rows import EnrolmentRow, MonitorRow, Row
from common.domain_settings import DomainSettings
from common.errors import OperatorError
from common.records import parse_record

CNAME = parse_record({"type": "CNAME", "host": "shop", "value": "apps.acme.test", "ttl": 300})
TEXT = parse_record({"type": "TXT", "host": "@", "value": 'a "quoted", text', "ttl": 60})
ROWS: list[Row] = [
    EnrolmentRow("power", "shop.customer.test", DomainSettings("https://o.test/a", ("/static", "/img"))),
    EnrolmentRow("power", "www.customer.test", DomainSettings("https://o.test", ())),
    EnrolmentRow("secure", "customer.test", DomainSettings(redirect_to="https://www.customer.test")),
    EnrolmentRow(
        "secure",
        "own.customer.test",
        DomainSettings(
            "https://o.test",
            metadata={"plan": "pro"},
            visitors={"deny": ["192.0.2.0/24"]},
            response_policy={
                "hsts": {"maxAge": 5, "includeSubDomains": True, "customersAgree": True},
                "nosniff": False,
            },
        ),
    ),
    MonitorRow("customer.test", "shop", (CNAME, TEXT), "user, 7", 'job "1"\nb', None),
]


def read(content: str | bytes, file_format: Format = "csv") -> list[tuple[int, Row | str]]:
    raw = content.encode() if isinstance(content, str) else content
    read_bytes: list[int] = []
    rows = list(read_rows(io.BytesIO(raw), file_format, read_bytes.append))
    assert sum(read_bytes) == len(raw)
    return rows


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("split", [0, 1, 4])
def test_what_is_written_is_read_back(file_format: Format, split: int) -> None:
    first, rest = ROWS[:split], ROWS[split:]
    parts = write_rows(first, file_format, is_first=True) if first else []
    text = "".join(chain(parts, write_rows(rest, file_format, is_first=not first) if rest else []))
    text += end_of(file_format, is_empty=False)
    assert [row for _, row in read(text, file_format)] == ROWS
    if file_format == "json":
        assert len(orjson.loads(text)) == len(ROWS)


def test_an_empty_list_is_a_file_too() -> None:
    assert read(end_of("json", is_empty=True), "json") == []
    assert read("product,domain\n") == []


def test_each_row_has_its_line() -> None:
    content = (
        "\ufeffproduct,domain,applicationUrl,dnsRecords\r\n"
        "power,a.b.test,https://o.test,\r\n"
        'monitor,b.test,,"[{""type"":""A"",\n""host"":""@"",""value"":""192.0.2.1"",""ttl"":60}]"\r\n'
        "\r\n"
        "power,x..y,https://o.test,\r\n"
        "power,c.b.test,,\r\n"
        "secure,d.b.test,https://o.test/path,\r\n"
        "dns,e.b.test,,\r\n"
        "monitor,www.b.test,,[]\r\n"
        "power,f.b.test,https://o.test,,more\r\n"
        "monitor,b.test,,[{\r\n"
    )
    rows = read(content)
    assert [line for line, _ in rows] == [2, 3, 6, 7, 8, 9, 10, 11, 12]
    assert [type(row) for _, row in rows[:2]] == [EnrolmentRow, MonitorRow]
    words = [str(row) for _, row in rows[2:]]
    for word, expected in zip(
        words,
        ("domain: ", "applicationUrl: missing", "applicationUrl: Secure", "product: one of", "domain: not an apex"),
        strict=False,
    ):
        assert word.startswith(expected)
    assert words[5:] == ["has 5 cells, the first line 4", "dnsRecords: a JSON list is expected"]


def test_objects_are_read_however_they_are_laid_out() -> None:
    content = '[ {"product": "power",\n "domain": "a.b.test",\n "applicationUrl": "https://o.test"}, {"product":\n1}]'
    assert [line for line, _ in read(content, "json")] == [1, 3]
    assert read('{"product":"secure","domain":"a.test","powerRootPathAccess":[]}', "json") == [
        (1, "powerRootPathAccess: not a field of secure")
    ]
    many = "[" + ",".join('{"product":"secure","domain":"a.test"}' for _ in range(5_000)) + "]"
    assert read(many, "json") == [(1, EnrolmentRow("secure", "a.test"))] * 5_000


@pytest.mark.parametrize(
    ("content", "file_format", "words"),
    [
        (b"product,domain\npower,\xff\n", "csv", "line 2 is not UTF-8"),
        (b"name,domain\n", "csv", "'name' is none of"),
        (b"product\n", "csv", "product and domain are needed"),
        (b"", "csv", "product and domain are needed"),
        (b'product,domain\npower,"a\n', "csv", "is not CSV"),
        (b"[1]", "json", "line 1 is not JSON"),
        (b'[\n{"product": power}', "json", "begins in line 2"),
        (b'[{"a":' + b"[" * 100_000, "json", "line 1"),
        (b'{"a": "' + b"x" * 2_000_000, "json", "too large"),
    ],
    ids=range(9),
)
def test_a_file_that_cannot_be_read_on_says_where(content: bytes, file_format: Format, words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        read(content, file_format)


def test_the_format_is_the_names_ending() -> None:
    assert (format_of("a.CSV"), format_of("/b/c.json")) == ("csv", "json")
    with pytest.raises(OperatorError, match="--format"):
        format_of("domains")
