"""Generated messages: plain ones, and ones that try everything RFC 9112 §11 warns of.

All choices are drawn from one `random.Random`, so that hypothesis can shrink them and a seed can repeat them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.unit.edge.oracle import Script

_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: shop.example.com\r\nX-Smuggled: yes\r\n\r\n"
_METHODS = [b"GET"] * 6 + [b"POST"] * 6 + [b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"PURGE", b"M-SEARCH"]
_ODD_METHODS = [
    b"CONNECT",
    b"TRACE",
    b"get",
    b"G(T",
    b"PRI",
    b"",
    b"GET\t",
    b" GET",
    b"X" * 50,
    b"GET\x00",
    b"HTTP/1.1",
]
_TARGETS = [b"/", b"/", b"/a", b"/a/b?c=d", b"/%2e%2E/x", b"/a%20b", b"//double", b"/?", b"/a;b=c", b"/..;/x", b"/*"]
_ODD_TARGETS = [
    b"*",
    b"http://shop.example.com/abs",
    b"HTTPS://power.example.com:444/abs?x",
    b"http://shop.example.com",
    b"http://shop.example.com?q",
    b"http://shop.example.com@evil/",
    b"http://evil.example/",
    b"shop.example.com:443",
    b"/a b",
    b"/a\tb",
    b"/#x",
    b"/\x80",
    b"/\x00",
    b"",
    b"a",
    b"ftp://shop.example.com/",
    b"/..",
    b"/a\\..\\b",
    b"/" + b"x" * 9000,
    b"http:/shop.example.com/",
    b"?q",
]
_VERSIONS = [b"HTTP/1.1"] * 12 + [b"HTTP/1.0"] * 2
_ODD_VERSIONS = [
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.2",
    b"http/1.1",
    b"HTTP/1.1 ",
    b"HTTP/01.1",
    b"",
    b"HTTP/1.",
    b"HTTP/1,1",
]
_HOSTS = [b"Host: shop.example.com"] * 6 + [
    b"host: power.example.com",
    b"HOST:SHOP.example.com.",
    b"Host: shop.example.com:443",
]
_ODD_HOSTS = [
    b"Host: nobody.example",
    b"Host:",
    b"Host: shop.example.com, evil.example",
    b"Host: shop.example.com\r\nHost: shop.example.com",
    b"Host: shop.example.com\r\nhost: power.example.com",
    b"Host : shop.example.com",
    b" Host: shop.example.com",
    b"Host: shop.example.com/x",
    b"Host: evil@shop.example.com",
    b"Host: shop.example.com:x",
    b"Host: shop.example.com:99999",
    b"Host: shop.example.com\t",
    b"Host:\tshop.example.com",
    b"Host_: shop.example.com",
    b"X: y",
]
_FIELDS = [
    b"Accept: */*",
    b"accept-encoding: gzip, br",
    b"Cookie: a=b; c=d",
    b"Authorization: Basic eA==",
    b"X-Empty:",
    b"X-Spaces:  \t a  b \t ",
    b"X-Text: caf\xc3\xa9 \xff",
    b"User-Agent: Mozilla/5.0",
    b"X: 1\r\nX: 2\r\nx: 3",
    b"Content-Type: text/plain",
    b"X-Long: " + b"y" * 300,
    b"!#$%&'*+-.^_`|~: token",
    b"Connection: keep-alive",
    b"Connection: close",
    b"X-Under_score: a",
    b"Referer: http://a/?text/html",
]
_ODD_FIELDS = [
    b"Connection: Cookie, X, Accept",
    b"Connection: Content-Length",
    b"Connection: close, Transfer-Encoding, Host",
    b"Connection: X-Forwarded-For, X-Service-Auth, Via, Expect",
    b"Connection: upgrade, x-empty",
    b"Connection: ,,; =",
    b"Connection: keep-alive\r\nConnection: X",
    b"Connection: .*",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA",
    b"Upgrade: h2c;x, h2c/1, H2C\r\nConnection: upgrade",
    b'Upgrade: websocket, "h2c", foo bar\r\nConnection: upgrade',
    b"TE: trailers\r\nConnection: TE",
    b"TE: trailers",
    b"TE: gzip, trailers;q=0.5",
    b"TE: deflate;q=0.5",
    b"Trailer: Content-Length",
    b"Keep-Alive: timeout=5",
    b"Proxy-Connection: keep-alive",
    b"Proxy-Authorization: Basic eA==",
    b"Proxy: http://evil/",
    b"X-Forwarded-For: 6.6.6.6",
    b"X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Host: evil",
    b"x-forwarded-host: evil\r\nX-FORWARDED-PROTO: gopher",
    b"X-Service-Auth: forged\r\nx_service_auth: forged",
    b"X-Service-Forwarded-Host: evil",
    b"X-Real-IP: 6.6.6.6\r\nX_Forwarded_Ssl: on",
    b"X-Original-URL: /admin\r\nx-rewrite-url: /admin\r\nX-Forwarded-Server: evil",
    b"Forwarded: for=6.6.6.6",
    b"Via: 1.1 elsewhere",
    b"Via: 1.1 frontage, 1.1 frontage, 1.1 frontage",
    b"Expect: 100-continue",
    b"Expect: 100-Continue",
    b"Expect: 200-ok",
    b"Expect: 100-continue, x",
    b"Expect:",
    b"X : space",
    b"X\t: tab",
    b": empty",
    b"X",
    b" folded",
    b"\tfolded: yes",
    b"X: a\r\n folded",
    b"X: nul\x00",
    b"X: \x01",
    b"X: bare\nY: z",
    b"X: bare\rY: z",
    b"X: y\r",
    b"\x80: high",
    b"(X): y",
    b"X: y\x7f",
    b"X: \x0b",
    b"X: \x0c\x85",
    b"Content_Length: 5",
    b"Transfer_Encoding: chunked",
    b"Content-Length\x00: 5",
    b"Content-Length : 5",
    b"\xefTransfer-Encoding: chunked",
    b"X:" + b"z" * 33_000,
    b"\r\n".join(b"F%d: x" % n for n in range(120)),
]
_ODD_LENGTHS = [
    b"+%d",
    b"-%d",
    b"0%d",
    b"%d,%d",
    b"%d, %d",
    b"%d %d",
    b"0x%d",
    b"%d.0",
    b"%d;",
    b"%d\x0b",
    b" %d ",
    b"00000000000000000000%d",
    b"%d\r\nContent-Length: %d",
    b"%d\r\nContent-Length: 1%d",
    b"%d,",
    b'"%d"',
    b"\xb2",
    b"",
    b"99999999999999999999",
    b"1_0",
]
_ODD_CODINGS = [
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding:\x0bchunked",
    b"Transfer-Encoding: chunked\x0b",
    b" Transfer-Encoding: chunked",
    b"X: X\nTransfer-Encoding: chunked",
    b"X: X\rTransfer-Encoding: chunked",
    b"Transfer-Encoding\r\n: chunked",
    b"Transfer-Encoding:\r\n chunked",
    b'Transfer-Encoding: "chunked"',
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: identity, chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: chunked;q=1",
    b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: chunked,",
    b"Transfer-Encoding:",
    b"Transfer-Encoding: cHuNkEd",
    b"TRANSFER-ENCODING:chunked ",
    b"Transfer-Encoding: \x00chunked",
    b"Transfer-Encoding: chun\x6bed\xa0",
]
_BODIES = [b"", b"x", b"hello", b"0\r\n\r\n", _SMUGGLED, b"0\r\n\r\n" + _SMUGGLED, b"\r\n", b"\x00\xff" * 9, b"a" * 700]
_TRAILERS = [
    b"",
    b"",
    b"",
    b"X-Trailer: t\r\n",
    b"Content-Length: 5\r\n",
    b"Host: evil\r\nTransfer-Encoding: chunked\r\n",
    b" folded\r\n",
    b"bad trailer\r\n",
    b"X: y\n",
    b"X : y\r\n",
    b"X: \x00\r\n",
]
_SIZES = [b"%x", b"%x", b"%x", b"%X", b"0%x", b"000%x"]
_ODD_SIZES = [
    b"0x%x",
    b"+%x",
    b"-%x",
    b" %x",
    b"%x ",
    b"%x\t",
    b"%xg",
    b"%x_",
    b"\n%x",
    b"ffffffffffffffff%x",
    b"1000000000000%x",
    b"%x\x00",
    b"\xb2%x",
]
_EXTENSIONS = [b"", b"", b"", b";a", b";a=b", b';a="b;c\\""', b";"]
_ODD_EXTENSIONS = [
    b";a\nb",
    b";\x00",
    b';a="',
    b"; a = b",
    b";a=b;" + b"c" * 5000,
    b";a\r",
    b";\r\n\r\n",
    b" ;a",
    b",a",
]
_SPLICES = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b" ",
    b"\t",
    b":",
    b"0",
    b"1",
    b",",
    b";",
    b"\r\n\r\n",
    b"\n\n",
    b"chunked",
    b"\r\n ",
    b"\x0b",
    b"\x80",
    b"HTTP/1.1",
    b"0\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    _SMUGGLED,
]


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
            method = rng.choice((b"GET", b"GET", _either(rng, oddness, _METHODS, _ODD_METHODS)))
            requests.append(_line(rng, oddness, method) + requests[-1][requests[-1].find(b"\r\n") :])
        if rng.random() < oddness:
            requests[-1] = mutated(rng, requests[-1])
    return [request for request in requests if request]


def _either(rng: Random, oddness: float, plain: Sequence[bytes], odd: Sequence[bytes]) -> bytes:
    return rng.choice(odd if rng.random() < oddness else plain)


def _request(rng: Random, oddness: float) -> bytes:
    method = _either(rng, oddness, _METHODS, _ODD_METHODS)
    start = _line(rng, oddness, method)
    lines = [_either(rng, oddness, _HOSTS, _ODD_HOSTS)]
    lines += [rng.choice(_FIELDS) for _ in range(rng.randrange(4))]
    lines += [
        rng.choice(_ODD_FIELDS) for _ in range(rng.choice((0, 0, 0, 1, 1, 2))) if rng.random() < 3 * oddness + 0.1
    ]
    framing, body = _framed(rng, oddness, bare=method in (b"GET", b"HEAD", b"OPTIONS") and rng.random() < 0.8)
    lines += framing
    rng.shuffle(lines)
    end = b"\n" if rng.random() < oddness / 4 else b"\r\n"
    return end.join([start, *lines, b"", b""]) + body


def _line(rng: Random, oddness: float, method: bytes) -> bytes:
    version = _either(rng, oddness / 2, _VERSIONS, _ODD_VERSIONS)
    return method + b" " + _either(rng, 2 * oddness, _TARGETS, _ODD_TARGETS) + b" " + version


def _framed(rng: Random, oddness: float, *, bare: bool) -> tuple[list[bytes], bytes]:
    """Framing fields, and a body that is framed so, or otherwise."""
    if bare:
        return [], b""
    content = rng.choice(_BODIES)
    kind = rng.random()
    if kind < 0.35:
        length = b"%d" % len(content)
        if rng.random() < 3 * oddness:
            pattern = rng.choice(_ODD_LENGTHS)
            length = pattern % ((len(content),) * pattern.count(b"%d"))
        fields, body = [b"Content-Length: " + length], content
    elif kind < 0.85:
        fields, body = (
            [_either(rng, 2 * oddness, [b"Transfer-Encoding: chunked"], _ODD_CODINGS)],
            _chunked(rng, oddness, content),
        )
    else:
        return [], content if rng.random() < oddness else b""
    if rng.random() < 2 * oddness:
        fields.append(rng.choice([*_ODD_CODINGS, b"Content-Length: 0", b"Content-Length: %d" % len(body)]))
    if rng.random() < oddness:
        body = rng.choice((content, _chunked(rng, oddness, content), body[: len(body) // 2], body + b"\r\n"))
    return fields, body


def _chunked(rng: Random, oddness: float, content: bytes) -> bytes:
    out = b""
    while content:
        size = rng.randrange(1, len(content) + 1)
        out += _either(rng, oddness, _SIZES, _ODD_SIZES) % size + _either(rng, oddness, _EXTENSIONS, _ODD_EXTENSIONS)
        out += (
            b"\r\n"
            + content[:size]
            + (b"\r\n" if rng.random() > oddness else rng.choice((b"\n", b"", b"x\r\n", b"\r\r\n")))
        )
        content = content[size:]
    last = rng.choice((b"0", b"0", b"0", b"00", b"0;x"))
    return out + last + b"\r\n" + (rng.choice(_TRAILERS) if rng.random() < 0.3 else b"") + b"\r\n"


def mutated(rng: Random, message: bytes) -> bytes:
    """`message` with a few bytes lost, doubled, swapped or put in."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(message) + 1)
        action = rng.randrange(6)
        if action == 0:
            message = message[:at] + message[at + 1 :]
        elif action == 1:
            message = message[:at] + rng.choice(_SPLICES) + message[at:]
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

