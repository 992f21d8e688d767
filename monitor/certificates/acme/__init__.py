"""The ACME issuer (RFC 8555): certificates from any CA that speaks it.

``transport`` signs and sends requests, ``problems`` turns a CA's problem documents into plain words, ``account`` holds
the account, ``orders`` carries one order from placed to downloaded, ``renewal_information`` asks when to renew
(RFC 9773), ``issuer`` implements `Issuer` for one CA. Messages, keys and signatures come from the libraries
`acme` and `josepy`; the client in `acme` blocks and sleeps whole seconds, so this package sends the requests.
"""
