"""Generated messages: plain ones, and ones that try everything RFC 9112 §11 warns of.

All choices are drawn from one `random.Random`, so that hypothesis can shrink them and a seed can repeat them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.unit.edge.response_oracle import Script
from tests.unit.edge.spellings import (
    ANSWER_FIELDS,
    ANSWER_VERSIONS,
    BODIES,
    CLIENTS,
    EXTENSIONS,
    FIELDS,
    HOSTS,
    INTERIMS,
    METHODS,
    ODD_ANSWER_VERSIONS,
    ODD_CODINGS,
    ODD_EXTENSIONS,
    ODD_FIELDS,
    ODD_HOSTS,
    ODD_INTERIMS,
    ODD_LENGTHS,
    ODD_METHODS,
    ODD_SIZES,
    ODD_STATUSES,
    ODD_TARGETS,
    ODD_VERSIONS,
    POISON,
    SIZES,
    SPLICES,
    STATUSES,
    TARGETS,
    TRAILERS,
    VERSIONS,
)


def request_stream(rng: Random) -> bytes:
    """What one client sends: one request or several, possibly spoiled."""
    return counted_stream(rng)[0]


def counted_stream(rng: Random) -> tuple[bytes, int]:
    """… and how many requests were put into it."""
    oddness = rng.choice((0.0, 0.02, 0.02, 0.1))
    stream = b""
    count = rng.choice((1, 1, 1, 2, 2, 3, 5))
    for _ in range(count):
        if rng.random() < 0.05:
            stream += rng.choice((b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\r\n\n"))
        stream += _request(rng, oddness)
    return (mutated(rng, stream) if rng.random() < 0.3 else stream), count


def visit(rng: Random) -> list[bytes]:
    """Requests, each by itself, most of them with the fields of the one before: as browsers ask."""
    oddness = rng.choice((0.0, 0.02, 0.1))
    requests = [_request(rng, oddness)]
    for _ in range(rng.randrange(1, 8)):
        if rng.random() < 0.2:
            requests.append(_request(rng, oddness))
        else:
            method = rng.choice((b"GET", b"GET", _either(rng, oddness, METHODS, ODD_METHODS)))
            requests.append(_line(rng, oddness, method) + requests[-1][requests[-1].find(b"\r\n") :])
        if rng.random() < oddness:
            requests[-1] = mutated(rng, requests[-1])
    return [request for request in requests if request]


def _either(rng: Random, oddness: float, plain: Sequence[bytes], odd: Sequence[bytes]) -> bytes:
    return rng.choice(odd if rng.random() < oddness else plain)


def _request(rng: Random, oddness: float) -> bytes:
    method = _either(rng, oddness, METHODS, ODD_METHODS)
    start = _line(rng, oddness, method)
    lines = [_either(rng, oddness, HOSTS, ODD_HOSTS)]
    lines += [rng.choice(FIELDS) for _ in range(rng.randrange(4))]
    lines += [rng.choice(ODD_FIELDS) for _ in range(rng.choice((0, 0, 0, 1, 1, 2))) if rng.random() < 3 * oddness + 0.1]
    framing, body = _framed(rng, oddness, bare=method in (b"GET", b"HEAD", b"OPTIONS") and rng.random() < 0.8)
    lines += framing
    rng.shuffle(lines)
    end = b"\n" if rng.random() < oddness / 4 else b"\r\n"
    return end.join([start, *lines, b"", b""]) + body


def _line(rng: Random, oddness: float, method: bytes) -> bytes:
    version = _either(rng, oddness / 2, VERSIONS, ODD_VERSIONS)
    return method + b" " + _either(rng, 2 * oddness, TARGETS, ODD_TARGETS) + b" " + version


def _framed(rng: Random, oddness: float, *, bare: bool) -> tuple[list[bytes], bytes]:
    """Framing fields, and a body that is framed so, or otherwise."""
    if bare:
        return [], b""
    content = rng.choice(BODIES)
    kind = rng.random()
    if kind < 0.35:
        length = b"%d" % len(content)
        if rng.random() < 3 * oddness:
            pattern = rng.choice(ODD_LENGTHS)
            length = pattern % ((len(content),) * pattern.count(b"%d"))
        fields, body = [b"Content-Length: " + length], content
    elif kind < 0.85:
        fields, body = (
            [_either(rng, 2 * oddness, [b"Transfer-Encoding: chunked"], ODD_CODINGS)],
            _chunked(rng, oddness, content),
        )
    else:
        return [], content if rng.random() < oddness else b""
    if rng.random() < 2 * oddness:
        fields.append(rng.choice([*ODD_CODINGS, b"Content-Length: 0", b"Content-Length: %d" % len(body)]))
    if rng.random() < oddness:
        body = rng.choice((content, _chunked(rng, oddness, content), body[: len(body) // 2], body + b"\r\n"))
    return fields, body


def _chunked(rng: Random, oddness: float, content: bytes) -> bytes:
    out = b""
    while content:
        size = rng.randrange(1, len(content) + 1)
        out += _either(rng, oddness, SIZES, ODD_SIZES) % size + _either(rng, oddness, EXTENSIONS, ODD_EXTENSIONS)
        out += (
            b"\r\n"
            + content[:size]
            + (b"\r\n" if rng.random() > oddness else rng.choice((b"\n", b"", b"x\r\n", b"\r\r\n")))
        )
        content = content[size:]
    last = rng.choice((b"0", b"0", b"0", b"00", b"0;x"))
    return out + last + b"\r\n" + (rng.choice(TRAILERS) if rng.random() < 0.3 else b"") + b"\r\n"


def mutated(rng: Random, message: bytes) -> bytes:
    """`message` with a few bytes lost, doubled, swapped or put in."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(message) + 1)
        action = rng.randrange(6)
        if action == 0:
            message = message[:at] + message[at + 1 :]
        elif action == 1:
            message = message[:at] + rng.choice(SPLICES) + message[at:]
        elif action == 2:
            message = message[:at] + bytes([rng.randrange(256)]) + message[at + 1 :]
        elif action == 3:
            lines = message.split(b"\r\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            message = b"\r\n".join(lines)
        elif action == 4:
            lines = message.split(b"\r\n")
            del lines[rng.randrange(len(lines))]
            message = b"\r\n".join(lines)
        else:
            message = message[:at]
    return message


def split(rng: Random, stream: bytes) -> list[bytes]:
    """`stream` in pieces: whole, at arbitrary points, or byte by byte."""
    way = rng.random()
    if way < 0.4 or not stream:
        return [stream] if stream else []
    if way < 0.5 and len(stream) < 600:
        return [stream[n : n + 1] for n in range(len(stream))]
    cuts = sorted({rng.randrange(1, len(stream) + 1) for _ in range(rng.choice((1, 1, 2, 3, 8)))} - {len(stream)})
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


# Responses ------------------------------------------------------------------------------------------------------

ODD_STATUSES += [b"20 X", b"2OO OK", b"", b" 200 OK", b"200\tOK", b"200 a\x00b", b"200 OK\r", b"-200 OK", b"999 X"]
ODD_STATUSES += [b"101 X\r\nUpgrade: h2c\r\nConnection: upgrade", b"150 X", b"100 Continue", b"205 Reset Content"]


def conversation(rng: Random) -> tuple[list[bytes], list[Script]]:
    """Requests of one client, and what origins say to each."""
    oddness = rng.choice((0.0, 0.02, 0.05, 0.2))
    requests, scripts = [], []
    for number in range(rng.choice((1, 1, 2, 3, 4))):
        requests.append(rng.choice(CLIENTS) % number)
        scripts.append(_script(rng, oddness, number, requests[-1]))
    return split(rng, b"".join(requests)), scripts


def _script(rng: Random, oddness: float, number: int, request: bytes) -> Script:
    answer, needs_end = _answer(rng, oddness, number, is_head=request.startswith(b"HEAD"))
    ending: type[BaseException] | bool | None = None if needs_end else False
    if oddness and rng.random() < 0.3:
        answer = mutated(rng, answer)
    if oddness and rng.random() < 0.3:
        ending = rng.choice((None, False, ConnectionResetError))
    return Script(split(rng, answer), ending, is_early=rng.random() < 0.1, is_plain=not oddness)


def _answer(rng: Random, oddness: float, number: int, *, is_head: bool) -> tuple[bytes, bool]:
    """One answer, and whether it needs the connection's end to be one."""
    version = _either(rng, oddness, ANSWER_VERSIONS, ODD_ANSWER_VERSIONS)
    status = _either(rng, oddness, STATUSES, ODD_STATUSES)
    lines = [b"X-Number: /%d" % number]
    lines += [rng.choice(ANSWER_FIELDS) for _ in range(rng.randrange(4))]
    if rng.random() < oddness:
        lines.append(rng.choice(ODD_FIELDS))
    framing, body, needs_end = _answer_framed(rng, oddness, is_old=version == b"HTTP/1.0")
    if is_head or status[:3] in (b"204", b"304"):
        body, needs_end = (body if rng.random() < oddness else b""), False
        framing = [] if status[:3] == b"204" and rng.random() > oddness else framing
    lines += framing
    rng.shuffle(lines)
    interims = b"".join(_either(rng, oddness, INTERIMS, ODD_INTERIMS) for _ in range(rng.choice((0, 0, 0, 0, 1, 2))))
    answer = interims + b"\r\n".join([version + b" " + status, *lines, b"", b""]) + body
    return answer + (POISON if rng.random() < oddness else b""), needs_end


def _answer_framed(rng: Random, oddness: float, *, is_old: bool) -> tuple[list[bytes], bytes, bool]:
    content = rng.choice(BODIES)
    kind = rng.random()
    if kind < 0.5:
        length = b"%d" % len(content)
        if rng.random() < 2 * oddness:
            pattern = rng.choice(ODD_LENGTHS)
            length = pattern % ((len(content),) * pattern.count(b"%d"))
        fields, body = [b"Content-Length: " + length], content
    elif kind < 0.8 and not is_old:
        fields = [_either(rng, oddness, [b"Transfer-Encoding: chunked"], ODD_CODINGS)]
        body = _chunked(rng, oddness, content)
    else:
        return [], content, True
    if rng.random() < oddness:
        fields.append(rng.choice([*ODD_CODINGS, b"Content-Length: %d" % len(body)]))
    if rng.random() < oddness:
        body = rng.choice((content, body[: len(body) // 2], body + b"\r\n"))
    return fields, body, False
