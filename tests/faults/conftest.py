"""The fake GitHub and the bot that talks to it, as the tests of ci have them."""

from tests.ci.conftest import desk, github

__all__ = ["desk", "github"]
