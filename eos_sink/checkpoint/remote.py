"""Directories of HDFS and of object stores, through pyarrow."""

from __future__ import annotations

from urllib.parse import quote

from pyarrow.fs import FileSelector, FileSystem, FileType

# Google's client asks for 15 minutes by default.
_RETRY = {"gs": "?retry_limit_seconds=30"}


class RemoteFiles:
    """A directory of a file system of pyarrow, with the credentials of the environment.

    Args:
        scheme: one of pyarrow's.
        host: of the URI; may contain a user and a password.
        path: as Hadoop takes it, with no character that is escaped or has a meaning.

    Raises:
        OSError: there is no access.
        ValueError: the URI is malformed.
    """

    def __init__(self, scheme: str, host: str, path: str) -> None:
        uri = f"{scheme}://{host}{quote(path)}{_RETRY.get(scheme, '')}"
        self._system, directory = FileSystem.from_uri(uri)
        self._directory = directory.rstrip("/")

    def read(self, path: str) -> bytes | None:
        place = f"{self._directory}/{path}"
        try:
            with self._system.open_input_stream(place) as stream:
                return bytes(stream.read())
        except OSError:
            # Not every file system says by the kind of the error that there is no such file.
            if self._system.get_file_info(place).type is FileType.NotFound:
                return None
            raise

    def names(self, path: str, *, files: bool) -> list[str]:
        selector = FileSelector(f"{self._directory}/{path}", allow_not_found=True)
        kind = FileType.File if files else FileType.Directory
        return [
            info.base_name for info in self._system.get_file_info(selector) if info.type is kind
        ]
