"""Texts for users, with pages and packages where an installation can reach them."""

import re

from eos_sink.version import REPOSITORY, VERSION, file_url

_PAGE = re.compile(r"(?<![\w/])docs/[\w./-]+\.md\b")
_PACKAGE = re.compile(r"(pip install (?:--[a-z-]+ )*)eos-sink\b(?!\[)")
_WHEEL = "eos_sink-*.whl, which 'pip wheel --no-deps .' makes in a clone of it"


def as_published(text: str, repository: str = REPOSITORY, version: str = VERSION) -> str:
    """Return the text with links to the pages of this version: an installation has no docs/.

    While no package is published, pip needs the file of one; only for an extra ('eos-sink[cli]')
    does it go on from what is installed.
    """
    if not repository:
        return _PACKAGE.sub(rf"\1{_WHEEL}", text)
    return _PAGE.sub(lambda page: file_url(page[0], repository, version), text)
