"""HTTP/2 (RFC 9113) and HPACK (RFC 7541) of the server's side: bytes in, calls and bytes out. Knows no socket.

errors           error codes, and the two scopes of errors: a stream, the connection
frames           the layout of frames and settings
huffman          strings of HPACK
static_table     the static table of HPACK
hpack            header blocks: `HeaderDecoder`, and the encoding of response heads
block_form       what blocks have in common that differ in some values alone
literals         literal fields that all connections of a worker know
fields           what a field of a request means for its validity
requests         a decoded request as the head of HTTP/1.1 that the rest of the edge reads
responses        a response head of HTTP/1.1 as a header block
streams          the states of a stream in one table, and the state of one stream
priorities       RFC 9218: reads the values of the Priority field and of PRIORITY_UPDATE frames
output           what is sent, by urgency
blocks           header blocks of several frames
budgets          how much of each kind of frame and of ended streams a connection may cost, by attack
open_streams     the streams of a connection, and what is sent on them
request_streams  the streams that header blocks open
connection       the machine that all of them make up: it reads frames
"""