_CLIENTS = [
    b"GET /%d HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
    b"GET /%d HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
    b"GET /%d HTTP/1.1\r\nHost: shop.example.com\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
    b"GET /%d HTTP/1.1\r\nHost: shop.example.com\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"GET /%d HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n",
    b"GET /%d HTTP/1.0\r\nHost: shop.example.com\r\nConnection: keep-alive\r\n\r\n",
    b"GET /%d HTTP/1.0\r\nHost: shop.example.com\r\n\r\n",
    b"HEAD /%d HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
    b"POST /%d HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /%d HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
]
_STATUSES = [b"200 OK"] * 8 + [
    b"404 Not Found",
    b"204 No Content",
    b"304 Not Modified",
    b"500 ",
    b"299",
    b"206 caf\xe9",
]
_ODD_STATUSES = [b"101 Switching Protocols", b"101 X\r\nUpgrade: websocket\r\nConnection: upgrade", b"099 X", b"1000 X"]
_ODD_STATUSES += [b"20 X", b"2OO OK", b"", b" 200 OK", b"200\tOK", b"200 a\x00b", b"200 OK\r", b"-200 OK", b"999 X"]
_ODD_STATUSES += [b"101 X\r\nUpgrade: h2c\r\nConnection: upgrade", b"150 X", b"100 Continue", b"205 Reset Content"]
_ANSWER_VERSIONS = [b"HTTP/1.1"] * 10 + [b"HTTP/1.0"] * 2
_ODD_ANSWER_VERSIONS = [b"HTTP/2.0", b"HTTP/1.2", b"http/1.1", b"ICY", b"HTTP/1.1\t", b"HTTP/0.9", b"", b"\r\nHTTP/1.1"]
_ANSWER_FIELDS = [
    b"Server: o",
    b"Content-Type: text/html",
    b"Set-Cookie: a=b; HttpOnly",
    b"Set-Cookie: c=d",
    b"X-Empty:",
    b"X-Spaces: \t a  b \t ",
    b"X-Text: \xe9",
    b"Connection: keep-alive",
    b"Connection: close",
    b"Connection: X-Empty",
    b"Keep-Alive: timeout=5",
    b"Trailer: X-Trailer",
    b"Via: 1.1 o",
    b"Location: https://elsewhere.example/",
]
_INTERIMS = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\n"]
_ODD_INTERIMS = [
    b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 102 X\r\n\r\n" * 40,
    b"HTTP/1.1 100 \n\n",
]
_POISON = b"HTTP/1.1 200 OK\r\nX-Number: poison\r\nContent-Length: 6\r\n\r\npoison"


