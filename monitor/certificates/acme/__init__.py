"""The ACME issuer (RFC 8555): certificates from any CA that speaks it.

``transport`` signs and sends, ``problems`` says in plain words what a CA objects to, ``account`` is who we are there,
``orders`` carries one order from placed to downloaded, ``renewal_information`` asks when to renew (RFC 9773),
``issuer`` is one CA as everyone else sees it. Messages, keys and signatures are the `acme` and `josepy` libraries';
the library's own client blocks and sleeps whole seconds, so the requests are ours.
"""
