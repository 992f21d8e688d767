"""The delegated challenge zone: answers the DNS questions by which a CA validates domains (RFC 8555 §8.4).

message     one DNS message: a question from a resolver, or our response (`edge.dns.messages`)
zone        what a question is answered with (`edge.dns.zone`)
responder   bytes in, bytes out: counts, limits and answers (`edge.dns.responder`)
server      the sockets (`edge.dns.server`)

The zone has no file: its SOA and NS follow from the settings, its TXT records are those of
running orders in the replica.
"""
