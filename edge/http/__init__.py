"""HTTP/1.1 messages as bytes (RFC 9110, RFC 9112): heads, framing, what we cut from them and append to them.

No sockets, no loop, no clock. Whatever is refused here is refused before a byte reaches an origin.
"""
