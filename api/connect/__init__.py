"""The API's part of connect flows, beneath its schemas.

Placeholders resolved, and the ways to write into a zone that a request takes: RFC 2136, a provider's API, a signed
Domain Connect address. `common.connect` has what monitors share.
"""
