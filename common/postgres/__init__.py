"""The embedded Postgres of `frontage up`: a server of our own under the state directory.

`EmbeddedPostgres` starts and stops it, `running_dsn` finds it from another process. ``layout`` names
the paths, ``binaries`` finds the programs, ``account`` the user they run as, ``cluster`` creates the data, ``server``
starts and stops (`EmbeddedPostgres.launch`). This package executes no SQL.
"""

from common.postgres.server import EmbeddedPostgres, running_dsn

__all__ = ["EmbeddedPostgres", "running_dsn"]
