"""Optimisation sessions beside the measurements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "session",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("opened", sa.Text),
        sa.Column("objective", sa.Text, nullable=False),
        sa.Column("card", sa.Text),
        sa.Column("gpu", sa.Text),
        sa.Column("closed", sa.Text),
        sa.Column("minutes", sa.Double, nullable=False),
        sa.Column("speedup", sa.Double),
        sa.Column("gain_kept_pct", sa.Double, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("kept", sa.Integer, nullable=False),
        sa.Column("blind", sa.Integer, nullable=False),
        sa.Column("usd", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("repository", "name", name="pk_session"),
    )
