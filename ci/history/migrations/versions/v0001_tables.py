"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "record",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Column("made", sa.Text),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("producer", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("base_sha", sa.Text),
        sa.Column("head_sha", sa.Text),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_record"),
        sa.UniqueConstraint("name", name="uq_record_name"),
    )
    op.create_table(
        "commit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("sha", sa.Text, nullable=False),
        sa.Column("place", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_commit"),
        sa.UniqueConstraint("sha", name="uq_commit_sha"),
    )
    op.create_table(
        "series",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("card", sa.Text, nullable=False),
        sa.Column("case", sa.Text, nullable=False),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("driver", sa.Text, nullable=False),
        sa.Column("torch", sa.Text, nullable=False),
        sa.Column("triton", sa.Text, nullable=False),
        sa.Column("cuda", sa.Text, nullable=False),
        sa.Column("clock_policy", sa.Text, nullable=False),
        sa.Column("producer", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
        sa.UniqueConstraint("key", name="uq_series_key"),
    )
    op.create_table(
        "point",
        sa.Column("series_id", sa.Integer, nullable=False),
        sa.Column("record_id", sa.Integer, nullable=False),
        sa.Column("side", sa.Text, nullable=False),
        sa.Column("commit_id", sa.Integer),
        sa.Column("us", sa.Double, nullable=False),
        sa.Column("error", sa.Double),
        sa.Column("processes", sa.Integer, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("finding", sa.Text),
        sa.PrimaryKeyConstraint("series_id", "record_id", "side", name="pk_point"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_point_series_id"),
        sa.ForeignKeyConstraint(["record_id"], ["record.id"], name="fk_point_record_id"),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name="fk_point_commit_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "comparison",
        sa.Column("series_id", sa.Integer, nullable=False),
        sa.Column("record_id", sa.Integer, nullable=False),
        sa.Column("base_id", sa.Integer, nullable=False),
        sa.Column("number", sa.SmallInteger, nullable=False),
        sa.Column("head_id", sa.Integer),
        sa.Column("effect", sa.Double, nullable=False),
        sa.Column("error", sa.Double),
        sa.Column("spread_pct", sa.Double),
        sa.Column("noise_pct", sa.Double),
        sa.Column("processes", sa.Integer, nullable=False),
        sa.Column("status", sa.Text),
        sa.Column("low_pct", sa.Double),
        sa.Column("high_pct", sa.Double),
        sa.Column("finding", sa.Text),
        sa.PrimaryKeyConstraint("series_id", "record_id", "base_id", "number", name="pk_comparison"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_comparison_series_id"),
        sa.ForeignKeyConstraint(["record_id"], ["record.id"], name="fk_comparison_record_id"),
        sa.ForeignKeyConstraint(["base_id"], ["commit.id"], name="fk_comparison_base_id"),
        sa.ForeignKeyConstraint(["head_id"], ["commit.id"], name="fk_comparison_head_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("made", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("card", sa.Text, nullable=False),
        sa.Column("case", sa.Text, nullable=False),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("sha", sa.Text, nullable=False),
        sa.Column("previous", sa.Text),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sa.UniqueConstraint("name", name="uq_event_name"),
    )
    op.create_table(
        "cost",
        sa.Column("record_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("gpu_seconds", sa.Double, nullable=False),
        sa.Column("retried", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("record_id", "number", name="pk_cost"),
        sa.ForeignKeyConstraint(["record_id"], ["record.id"], name="fk_cost_record_id"),
    )
