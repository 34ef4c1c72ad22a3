"""Which records are kept without their samples: of those that are there, none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("record", sa.Column("condensed", sa.Text))
