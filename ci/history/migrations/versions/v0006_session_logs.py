"""Sessions with their logs. Those of before are forgotten: the next `add` or `rebuild` brings them with theirs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.drop_table("session")
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
        sa.Column("speedup_low", sa.Double),
        sa.Column("speedup_high", sa.Double),
        sa.Column("gain_kept_pct", sa.Double, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("kept", sa.Integer, nullable=False),
        sa.Column("blind", sa.Integer, nullable=False),
        sa.Column("usd", sa.Double),
        sa.Column("log", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("repository", "name", name="pk_session"),
    )
