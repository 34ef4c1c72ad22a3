"""Stands in for gh where docs/install.md is tried out: does what `done` lists.

Repositories are bare ones below $GH_ORIGINS, and $GH_REQUESTS is a file to which each command adds a line of JSON with
what it did.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def done(words: list[str]) -> dict[str, Any]:
    """What is noted of a command; another one, or one that GitHub would not take, ends with the reason."""
    match words:
        case ["auth", "refresh", "--scopes", scopes]:
            return {"scopes": scopes.split(",")}
        case ["auth", "token"]:
            print(os.environ["GH_TOKEN_TO_SHOW"])
            return {"token": True}
        case ["repo", "fork", repository, "--org", organisation, "--clone"]:
            copy = f"{organisation}/{repository.split('/')[1]}"
            shutil.copytree(origin(repository), origin(copy))
            return done(["repo", "clone", copy])
        case ["repo", "clone", repository]:
            subprocess.run(["git", "clone", "--quiet", origin(repository)], check=True)
            return {"clone": repository}
        case ["pr", "create", "--repo", repository, "--head", head, "--title", _, "--body", body]:
            git(repository, "rev-parse", "--verify", f"refs/heads/{head}")
            return {"pull": {"repo": repository, "head": head, "body": body}}
        case ["workflow", "run", name, "--repo", repository]:
            git(repository, "grep", "--quiet", f"^name: {name}$", "HEAD", "--", ".github/workflows")
            return {"dispatch": name}
    sys.exit(f"gh: unknown command {words}")


def git(repository: str, *words: str) -> None:
    subprocess.run(["git", "-C", origin(repository), *words], stdout=subprocess.DEVNULL, check=True)


def origin(repository: str) -> Path:
    return Path(os.environ["GH_ORIGINS"]) / f"{repository}.git"


if __name__ == "__main__":
    noted = done(sys.argv[1:])
    with Path(os.environ["GH_REQUESTS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(noted) + "\n")
