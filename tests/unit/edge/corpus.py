"""Named cases, replayed always: every disagreement ever found, and the classics of request smuggling.

`REQUESTS` are what one client sends, with how many requests of it are forwarded; `RESPONSES` what an origin says to one
request, with the status the client gets (0: no whole answer).
"""

from __future__ import annotations

HOST = b"Host: shop.example.com\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

REQUESTS: dict[str, tuple[bytes, int]] = {
    # found by generated messages
    "bare LF among the empty lines before a request": (b"\r\n\n" + GET, 0),
    "bare LF between pipelined requests": (GET + b"\r\n\n" + SMUGGLED, 1),
    "bare CR among the empty lines before a request": (b"\r\n\r" + GET, 0),
    "a long pipeline behind an empty line": (GET + b"\r\n" + GET * 400, 401),
    "many empty lines": (GET + b"\r\n" * 20_000 + GET, 2),
    "OPTIONS of an authority without a path": (b"OPTIONS http://shop.example.com HTTP/1.1\r\n" + HOST + b"\r\n", 1),
    # found by reading
    "asterisk with another method than OPTIONS": (b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", 0),
    "asterisk with OPTIONS": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 1),
    "absolute form beside a Host that is none": (b"GET http://shop.example.com/ HTTP/1.1\r\nHost: a b\r\n\r\n", 0),
    "absolute form beside another Host": (b"GET http://shop.example.com/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 1),
    "underscored framing fields": (POST + b"Content_Length: 5\r\nTransfer_Encoding: chunked\r\n\r\n" + GET, 2),
    "underscored forwarded fields": (b"GET / HTTP/1.1\r\n" + HOST + b"X_Forwarded_For: 6.6.6.6\r\n\r\n", 1),
    "CGI's Proxy": (b"GET / HTTP/1.1\r\n" + HOST + b"Proxy: http://evil.example/\r\n\r\n", 1),
    "thousands of nominated fields": (
        b"GET / HTTP/1.1\r\n" + HOST + b"Connection: " + b",".join(b"x%d" % n for n in range(5000)) + b"\r\n\r\n",
        1,
    ),
    "nominated framing and forwarded fields": (
        POST + b"Content-Length: 5\r\nConnection: Content-Length, Host, X-Forwarded-For, Via, Te\r\n\r\nhello" + GET,
        2,
    ),
    "an expectation nobody knows": (POST + b"Expect: 200-ok\r\nContent-Length: 5\r\n\r\nhello", 0),
    "expectations beside 100-continue": (POST + b"Expect: 100-continue, x\r\nContent-Length: 5\r\n\r\nhello", 0),
    "100-continue without a body": (b"GET / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\n\r\n" + GET, 2),
    "100-continue in HTTP/1.0": (
        b"POST / HTTP/1.0\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
        1,
    ),
    "disguised h2c": (
        b"GET / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c/1, H2C, a b, h2c;x\r\n"
        b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
        1,
    ),
    "upgrade with a body": (
        POST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nok" + GET,
        2,
    ),
    # the classics (RFC 9112 §11.2)
    "CL.TE": (POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 0),
    "TE.CL": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0),
    "TE.TE, one unknown": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", 0),
    "TE.TE, twice the same": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0),
    "TE behind a vertical tab": (POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", 0),
    "TE before a space": (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 0),
    "TE folded": (POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 0),
    "TE behind a bare LF": (POST + b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0),
    "TE behind a bare CR": (POST + b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0),
    "TE in HTTP/1.0": (b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0),
    "TE identity": (POST + b"Transfer-Encoding: identity\r\n\r\n", 0),
    "CL.CL": (POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + SMUGGLED, 0),
    "CL list": (POST + b"Content-Length: 5, 6\r\n\r\nhello!", 0),
    "CL with a sign": (POST + b"Content-Length: +5\r\n\r\nhello", 0),
    "CL behind NUL": (POST + b"Content-Length: \x005\r\n\r\nhello", 0),
    "CL in superscript": (POST + b"Content-Length: \xb2\r\n\r\nhi", 0),
    "CL.0": (POST + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED, 1),
    "GET with a body that is a request": (
        b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED + GET,
        2,
    ),
    "chunk size in other notations": (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", 0),
    "chunk size that wraps": (CHUNKED + b"100000000000000005\r\nhello\r\n0\r\n\r\n", 0),
    "chunk size behind a bare LF": (CHUNKED + b"5\nhello\r\n0\r\n\r\n", 0),
    "chunk without its CRLF": (CHUNKED + b"5\r\nhello0\r\n\r\n", 0),
    "chunk ended by LF": (CHUNKED + b"5\r\nhello\n0\r\n\r\n", 0),
    "bare LF in a chunk's extension": (CHUNKED + b"5;a\nb\r\nhello\r\n0\r\n\r\n", 0),
    "extensions are read over": (CHUNKED + b'5;a="b\\"c"\r\nhello\r\n0;x\r\n\r\n' + GET, 2),
    "trailers never become fields": (CHUNKED + b"0\r\nHost: evil\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n" + GET, 2),
    "trailers that frame": (CHUNKED + b"0\r\nContent-Length: 44\r\n\r\n" + SMUGGLED, 2),
    "two Hosts": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 0),
    "Host folded": (b"GET / HTTP/1.1\r\nHost:\r\n shop.example.com\r\n\r\n", 0),
    "HTTP/2's preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0),
    "HTTP/0.9": (b"GET /\r\n\r\n", 0),
    "NUL in a field": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n", 0),
    "first field folded": (b"GET / HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n", 0),
    "refused in the middle of a pipeline": (GET + b"GET /../x HTTP/1.1\r\n" + HOST + b"\r\n" + GET, 2),
    "pipelined behind close": (b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n" + SMUGGLED, 1),
    "CRLF behind a body": (POST + b"Content-Length: 2\r\n\r\nok\r\n" + GET, 2),
}

OK = b"HTTP/1.1 200 OK\r\n"
RESPONSES: dict[str, tuple[bytes, int]] = {
    "both framings": (OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502),
    "two lengths": (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502),
    "equal lengths twice": (OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200),
    "broken framing without a body": (b"HTTP/1.1 304 X\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n", 502),
    "broken framing of an interim answer": (b"HTTP/1.1 150 X\r\nTransfer-Encoding:\r\n\r\n" + OK + b"\r\n", 502),
    "a switch nobody asked for": (b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", 502),
    "bare LF": (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 0),
    "folded field": (OK + b"X: y\r\n z\r\nContent-Length: 0\r\n\r\n", 502),
    "space before the colon": (OK + b"Content-Length : 0\r\n\r\n", 502),
    "NUL": (OK + b"X: \x00\r\nContent-Length: 0\r\n\r\n", 502),
    "a broken chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n", 0),
    "white space in values": (OK + b"Content-Length:\t 2 \t\r\nX:y\t\r\n\r\nok", 200),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200),
    "nominated by the origin": (
        OK + b"Connection: X-Hop, Content-Length\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok",
        200,
    ),
    "a body where none can be": (b"HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\nok", 204),
}
