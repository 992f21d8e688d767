"""The embedded Postgres of `frontage up`: a server of our own under the state directory.

`EmbeddedPostgres` starts and stops it, `running_dsn` finds it from another process. ``layout`` says where
things lie, ``binaries`` whose programs run, ``account`` as whom, ``cluster`` makes the data, ``locks`` tells
who lives, ``server`` is its life. Nothing here speaks SQL.
"""

from common.postgres.server import EmbeddedPostgres, running_dsn

__all__ = ["EmbeddedPostgres", "running_dsn"]
