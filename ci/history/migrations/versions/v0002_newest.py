"""What the judge asks for: the newest records of a card, the series of a record's environment, and known spreads."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for table, column in (("record", "cards"), ("record", "environment"), ("series", "environment")):
        op.add_column(table, sa.Column(column, sa.Text, nullable=False, server_default=""))
    op.create_index("ix_record_made", "record", ["made"])
    op.create_index("ix_series_environment", "series", ["environment"])
    op.create_table(
        "spread",
        sa.Column("record_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("card", sa.Text, nullable=False),
        sa.Column("case", sa.Text, nullable=False),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("spread_pct", sa.Double, nullable=False),
        sa.Column("noise_pct", sa.Double, nullable=False),
        sa.Column("df", sa.Double, nullable=False),
        sa.Column("comparisons", sa.Integer, nullable=False),
        sa.Column("last_seen", sa.Text),
        sa.PrimaryKeyConstraint("record_id", "number", name="pk_spread"),
        sa.ForeignKeyConstraint(["record_id"], ["record.id"], name="fk_spread_record_id"),
    )
    _fill(op.get_bind())


def _fill(connection: sa.Connection) -> None:
    """Of the records that are there: what their series have in common, and the cards of these."""
    from kernelgate.ci.history.index import environment_of

    fields = "id, repository, card, gpu, driver, torch, triton, cuda, clock_policy, producer"
    series = {row.id: row for row in connection.execute(sa.text(f"SELECT {fields} FROM series"))}  # noqa: S608
    named = {number: environment_of(dict(row._mapping)) for number, row in series.items()}
    records: dict[int, set[int]] = {}
    for record, one in connection.execute(sa.text("SELECT DISTINCT record_id, series_id FROM point")):
        records.setdefault(record, set()).add(one)
    update = sa.text("UPDATE series SET environment = :environment WHERE id = :id")
    if named:
        connection.execute(update, [{"id": number, "environment": name} for number, name in named.items()])
    rows = [
        {
            "id": record,
            "cards": json.dumps(sorted({series[one].card for one in held}), ensure_ascii=False),
            "environment": named[next(iter(held))],
        }
        for record, held in records.items()
    ]
    if rows:
        connection.execute(sa.text("UPDATE record SET cards = :cards, environment = :environment WHERE id = :id"), rows)
