"""The version and repository of this package; asking its installation takes a task too long."""

VERSION = "0.2.0.dev0"  # As in setup.cfg.

REPOSITORY = ""
"""Such as https://github.com/OWNER/NAME. Empty: neither pages nor a package are published."""


def file_url(path: str, repository: str = REPOSITORY, version: str = VERSION) -> str:
    """Return where a file of this version can be read: a release has a tag."""
    return f"{repository}/blob/{'HEAD' if '.dev' in version else f'v{version}'}/{path}"
