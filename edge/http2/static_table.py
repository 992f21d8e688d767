"""The static table of HPACK (RFC 7541 Appendix A)."""

from __future__ import annotations

from typing import Final

STATIC_FIELDS: Final = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    *(
        (name, b"")
        for name in (
            b"accept-language accept-ranges accept access-control-allow-origin age allow authorization"
            b" cache-control content-disposition content-encoding content-language content-length"
            b" content-location content-range content-type cookie date etag expect expires from host if-match"
            b" if-modified-since if-none-match if-range if-unmodified-since last-modified link location"
            b" max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server"
            b" set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate"
        ).split()
    ),
)
