"""What a complete Kafka in the cache consists of, so that a broken one is noticed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "manifest.json"


@dataclass(frozen=True)
class Entry:
    """One file: its size in bytes and the SHA-256 of its content when it was downloaded."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The files of one Kafka version. It is written last, so its presence means complete."""

    version: str
    entries: tuple[Entry, ...]

    def problems(self, directory: Path, *, hashes: bool = False) -> list[str]:
        """What differs from the manifest; empty if nothing does.

        Args:
            directory: where the files are.
            hashes: compare contents too (about 0.1 s), not only names and sizes.
        """
        found = []
        for entry in self.entries:
            path = directory / entry.name
            if not path.is_file():
                found.append(f"{entry.name} is missing")
            elif path.stat().st_size != entry.size:
                found.append(f"{entry.name} has {path.stat().st_size} bytes, not {entry.size}")
            elif hashes and sha256(path) != entry.sha256:
                found.append(f"{entry.name} has another content than when it was downloaded")
        known = {entry.name for entry in self.entries}
        strangers = sorted(path.name for path in directory.glob("*.jar") if path.name not in known)
        return [*found, *(f"{name} does not belong there" for name in strangers)]

    def write(self, directory: Path) -> None:
        """Write it beside its files."""
        text = json.dumps(asdict(self), indent=1)
        (directory / NAME).write_text(text + "\n", encoding="utf-8")


def take(version: str, directory: Path) -> Manifest:
    """The manifest of what is in the directory now."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != NAME)
    return Manifest(
        version, tuple(Entry(path.name, path.stat().st_size, sha256(path)) for path in files)
    )


def read(directory: Path) -> Manifest | None:
    """The manifest in the directory, or None if there is none that can be read."""
    try:
        data = json.loads((directory / NAME).read_text(encoding="utf-8"))
        return Manifest(data["version"], tuple(Entry(**entry) for entry in data["entries"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
