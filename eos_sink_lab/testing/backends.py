"""Starts a Kafka for tests: chooses the back end that runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from eos_sink_lab.testing.cluster_errors import BackendUnavailableError, JavaNotFoundError
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_cluster import ExternalCluster, KafkaCluster
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION
from eos_sink_lab.testing.owned_cluster import ClusterSpec
from eos_sink_lab.testing.security import Security
from eos_sink_lab.testing.waiting import Progress, to_stderr


class Backend(str, Enum):
    """The backend that runs the cluster."""

    AUTO = "auto"
    LOCAL = "local"
    CONTAINERS = "containers"
    EXTERNAL = "external"


def start_kafka(  # noqa: PLR0913 - keywords of the public API
    brokers: int = 1,
    version: str = DEFAULT_VERSION,
    *,
    port: int | None = None,
    properties: Mapping[str, object] | None = None,
    data_dir: str | Path | None = None,
    progress: Progress = to_stderr,
    backend: Backend | str | None = None,
    proxied: bool = False,
    security: Security | None = None,
) -> KafkaCluster:
    """Start a Kafka cluster, and return it when every broker answers.

        with start_kafka(brokers=3) as kafka:
            kafka.create_topic("orders", partitions=4)
            ...  # kafka.bootstrap_servers, kafka.nodes[0].kill()

    Back ends:

    - `external`: the cluster at EOS_BOOTSTRAP ("host:port,..."). Nothing is started or stopped,
      its nodes cannot be controlled, and the other arguments do not apply to it.
    - `local`: Kafka as processes of this machine. Needs Java 17 or newer; the first use downloads
      Kafka (about 45 MB) through pyspark's Ivy into ~/.cache/eos-sink or EOS_CACHE.
      EOS_IVY_SETTINGS names the ivysettings.xml of a mirror; EOS_KAFKA_LOG=info makes the nodes'
      logs (node.log in each node's directory) say more.
    - `containers`: the official image through testcontainers (EOS_KAFKA_IMAGE for another one),
      with the host's network.
    - `auto`: external if EOS_BOOTSTRAP is set; else local if a Java is found; else containers if
      a Docker engine answers. Local comes first, also where Docker is available: it starts
      faster, and needs no image and no rights.

    Args:
        brokers: 1 for one node that is broker and controller; 3 for three brokers and three
            controllers (replication factor 3, min.insync.replicas 2).
        version: of Kafka, such as "4.3.0" or "3.9.1".
        port: of the first broker; the others have the next ones. By default free ports.
        properties: extra properties for every node; they win over the cluster's own.
        data_dir: of the nodes (local only). By default a temporary directory that is removed at
            the end; a given one stays, and another cluster can start from it.
        progress: takes messages, line by line; standard error by default.
        backend: one of the above; by default the value of EOS_KAFKA, else `auto`.
        proxied: clients of `bootstrap_servers` reach each broker through a link, `node.link`, that
            can be cut and slowed down. Brokers talk to each other directly.
        security: the cluster also has listeners where clients log in, over TLS, and have only the
            permissions that `kafka.access` has granted (local only, not proxied). Clients of
            `bootstrap_servers` need no login and have every permission: these are for the test.

    Returns:
        The running cluster. Use it in a `with` block or close it. If this process dies before
        that, by SIGKILL for instance, the nodes end and their data is removed.

    Raises:
        BackendUnavailableError: this machine cannot run it; the message lists what helps.
        DownloadError: Kafka's jars cannot be downloaded.
        NodeFailedError: a node ended while starting; the message has the end of its log.
        NotReadyError: the cluster did not get ready in time.
        ValueError: an argument is out of its range.
    """
    if brokers < 1:
        raise ValueError(f"A cluster needs at least one broker, not {brokers}.")
    spec = ClusterSpec(
        brokers=brokers,
        version=version,
        port=port,
        properties=dict(properties or {}),
        data_dir=None if data_dir is None else Path(data_dir),
        progress=progress,
        log_level=os.environ.get("EOS_KAFKA_LOG", "warn"),
        proxied=proxied,
        security=security,
    )
    chosen = choose_backend(backend, os.environ)
    if security is not None and (proxied or chosen is not Backend.LOCAL):
        raise ValueError(f"Secured clusters are local and not proxied, this one: {chosen.value}.")
    # Each back end is imported only where it is used.
    if chosen is Backend.EXTERNAL:
        return ExternalCluster(os.environ.get("EOS_BOOTSTRAP", ""))
    if chosen is Backend.LOCAL:
        from eos_sink_lab.testing.local_cluster import start_local

        return start_local(spec)
    from eos_sink_lab.testing.container_cluster import ContainerCluster

    return ContainerCluster(spec, os.environ.get("EOS_KAFKA_IMAGE"))


def choose_backend(wanted: Backend | str | None, environ: Mapping[str, str]) -> Backend:
    """The back end that `start_kafka` uses; see there.

    Raises:
        BackendUnavailableError: `auto` found nothing that can run Kafka.
        ValueError: no such back end.
    """
    name = wanted or environ.get("EOS_KAFKA") or Backend.AUTO
    try:
        backend = Backend(name)
    except ValueError:
        known = ", ".join(each.value for each in Backend)
        raise ValueError(f"No back end is called {name!r}; known: {known}.") from None
    if backend is not Backend.AUTO:
        return backend
    if environ.get("EOS_BOOTSTRAP"):
        return Backend.EXTERNAL
    try:
        find_java(environ)
        return Backend.LOCAL
    except JavaNotFoundError as error:
        from eos_sink_lab.testing.container_cluster import why_no_engine

        missing = why_no_engine()
        if missing is None:
            return Backend.CONTAINERS
        raise BackendUnavailableError(
            f"No Kafka can be started here. {error} Or start a Docker engine and "
            f"pip install testcontainers ({missing}). Or name a cluster that runs: "
            "EOS_BOOTSTRAP=host:port."
        ) from error
