"""Files of domains, CSV and JSON: what `frontage import` reads and `frontage export` writes. A row at a time.

A row has the fields of the API's bodies: ``product`` (power, secure or monitor), ``domain``, and of Power and Secure
``applicationUrl``, ``powerRootPathAccess``, ``redirectTo`` and ``metadata``, of Monitor ``subdomain``, ``dnsRecords``,
``userId``, ``jobId`` and ``userEmail``. In a CSV file an empty cell is a field that is not given, and lists and objects
are JSON. A JSON file is one list of objects, or objects one after the other; exported, each has a line of its own.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

import orjson
from pydantic import ValidationError

from api.rules.application_settings import InvalidSetting
from api.rules.record_rules import MOST_RECORDS, check_record, check_size
from api.schemas.bodies import describe
from api.schemas.response_policy import DomainResponsePolicyBody
from api.schemas.visitors import VisitorRules
from common.db.domain_rows import EnrolmentRow, MonitorRow, Row
from common.domain_settings import DomainSettings
from common.errors import FrontageError, OperatorError
from common.metadata import check_metadata
from common.names import parse_domain, parse_enrollable, parse_subdomain
from common.records import Record, as_json, parse_record
from common.urls import MOST_ROOT_PATHS, parse_application_url, parse_redirect_target, parse_root_path

Format: TypeAlias = Literal["csv", "json"]
Product: TypeAlias = Literal["power", "secure", "monitor"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
FORMATS: tuple[Format, ...] = get_args(Format)
FIELDS = (
    *(
        "product",
        "domain",
        "applicationUrl",
        "powerRootPathAccess",
        "redirectTo",
        "metadata",
        "visitors",
        "responsePolicy",
    ),
    *("subdomain", "dnsRecords", "userId", "jobId", "userEmail"),
)

_OBJECT_CELLS = ("metadata", "visitors", "responsePolicy")
_JSON_CELLS = ("powerRootPathAccess", "dnsRecords", *_OBJECT_CELLS)
_OF_PRODUCT: Mapping[str, tuple[str, ...]] = {
    "power": ("applicationUrl", "powerRootPathAccess", *_OBJECT_CELLS),
    "secure": ("applicationUrl", "redirectTo", *_OBJECT_CELLS),
    "monitor": ("subdomain", "dnsRecords", "userId", "jobId", "userEmail"),
}
_MOST_LABEL_CHARACTERS = 1024
_CHUNK_BYTES = 64 * 1024
_LARGEST_ROW_CHARACTERS = 1024 * 1024


class InvalidRow(FrontageError):
    """What is wrong with a row, as the end of a sentence; the others are not affected."""


# Reading ----------------------------------------------------------------------------------------------------------


def read_rows(file: BinaryIO, file_format: Format, on_bytes: Callable[[int], None]) -> Iterator[tuple[int, Row | str]]:
    """Yield the number of each row's first line, and the row or what is wrong with it.

    `on_bytes` is called with how many bytes were read. Raises: `OperatorError` for a file that cannot be read on.
    """
    lines = _lines(file, on_bytes)
    for number, given in _csv_rows(lines) if file_format == "csv" else _json_rows(lines):
        try:
            yield number, parse_row(given)
        except InvalidRow as error:
            yield number, str(error)


def _lines(file: BinaryIO, on_bytes: Callable[[int], None]) -> Iterator[tuple[int, str]]:
    """Yield the number of each line and the line, a long one in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    number = 1
    while True:
        piece = file.readline(_CHUNK_BYTES)
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise OperatorError(f"line {number} is not UTF-8 text: save the file as UTF-8") from error
        if not piece:
            return
        on_bytes(len(piece))
        yield number, text
        number += piece.endswith(b"\n")