def conversation(rng: Random) -> tuple[list[bytes], list[Script]]:
    """Requests of one client, and what origins say to each."""
    oddness = rng.choice((0.0, 0.02, 0.05, 0.2))
    requests, scripts = [], []
    for number in range(rng.choice((1, 1, 2, 3, 4))):
        requests.append(rng.choice(_CLIENTS) % number)
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
    version = _either(rng, oddness, _ANSWER_VERSIONS, _ODD_ANSWER_VERSIONS)
    status = _either(rng, oddness, _STATUSES, _ODD_STATUSES)
    lines = [b"X-Number: /%d" % number]
    lines += [rng.choice(_ANSWER_FIELDS) for _ in range(rng.randrange(4))]
    if rng.random() < oddness:
        lines.append(rng.choice(_ODD_FIELDS))
    framing, body, needs_end = _answer_framed(rng, oddness, is_old=version == b"HTTP/1.0")
    if is_head or status[:3] in (b"204", b"304"):
        body, needs_end = (body if rng.random() < oddness else b""), False
        framing = [] if status[:3] == b"204" and rng.random() > oddness else framing
    lines += framing
    rng.shuffle(lines)
    interims = b"".join(_either(rng, oddness, _INTERIMS, _ODD_INTERIMS) for _ in range(rng.choice((0, 0, 0, 0, 1, 2))))
    answer = interims + b"\r\n".join([version + b" " + status, *lines, b"", b""]) + body
    return answer + (_POISON if rng.random() < oddness else b""), needs_end


def _answer_framed(rng: Random, oddness: float, *, is_old: bool) -> tuple[list[bytes], bytes, bool]:
    content = rng.choice(_BODIES)
    kind = rng.random()
    if kind < 0.5:
        length = b"%d" % len(content)
        if rng.random() < 2 * oddness:
            pattern = rng.choice(_ODD_LENGTHS)
            length = pattern % ((len(content),) * pattern.count(b"%d"))
        fields, body = [b"Content-Length: " + length], content
    elif kind < 0.8 and not is_old:
        fields = [_either(rng, oddness, [b"Transfer-Encoding: chunked"], _ODD_CODINGS)]
        body = _chunked(rng, oddness, content)
    else:
        return [], content, True
    if rng.random() < oddness:
        fields.append(rng.choice([*_ODD_CODINGS, b"Content-Length: %d" % len(body)]))
    if rng.random() < oddness:
        body = rng.choice((content, body[: len(body) // 2], body + b"\r\n"))
    return fields, body, False
