"""The index's tables, alike in SQLite and Postgres. Whoever changes them raises `REVISION`."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

REVISION = "0007"
METADATA = MetaData()
REMOVED = ("spread",)
"""Tables of earlier versions."""

VERSION = Table("kernelgate_history", METADATA, Column("version_num", Text, primary_key=True))
"""One row, which every writer locks. Its name may stand in a database beside another project's."""

RECORD = Table(
    "record",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # sha256 of what was measured
    Column("rules", Text, nullable=False),  # that judged it
    Column("made", Text),  # ISO 8601, UTC, as `entry.moment` writes it
    Column("repository", Text, nullable=False),
    Column("producer", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("base_sha", Text),
    Column("head_sha", Text),
    Column("gpu", Text, nullable=False),  # the kind
    Column("outcome", Text),
    Column("reason", Text),
    Column("cards", Text, nullable=False),  # a JSON list
    Column("environment", Text, nullable=False),  # the one of its series
    Index("ix_record_made", "made"),
    Column("condensed", Text),  # the name of what is kept in the record's place, once its samples are not
)

COMMIT = Table(
    "commit",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("sha", Text, nullable=False, unique=True),
    Column("place", Integer),  # in first-parent order of the default branch, from 0; null where it is not on it
)

SERIES = Table(
    "series",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),  # of all that follows: that may be too long for an index
    Column("repository", Text, nullable=False),
    Column("card", Text, nullable=False),
    Column("case", Text, nullable=False),
    Column("gpu", Text, nullable=False),
    Column("driver", Text, nullable=False),
    Column("torch", Text, nullable=False),
    Column("triton", Text, nullable=False),
    Column("cuda", Text, nullable=False),
    Column("clock_policy", Text, nullable=False),
    Column("producer", Text, nullable=False),  # such as "kernelgate 0.1.0"
    Column("newest", Text, nullable=False),  # when its newest record was made, …
    Column("reference", Text),  # … and what that one's card calls its reference
    Column("environment", Text, nullable=False),  # names all but card and case, in short
    Index("ix_series_environment", "environment"),
)

# Both lie in the order of series, which is that of `show`; without rowids SQLite keeps them once instead of twice.
POINT = Table(
    "point",
    METADATA,
    Column("series_id", ForeignKey("series.id"), primary_key=True),
    Column("record_id", ForeignKey("record.id"), primary_key=True),
    Column("side", Text, primary_key=True),
    Column("commit_id", ForeignKey("commit.id")),
    Column("us", Double, nullable=False),
    Column("error", Double),  # of the logarithm
    Column("processes", Integer, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("finding", Text),
    sqlite_with_rowid=False,
)

COMPARISON = Table(
    "comparison",
    METADATA,
    Column("series_id", ForeignKey("series.id"), primary_key=True),
    Column("record_id", ForeignKey("record.id"), primary_key=True),
    Column("base_id", ForeignKey("commit.id"), primary_key=True),
    Column("number", SmallInteger, primary_key=True),  # a commit may be base and pinned at once
    Column("head_id", ForeignKey("commit.id")),
    Column("effect", Double, nullable=False),
    Column("error", Double),
    Column("spread_pct", Double),
    Column("noise_pct", Double),
    Column("processes", Integer, nullable=False),
    Column("status", Text),
    Column("low_pct", Double),
    Column("high_pct", Double),
    Column("finding", Text),
    sqlite_with_rowid=False,
)

EVENT = Table(
    "event",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # sha256 of its file
    Column("made", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("card", Text, nullable=False),
    Column("case", Text, nullable=False),
    Column("gpu", Text, nullable=False),
    Column("sha", Text, nullable=False),
    Column("previous", Text),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("repository", Text, nullable=False),  # empty: not known
)

COST = Table(
    "cost",
    METADATA,
    Column("record_id", ForeignKey("record.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("phase", Text, nullable=False),
    Column("gpu_seconds", Double, nullable=False),
    Column("retried", Boolean, nullable=False),
)

SESSION = Table(
    "session",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("source", Text, nullable=False),  # measured, recorded
    Column("opened", Text),
    Column("objective", Text, nullable=False),
    Column("card", Text),
    Column("gpu", Text),
    Column("closed", Text),
    Column("minutes", Double, nullable=False),
    Column("speedup", Double),
    Column("speedup_low", Double),
    Column("speedup_high", Double),
    Column("gain_kept_pct", Double, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("kept", Integer, nullable=False),
    Column("blind", Integer, nullable=False),
    Column("usd", Double),  # null where nothing is known of what it cost
    Column("log", Text, nullable=False),  # all of it, as it stands in the store
)
