"""What Alembic runs: the steps that are missing, in the caller's transaction."""

from __future__ import annotations

from alembic import context

from kernelgate.ci.history.database import VERSION_TABLE
from kernelgate.ci.history.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, version_table=VERSION_TABLE)
context.run_migrations()