def _csv_rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    reader = csv.reader((text for _, text in lines), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_columns(names)
        first = reader.line_num + 1
        for cells in reader:
            if len(cells) > len(names):
                yield first, f"has {len(cells)} cells, the first line {len(names)}"
            elif cells:
                yield first, {name: cell for name, cell in zip(names, cells, strict=False) if cell}
            first = reader.line_num + 1
    except csv.Error as error:
        raise OperatorError(f"line {reader.line_num} is not CSV ({error})") from error


def _check_columns(names: list[str]) -> None:
    """Refuse columns that are not known, or missing. Raises: `OperatorError`."""
    unknown = next((name for name in names if name not in FIELDS), None)
    if unknown is not None:
        raise OperatorError(f"the first line names the columns: {unknown!r} is none of {', '.join(FIELDS)}")
    if not {"product", "domain"} <= set(names) or len(set(names)) < len(names):
        raise OperatorError("the first line names the columns, each once: product and domain are needed")


def _json_rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a list, or one after the other."""
    decoder, unread, first = json.JSONDecoder(), "", 1
    for number, text in lines:
        first = first if unread else number
        unread += text
        while unread := unread.lstrip(" \t\r\n,[]"):
            if not unread.startswith("{"):
                raise OperatorError(f"line {first} is not JSON: a list of objects is expected")
            try:
                given, end = decoder.raw_decode(unread)
            except (json.JSONDecodeError, RecursionError) as error:
                if len(unread) > _LARGEST_ROW_CHARACTERS or isinstance(error, RecursionError):
                    raise OperatorError(f"the object that begins in line {first} is not JSON, or too large") from error
                break
            yield first, given
            unread, first = unread[end:], number
    if unread:
        raise OperatorError(f"the object that begins in line {first} is not JSON, or the file ends in it")


def parse_row(given: Any) -> Row:
    """Read a row. Raises: `InvalidRow`."""
    if not isinstance(given, dict):
        raise InvalidRow(given if isinstance(given, str) else "is not a JSON object")
    fields = {name: value for name, value in given.items() if value is not None}
    product = fields.pop("product", None)
    if product not in PRODUCTS:
        raise InvalidRow(f"product: one of {', '.join(PRODUCTS)}")
    for name in _JSON_CELLS:
        if isinstance(fields.get(name), str):
            fields[name] = _from_cell(name, fields[name])
    foreign = next((name for name in fields if name not in ("domain", *_OF_PRODUCT[product])), None)
    if foreign is not None:
        raise InvalidRow(f"{foreign}: not a field of {product}")
    if not isinstance(fields.get("domain"), str):
        raise InvalidRow("domain: missing")
    return _watch(fields) if product == "monitor" else _enrolment(product, fields)


def _from_cell(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        kind = "object" if name in _OBJECT_CELLS else "list"
        raise InvalidRow(f"{name}: a JSON {kind} is expected") from error


def _enrolment(product: Literal["power", "secure"], fields: Mapping[str, Any]) -> EnrolmentRow:
    url, target, paths, notes = (
        fields.get(name) for name in ("applicationUrl", "redirectTo", "powerRootPathAccess", "metadata")
    )
    if product == "power" and url is None:
        raise InvalidRow("applicationUrl: missing")
    name = _checked("domain", lambda: parse_enrollable(fields["domain"]).text)
    settings = DomainSettings(
        None if url is None else _checked("applicationUrl", lambda: _application_url(product, _text(url))),
        None if paths is None else _checked("powerRootPathAccess", lambda: _root_paths(paths)),
        None if target is None else _checked("redirectTo", lambda: str(parse_redirect_target(_text(target)))),
        None if notes is None else _checked("metadata", lambda: _metadata(notes)),
        _rules("visitors", VisitorRules, fields),
        _rules("responsePolicy", DomainResponsePolicyBody, fields),
    )
    return EnrolmentRow(product, name, settings)


def _application_url(product: Product, text: str) -> str:
    parsed = parse_application_url(text)
    if product == "secure" and parsed.path not in ("", "/"):
        raise InvalidSetting(f"Secure forwards paths unchanged, so it has none: {parsed.scheme}://{parsed.authority}")
    return text


def _metadata(given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise InvalidSetting("an object of texts is expected")
    return check_metadata(given)


def _rules(
    name: str, schema: type[VisitorRules | DomainResponsePolicyBody], fields: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what is kept of the object under this name, None where it is not given. Raises: `InvalidRow`."""
    if fields.get(name) is None:
        return None
    try:
        return schema.model_validate(fields[name]).stored()
    except ValidationError as error:
        raise InvalidRow(f"{name}: {describe(error)}") from None
    except ValueError as error:
        raise InvalidRow(f"{name}: {error}") from None


def _root_paths(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
        raise InvalidSetting("a list of paths is expected")
    if len(given) > MOST_ROOT_PATHS:
        raise InvalidSetting(f"at most {MOST_ROOT_PATHS} paths")
    return tuple(map(parse_root_path, given))


def _watch(fields: Mapping[str, Any]) -> MonitorRow:
    name = _checked("domain", lambda: parse_domain(fields["domain"]))
    if not name.is_root:
        raise InvalidRow(f"domain: not an apex: {name.registrable} is the domain, {name.subdomain} the subdomain")
    given = fields.get("dnsRecords")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_RECORDS:
        raise InvalidRow(f"dnsRecords: a list of 1 to {MOST_RECORDS} records is expected")
    labels = [fields.get(each) for each in ("userId", "jobId", "userEmail")]
    if not all(each is None or (isinstance(each, str) and len(each) <= _MOST_LABEL_CHARACTERS) for each in labels):
        raise InvalidRow(f"userId, jobId and userEmail: text of at most {_MOST_LABEL_CHARACTERS} characters")
    if any(each and "\0" in each for each in labels):
        raise InvalidRow("userId, jobId and userEmail: characters that cannot be kept")
    subdomain = fields.get("subdomain")
    return MonitorRow(
        name.text,
        None if subdomain is None else _checked("subdomain", lambda: parse_subdomain(_text(subdomain), name.text)),
        _checked("dnsRecords", lambda: _records(given, name.text)),
        *labels,
    )


def _records(given: list[Any], domain: str) -> tuple[Record, ...]:
    records = tuple(map(parse_record, given))
    for record in records:
        check_record(record, domain)
    check_size(records)
    return records


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidSetting("text is expected")
    return given


def _checked(name: str, parse: Callable[[], Any]) -> Any:
    """Read a field. Raises: `InvalidRow` that names it."""
    try:
        return parse()
    except FrontageError as error:
        raise InvalidRow(f"{name}: {error}") from error


# Writing ----------------------------------------------------------------------------------------------------------


def write_rows(rows: Iterable[Row], file_format: Format, *, is_first: bool) -> Iterator[str]:
    """Yield the text of each row; before the first comes what opens the file.

    `end_of` closes it.
    """
    if file_format == "csv":
        line = _CsvLine()
        writer = csv.writer(line, lineterminator="\n")
        if is_first:
            writer.writerow(FIELDS)
        for row in rows:
            fields = _fields(row)
            writer.writerow([_cell(fields.get(name)) for name in FIELDS])
        yield line.text
        return
    for row in rows:
        yield ("[\n" if is_first else ",\n") + orjson.dumps(_fields(row)).decode()
        is_first = False


def end_of(file_format: Format, *, is_empty: bool) -> str:
    """Return what closes the file."""
    if file_format == "csv":
        return ""
    return "[]\n" if is_empty else "\n]\n"


class _CsvLine:
    """What a CSV writer writes to."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _fields(row: Row) -> dict[str, Any]:
    given: dict[str, Any]
    if isinstance(row, EnrolmentRow):
        given = {
            "product": row.product,
            "domain": row.domain,
            **row.settings.as_json(),
        }
    else:
        given = {
            "product": "monitor",
            "domain": row.domain,
            "subdomain": row.subdomain,
            "dnsRecords": [as_json(record) for record in row.records],
            "userId": row.user_id,
            "jobId": row.job_id,
            "userEmail": row.user_email,
        }
    return {name: value for name, value in given.items() if value is not None}


def format_of(name: str) -> Format:
    """Return the format by how the file's name ends. Raises: `OperatorError`."""
    ending = name.rpartition(".")[2].lower()
    if ending not in FORMATS:
        raise OperatorError(f"{name}: give --format csv or --format json, or a name that ends in .csv or .json")
    return ending
