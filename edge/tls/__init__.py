"""TLS towards the client: a thin layer of our own over `ssl.MemoryBIO`.

Vocabulary
    hello       the client's first message, read (peeked) before OpenSSL sees it
    handshake   from the connection until both sides may send; `layer.TlsLayer`
    held        a handshake that waits for a certificate being issued
    failure     why a handshake ended without a stream

A raw connection has three protocols in turn: `TlsLayer` until the handshake is done, `TlsStream` while data
flows, `Lingering` while the last bytes leave. `TlsShared` is what a worker's connections have in common.
"""
