"""What a Python finds: this one, or that of a Spark executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eos_sink.ops.doctor.clients import Python

MODULES = {
    "eos-sink": "eos_sink",
    "confluent-kafka": "confluent_kafka",
    "kafka-python": "kafka",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "tenacity": "tenacity",
    "pyspark": "pyspark",
}
Look = Callable[[], dict[str, Any]]
_CONNECT_S, _LOGIN_S = 3.0, 10.0


def this_python() -> Python:
    """The one that runs this."""
    return as_python(looker()())


def as_python(seen: Mapping[str, Any]) -> Python:
    """What a `Look` has returned."""
    names = ("executable", "version", "versions", "librdkafka", "error", "native")
    return Python(**{name: seen[name] for name in names})


def looker(
    addresses: Sequence[tuple[str, int]] = (), kafka: Mapping[str, str] | None = None
) -> Look:
    """A function that looks around where it is called, and returns plain values.

    It carries all that it needs, so that an executor whose Python lacks this package can call it.

    Args:
        addresses: to connect to.
        kafka: a query's settings to log in with; None: it does not log in.
    """
    modules, given = dict(MODULES), None if kafka is None else dict(kafka)
    places, connect_s, login_s = list(addresses), _CONNECT_S, _LOGIN_S

    def look() -> dict[str, Any]:
        # A local function goes to an executor by value, and so does all that it names.
        import importlib
        import importlib.metadata
        import platform
        import socket
        import sys

        def load(name: str) -> Any:
            return importlib.import_module(name)

        def version_of(name: str, module: str) -> tuple[str, str]:
            """The version and the error of the import; no version: it is not there."""
            try:
                found = load(module)
            except ModuleNotFoundError as error:
                return ("", "") if error.name == module else ("?", f"{name}: {error}")
            except Exception as error:  # noqa: BLE001 - whatever a broken library raises
                return "?", f"{name}: {type(error).__name__}: {error}"
            try:
                return importlib.metadata.version(name), ""
            except importlib.metadata.PackageNotFoundError:
                # Shipped with --py-files or an archive, without what pip knows.
                return str(getattr(found, "__version__", "?")), ""

        def unreachable() -> dict[str, str]:
            found = {}
            for host, port in places:
                try:
                    socket.create_connection((host, port), timeout=connect_s).close()
                except OSError as error:
                    found[f"{host}:{port}"] = str(error.strerror or error)
            return found

        def login() -> str:
            if given is None:
                return ""
            deadline = load("eos_sink.kafka.deadline").Deadline(login_s)
            settings = load("eos_sink.kafka.connection.settings")
            try:
                connection = settings.connection_settings(settings.librdkafka_settings(given))
                load("eos_sink.kafka.shared_clients").connected_admin(connection, "x", deadline)
            except load("eos_sink.errors").EosSinkError as error:
                return str(error)
            return ""

        found = {name: version_of(name, module) for name, module in modules.items()}
        whole = not any(error for _, error in found.values()) and all(
            found[name][0] for name in ("eos-sink", "confluent-kafka", "numpy", "pyarrow")
        )
        return {
            "host": socket.gethostname(),
            "executable": sys.executable,
            "version": platform.python_version(),
            "versions": {name: version for name, (version, _) in found.items()},
            "error": "; ".join(error for _, error in found.values() if error),
            "librdkafka": load("confluent_kafka").libversion()[0] if whole else "",
            "native": whole and load("eos_sink.kafka.native.library").library() is not None,
            "unreachable": unreachable(),
            "login": login() if whole else "",
        }

    return look
