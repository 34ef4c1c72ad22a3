"""The fake GitHub, and the bot that posts to it."""

from tests.ci.conftest import desk, github

__all__ = ["desk", "github"]
