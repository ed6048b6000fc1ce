"""Checks of a Python and its libraries: this one, or that of a Spark executor."""

from __future__ import annotations

import importlib
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.cluster_config import Translation
from eos_sink.ops.doctor.findings import Finding, Verdict

LIBRARIES = {
    "eos-sink": ("eos_sink", "", ""),
    "confluent-kafka": ("confluent_kafka", "2.16", "3"),
    "kafka-python": ("kafka", "3.0.12", "4"),
    "numpy": ("numpy", "1.24", "3"),
    "pyarrow": ("pyarrow", "15", ""),
    "tenacity": ("tenacity", "8.2", "10"),
    "xxhash": ("xxhash", "3", "5"),
    "pyspark": ("pyspark", "3.5", "5"),
}
"""The module, the lowest version, and the version to stay below (empty: none), as in setup.cfg."""
OPTIONAL = frozenset({"pyspark"})
_PYTHON = (3, 10)
_CONNECT_S, _LOGIN_S = 3.0, 10.0


@dataclass(frozen=True)
class Python:
    """A Python, its libraries, and what it can reach.

    Attributes:
        hosts: those on which it is the same.
        executable: its path.
        version: "3.12.1".
        versions: of each library and of eos-sink; empty where it is not installed.
        librdkafka: the version that confluent-kafka has loaded; empty if that cannot be imported.
        error: of the imports that failed, or empty.
        native: rows can go from Arrow's buffers straight to librdkafka.
        unreachable: why it cannot reach a broker, by "host:port".
        login: why it cannot log in; empty: it can, or did not try.
    """

    hosts: tuple[str, ...]
    executable: str
    version: str
    versions: Mapping[str, str]
    librdkafka: str = ""
    error: str = ""
    native: bool = False
    unreachable: Mapping[str, str] = field(default_factory=dict)
    login: str = ""


def this_python() -> Python:
    return Python(**make_look()())


def make_look(
    addresses: Sequence[str] = (), client: Translation | None = None, own_version: str = ""
) -> Callable[[], dict[str, Any]]:
    """Make a function that inspects the Python and the host that call it.

    Spark sends it to executors whose Python may lack this package. So it is a local function, which
    is pickled by value, imports everything itself, and returns plain values.

    Args:
        addresses: to connect to, "host:port".
        client: settings to log in with; None: no login is tried.
        own_version: of the eos-sink that has these settings, which another may not know.
    """
    libraries, hosts = dict(LIBRARIES), list(addresses)
    connect_s, this_module, unknown = _CONNECT_S, __name__, "?"
    settings = client and pickle.dumps(client)

    def look() -> dict[str, Any]:
        import importlib
        import importlib.metadata
        import platform
        import socket
        import sys

        load = importlib.import_module

        def version_of(name: str, module: str) -> tuple[str, str]:
            """Return version and import error; both are empty if it is not installed."""
            try:
                found = load(module)
            except ModuleNotFoundError as error:
                return ("", "") if error.name == module else (unknown, f"{name}: {error}")
            except Exception as error:  # noqa: BLE001 - a broken library may raise anything
                return unknown, f"{name}: {type(error).__name__}: {error}"
            try:
                return importlib.metadata.version(name), ""
            except importlib.metadata.PackageNotFoundError:
                # Shipped with --py-files or an archive, without pip's metadata.
                return str(getattr(found, "__version__", unknown)), ""

        def connect(address: str) -> str:
            host, _, port = address.rpartition(":")
            try:
                socket.create_connection((host, int(port)), timeout=connect_s).close()
            except OSError as error:
                return str(error.strerror or error)
            return ""

        found = {name: version_of(name, module) for name, (module, *_) in libraries.items()}
        usable = not any(error for _, error in found.values()) and all(
            found[name][0] for name in ("eos-sink", "confluent-kafka", "numpy", "pyarrow")
        )
        same = found["eos-sink"][0] == own_version
        errors = {address: connect(address) for address in hosts}
        return {
            "hosts": (socket.gethostname(),),
            "executable": sys.executable,
            "version": platform.python_version(),
            "versions": {name: version for name, (version, _) in found.items()},
            "error": "; ".join(error for _, error in found.values() if error),
            "unreachable": {address: error for address, error in errors.items() if error},
            **(load(this_module).try_clients(settings if same else None) if usable else {}),
        }

    return look


def try_clients(client: bytes | None) -> dict[str, Any]:
    """Load the Kafka clients and log in; called by `look` where this package can be imported."""
    from eos_sink.kafka.connection.settings import connection_settings, librdkafka_settings
    from eos_sink.kafka.native.library import load_library
    from eos_sink.kafka.shared_clients import check_login

    login = ""
    if client is not None:
        try:
            translation: Translation = pickle.loads(client)  # noqa: S301 - see `make_look`
            settings = connection_settings(librdkafka_settings(translation))
            check_login(settings, "x", Deadline(_LOGIN_S))
        except EosSinkError as error:
            login = str(error)
    version = importlib.import_module("confluent_kafka").libversion()[0]
    return {"librdkafka": version, "native": load_library() is not None, "login": login}


def check_clients(python: Python) -> Verdict:
    if _parse(python.version) < _PYTHON:
        yield Finding.failure(
            f"Python {python.version} is older than {'.'.join(map(str, _PYTHON))}",
            "The sink cannot be imported.",
            "Use a newer Python, on driver and executors.",
        )
    for name, version in python.versions.items():
        if not is_supported(name, version):
            _, least, below = LIBRARIES[name]
            what = f"{name} {version}" if version else f"{name} is not installed"
            wanted = f"{least} or newer" + (f", below {below}" if below else "")
            yield Finding.failure(
                f"{what}; the sink is made for {wanted}",
                "The query may fail when it uses it.",
                _install(name, python),
            )
    if python.error:
        yield Finding.failure(
            f"a library cannot be imported: {python.error}",
            "The query fails as soon as it uses it.",
            f"{python.executable} -m pip install --force-reinstall eos-sink",
        )
    elif not python.native:
        yield Finding.warning(
            f"the sink does not know the fast path of librdkafka {python.librdkafka}",
            "Rows go through confluent-kafka one by one: slower, otherwise the same.",
            _install("confluent-kafka", python),
        )
    known = ", ".join(f"{name} {version}" for name, version in python.versions.items() if version)
    return f"Python {python.version}, {known}, librdkafka {python.librdkafka}"


def is_supported(name: str, version: str) -> bool:
    """True if the sink is tested with it; an optional library may be missing."""
    if not version:
        return name in OPTIONAL
    _, least, below = LIBRARIES[name]
    return _parse(least) <= _parse(version) and (not below or _parse(version) < _parse(below))


def _install(name: str, python: Python) -> str:
    _, least, below = LIBRARIES[name]
    bounds = f"{name}>={least}" + (f",<{below}" if below else "")
    return f"{python.executable} -m pip install '{bounds}'"


def _parse(version: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
