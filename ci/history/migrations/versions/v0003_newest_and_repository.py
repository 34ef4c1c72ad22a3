"""What is newest of a series, and whose an event is. Of events that are there this is not known, and stays so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("series", sa.Column("newest", sa.Text, nullable=False, server_default=""))
    op.add_column("series", sa.Column("reference", sa.Text))
    op.add_column("event", sa.Column("repository", sa.Text, nullable=False, server_default=""))
    op.execute(
        "UPDATE series SET newest = coalesce((SELECT max(record.made) FROM record"
        " JOIN point ON point.record_id = record.id WHERE point.series_id = series.id), '')"
    )
