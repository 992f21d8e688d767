"""The ways into a zone: each takes the changes of a plan and credentials, writes, and reports what failed.

A way believes no provider: what was written is read back from the zone's own servers
(`common.connect.zone_inspection`). Credentials are arguments of one call: no way keeps, logs or returns them.
"""
