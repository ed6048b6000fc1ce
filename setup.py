"""What setup.cfg cannot say: the addresses of the repository, which eos_sink/version.py names.

While it names none there are no project URLs, and what the README says of a file of the tree stays
without its link in the long description.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from setuptools import setup

_HERE = Path(__file__).parent
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https://|#)([^)\s]+)\)")
_RELEASE = runpy.run_path(str(_HERE / "eos_sink" / "version.py"))
_REPOSITORY, _VERSION = _RELEASE["REPOSITORY"], _RELEASE["VERSION"]


def project_urls(repository: str = _REPOSITORY, version: str = _VERSION) -> dict[str, str]:
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": _RELEASE["file_url"]("docs/README.md", repository, version),
        "Changelog": _RELEASE["file_url"]("CHANGELOG.md", repository, version),
        "Issues": f"{repository}/issues",
    }


def long_description(readme: str, repository: str = _REPOSITORY, version: str = _VERSION) -> str:
    """Return the README without a relative link, which leads nowhere on PyPI."""

    def absolute(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if not repository:
            return text
        url = _RELEASE["file_url"](path, repository, version)
        return f"{picture}[{text}]({url}{'?raw=true' if picture else ''})"

    return _LINK.sub(absolute, readme)


if __name__ == "__main__":
    setup(
        long_description=long_description((_HERE / "README.md").read_text(encoding="utf-8")),
        project_urls=project_urls(),
    )
