"""What setup.cfg cannot say: the addresses of the repository that a release is built from.

GitHub's workflows tell their repository. Elsewhere it is not known: then there are no project URLs,
and what the README says of a file of the tree stays without its link in the long description.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from setuptools import setup

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https://|#)([^)\s]+)\)")


def repository(environ: Mapping[str, str]) -> str | None:
    """Such as https://github.com/OWNER/NAME."""
    server, name = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def project_urls(environ: Mapping[str, str]) -> dict[str, str]:
    there = repository(environ)
    if there is None:
        return {}
    return {
        "Source": there,
        "Documentation": f"{there}/blob/HEAD/docs/README.md",
        "Changelog": f"{there}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{there}/issues",
    }


def long_description(readme: str, environ: Mapping[str, str]) -> str:
    """The README without a relative link, which leads nowhere on PyPI."""
    there, commit = repository(environ), environ.get("GITHUB_SHA", "HEAD")

    def absolute(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if there is None:
            return text
        return f"{picture}[{text}]({there}/{'raw' if picture else 'blob'}/{commit}/{path})"

    return _LINK.sub(absolute, readme)


if __name__ == "__main__":
    setup(
        long_description=long_description(
            Path(__file__).with_name("README.md").read_text(encoding="utf-8"), os.environ
        ),
        project_urls=project_urls(os.environ),
    )
