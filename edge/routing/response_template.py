"""Reads a response's head by comparing it with earlier ones of its origin, and rewrites it, instead of parsing it.

An application states the same fields in the same order, again and again: with another date, cookie, entity tag, length.
What is identical needs no second validation, and the changed value of a field that is only forwarded needs to be
validated and nothing else. Every field that decides (framing but for the length, connection, hop-by-hop fields) must be
identical; so must the status line and the order of fields. Values that have addresses are mapped each time, for the
route that asks. `tests.unit.edge.test_response_template` compares it with `response.parse` and `rewrite`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from edge.http import dates
from edge.http.head_pattern import VALUE, HeadPattern, with_gaps
from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.routing import cookies, mapping
from edge.routing.response_rewriting import asked_from, connection_lines, framing_lines
from edge.routing.route import Route

_MAX_VALUES: Final = 16
_MAX_PLACES: Final = 4
_PLACE_BYTES: Final = 150  # what the place of a value takes up
_PLACED_OF: Final = 4  # one head in so many whose places were not known
_DATE_AT: Final = slice(len(dates.START), None)
# What mapped attributes of cookies may take up, with and without a domain each; when it is reached, they are forgotten.
MAX_ATTRIBUTE_BYTES: Final = 1_200
_ATTRIBUTE_BYTES: Final = 200  # what one takes up besides the bytes as received and as mapped
_MAX_LENGTH_DIGITS: Final = 18
_LENGTH: Final = b"content-length"
_FIRST_VISIBLE: Final = b"!"
_UNFRAMED_STATUSES: Final = frozenset({b"204", b"304"})  # a length of theirs frames nothing


class ResponseTemplate(HeadPattern):
    """Heads of one origin's responses that differ in values of forwarded fields, and in the length of the body, only.

    Made by `learn`, for requests of HTTP/1.1 that are HEAD or are not (`is_for_head`), as the one it was learnt from.
    `varying` are the names, in lower case, of the fields whose values are read.
    """

    __slots__ = (
        "_answer",
        "_attributes",
        "_authority",
        "_endings",
        "_form",
        "_is_dated",
        "_is_redirect",
        "_length_at",
        "_mapped",
        "_places",
        "_route",
        "_until_placed",
        "_with_domain",
        "is_for_head",
        "is_repeatable",
        "places_bytes",
        "varying",
    )

    def __init__(self, lines: _Lines, answer: ResponseHead, request: RequestHead) -> None:
        super().__init__(lines.constants)
        self.varying: Final = frozenset(lines.names)
        self.is_for_head: Final = request.method == b"HEAD"
        self._is_redirect = 300 <= answer.status < 400
        self._answer = replace(answer, kept=b"")  # which is in `_form`
        self._is_dated = b"date" in self.varying
        self._mapped = [(at, name) for at, name in enumerate(lines.names) if mapping.is_mapped(name)]
        self.is_repeatable: Final = self._is_dated and not self._mapped  # as `RewrittenHead` states it
        self._length_at = lines.names.index(_LENGTH) if _LENGTH in self.varying else None
        self._places: dict[int, Callable[[bytes], tuple[bytes, ...]]] = {}  # where heads of a length have values
        self._until_placed = 1
        self.places_bytes: Final = _MAX_PLACES * _PLACE_BYTES * (len(lines.names) + 1)  # taken up in the end
        self._route: Route | None = None  # that attributes of cookies were mapped for, with the authority
        self._authority = b""
        self._attributes: dict[bytes, bytes] = {}
        self._with_domain: dict[bytes, bytes] = {}
        kept = with_gaps(lines.forwarded) + (b"" if self._is_dated else dates.START + b"%b")
        if self._length_at is None:
            kept += _escaped(framing_lines(answer, request))
        else:
            kept += b"\r\nContent-Length: %b"
        keeping, closing = (
            _escaped(connection_lines(answer, request, keep_alive=keep_alive)) for keep_alive in (True, False)
        )
        self._form = kept + keeping  # for a connection that goes on; few end with a response
        self._endings = keeping, closing

    @classmethod
    def learn(
        cls, before: bytes, raw: bytes, answer: ResponseHead, request: RequestHead, varying: frozenset[bytes]
    ) -> ResponseTemplate | None:
        """Return what `raw`, which was read as `answer`, has in common with the head before it; None for too little.

        Both are without the empty line. Fields named in `varying` differed earlier. Compiling the pattern takes a
        fraction of a millisecond.
        """
        if answer.status < 200 or answer.upgrade or request.minor == 0:
            return None
        old, new = before.split(b"\r\n"), raw.split(b"\r\n")
        if len(old) != len(new) or old[0] != new[0]:
            return None
        lines = _Lines(answer.status_line, new[0], answer.kept)
        reads_length = request.method != b"HEAD" and new[0][9:12] not in _UNFRAMED_STATUSES
        for line_before, line in zip(old[1:], new[1:], strict=True):
            if not lines.add(line_before, line, varying, reads_length=reads_length):
                return None
        return cls(lines, answer, request) if len(lines.names) <= _MAX_VALUES else None

    def rewrite(
        self,
        raw: bytes,
        request: RequestHead,
        route: Route,
        scheme: bytes,
        date_field: Callable[[], bytes],
        keep_alive: bool,
        fill: Callable[[bytes, tuple[bytes, ...]], bytes] = operator.mod,
    ) -> tuple[ResponseHead, bytes] | None:
        """Return the response, and its head as the client gets it; None for a head that must be parsed.

        That is so for a redirect of the root, too: the root's other form may have to be asked for.
        `raw` is without the empty line. `fill` makes the head of a format and the values for it; where `is_repeatable`,
        it is the text of HTTP/1.1.
        """
        if self._is_redirect and request.target[1:2] in (b"", b"?"):
            return None
        place = self._places.get(len(raw))
        values = place(raw) if place is not None else None
        if values is None or self._head % values != raw:
            values = self._find_values(raw)
            if values is None:
                return None
        elif (content := b"".join(values)).translate(VALUE) != content:
            return None
        answer = self._answer
        if self._mapped:
            values = tuple(self._map(values, request, route, scheme))
        if not self._is_dated:
            values = (*values, date_field()[_DATE_AT])
        at = self._length_at
        if at is not None:
            length = values[at]
            if not length.isdigit() or len(length) > _MAX_LENGTH_DIGITS or (length[:1] == b"0" and length != b"0"):
                return None
            values = (*values[:at], *values[at + 1 :], length)
            size = int(length)
            if size != answer.body:
                answer = ResponseHead(answer.status, answer.status_line, size, b"", answer.keep_alive, b"", b"")
        form = self._form if keep_alive else self._form.removesuffix(self._endings[0]) + self._endings[1]
        return answer, form % values if self.is_repeatable else fill(form, values)

    def _find_values(self, raw: bytes) -> tuple[bytes, ...] | None:
        """Return the values; of some heads, remember where others as long have theirs, mostly."""
        if raw[self.tail] != self.end or raw[self.lead] != self.beginning:
            return None
        values = self.read(raw)
        if values is not None and len(values) > 1:
            self._until_placed -= 1
            if not self._until_placed:
                self._until_placed = _PLACED_OF
                if len(self._places) >= _MAX_PLACES:
                    self._places.clear()
                self._places[len(raw)] = self.places(values)
        return values

    def _map(self, values: tuple[bytes, ...], request: RequestHead, route: Route, scheme: bytes) -> list[bytes]:
        mapped = list(values)
        authority = request.fields.host_as_received
        for at, name in self._mapped:
            value = values[at]
            if value < _FIRST_VISIBLE:
                value = value.lstrip(b" \t")
            if name == b"set-cookie":
                mapped[at] = self._map_cookie(route, value, authority)
            else:
                origin = asked_from(request) if name == b"access-control-allow-origin" else b""
                mapped[at] = mapping.map_value(route, name, value, scheme, authority, origin)
        return mapped

    def _map_cookie(self, route: Route, value: bytes, authority: bytes) -> bytes:
        """Return a cookie as the client may use it. Its attributes, which repeat, are mapped once for a route."""
        pair, semicolon, attributes = value.partition(b";")
        if not semicolon:
            return pair
        if route is not self._route or authority != self._authority:
            self._use_route(route, authority)
        mapped = self._attributes.get(attributes)
        return pair + (self._map_attributes(route, attributes, authority) if mapped is None else mapped)

    def _use_route(self, route: Route, authority: bytes) -> None:
        """Map cookies for this route and authority: what depends on paths only holds for all domains with the same."""
        before = self._route
        if before is None or before.base_path != route.base_path or before.root_paths != route.root_paths:
            self._attributes.clear()
        self._with_domain.clear()
        self._route, self._authority = route, authority

    def _map_attributes(self, route: Route, attributes: bytes, authority: bytes) -> bytes:
        known = self._with_domain if cookies.names_domain(attributes) else self._attributes
        mapped = known.get(attributes)
        if mapped is None:
            mapped = mapping.map_value(route, b"set-cookie", b";" + attributes, b"", authority)
            size = _ATTRIBUTE_BYTES + len(attributes) + len(mapped)
            if size <= MAX_ATTRIBUTE_BYTES:
                taken = sum(_ATTRIBUTE_BYTES + len(before) + len(after) for before, after in known.items())
                if taken + size > MAX_ATTRIBUTE_BYTES:
                    known.clear()
                known[attributes] = mapped
        return mapped


class _Lines:
    """The lines of a head, joined to constant parts as they are added. Values of `names` stand between these."""

    __slots__ = ("_expected", "_kept", "constants", "forwarded", "names")

    def __init__(self, status_line: bytes, received_line: bytes, kept: bytes) -> None:
        self._kept: Iterator[bytes] = iter(kept.split(b"\r\n")[1:])
        self._expected = next(self._kept, None)
        self.constants = [received_line]
        self.forwarded = [status_line]
        self.names: list[bytes] = []

    def add(self, before: bytes, line: bytes, varying: frozenset[bytes], *, reads_length: bool) -> bool:
        """Add a line of the head; False where the two heads have too little in common."""
        is_kept = line == self._expected
        if is_kept:
            self._expected = next(self._kept, None)
        start = line.partition(b":")[0]
        name = start.lower()
        if name == _LENGTH and name in self.names:  # stated twice
            return False
        is_length = reads_length and name == _LENGTH
        if not (is_kept or is_length):
            return self._add_constant(line, is_kept=False) and line == before
        if mapping.is_mapped(name) and (
            (name == b"link" and name in self.names) or line[len(start) + 2 :][:1] in (b" ", b"\t")
        ):
            return False  # what is bounded for all of them; and blanks that would not go on
        if line == before and not (name in varying or name == b"date" or mapping.has_addresses(b"\r\n" + line)):
            return self._add_constant(line, is_kept=is_kept)
        if not (line.startswith(start + b": ") and before.startswith(start + b": ")):
            return False
        self.constants[-1] += b"\r\n" + start + b": "
        self.constants.append(b"")
        self.names.append(name)
        if is_kept:
            self.forwarded[-1] += b"\r\n" + start + b": "
            self.forwarded.append(b"")
        return True

    def _add_constant(self, line: bytes, *, is_kept: bool) -> bool:
        self.constants[-1] += b"\r\n" + line
        if is_kept:
            self.forwarded[-1] += b"\r\n" + line
        return True


def _escaped(constant: bytes) -> bytes:
    """Return a constant part of a format for `%`."""
    return constant.replace(b"%", b"%%")
