"""The links of a proxied cluster, carried by their real process, to an echo instead of brokers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_errors import NodeControlError
from eos_sink_lab.testing.network_links import HOST, Carrier, Link
from eos_sink_lab.testing.waiting import wait_until

# How long it is looked at that nothing comes; whatever comes is waited for much longer.
NOTHING_S = 0.2
PATIENCE_S = 20.0


class Echo:
    """Sends back what it is sent, and remembers it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while data := client.recv(1 << 18):
                self.received += data
                client.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the accept that is under way
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def carrier() -> Iterator[Carrier]:
    carrier = Carrier()
    yield carrier
    carrier.close()


@pytest.fixture
def link(carrier: Carrier, echo: Echo) -> Link:
    return carrier.lead(1, echo.port)


@pytest.fixture
def client(link: Link) -> Iterator[socket.socket]:
    with connect(link) as opened:
        assert answer(opened, b"hello") == b"hello"
        yield opened


def connect(link: Link) -> socket.socket:
    host, _, port = link.address.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def answer(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return received(client, len(data))


def say_and_hear(link: Link) -> bytes:
    with connect(link) as client:
        return answer(client, b"x")


def received(client: socket.socket, size: int) -> bytes:
    client.settimeout(PATIENCE_S)
    data = bytearray()
    while len(data) < size:
        chunk = client.recv(1 << 18)
        if not chunk:
            break
        data += chunk
    return bytes(data)


def is_silent(client: socket.socket) -> bool:
    client.settimeout(NOTHING_S)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    return False


def test_a_cut_link_carries_nothing_and_breaks_nothing(
    link: Link, echo: Echo, client: socket.socket
) -> None:
    link.cut()
    client.sendall(b"lost?")
    assert is_silent(client)
    assert echo.received == b"hello"


def test_a_new_connection_over_a_cut_link_gets_no_answer(link: Link) -> None:
    link.cut()
    with connect(link) as late:
        late.sendall(b"x")
        assert is_silent(late)
        link.heal()
        assert received(late, 1) == b"x"


def test_a_healed_link_delivers_what_was_held_back(link: Link, client: socket.socket) -> None:
    link.cut()
    client.sendall(b"late")
    wait_until(lambda: link.held_back == 4, Deadline(PATIENCE_S), "it is held back")
    link.heal()
    assert received(client, 4) == b"late"
    assert link.held_back == 0


def test_what_was_held_back_is_delivered_even_if_its_sender_has_gone(
    link: Link, echo: Echo, client: socket.socket
) -> None:
    link.cut()
    client.sendall(b"last words")
    client.close()
    link.heal()
    wait_until(
        lambda: echo.received == b"hellolast words", Deadline(PATIENCE_S), "the words arrive"
    )


def test_a_cut_of_answers_lets_requests_arrive(
    link: Link, echo: Echo, client: socket.socket
) -> None:
    link.cut(answers_only=True)
    client.sendall(b"done")
    wait_until(lambda: echo.received == b"hellodone", Deadline(PATIENCE_S), "it arrives")
    assert is_silent(client)
    link.heal()
    assert received(client, 4) == b"done"


def test_a_reset_link_breaks_every_connection_and_each_new_one(
    link: Link, client: socket.socket
) -> None:
    link.reset()
    with pytest.raises(ConnectionResetError):
        received(client, 1)
    with pytest.raises(ConnectionError):
        say_and_hear(link)
    link.heal()
    with connect(link) as later:
        assert answer(later, b"back") == b"back"


def test_a_delay_is_added_in_each_direction_until_it_is_lifted(
    link: Link, client: socket.socket
) -> None:
    link.delay(0.15)
    start = time.monotonic()
    assert answer(client, b"slow") == b"slow"
    assert time.monotonic() - start >= 0.3
    link.delay(60)
    client.sendall(b"at once")
    assert is_silent(client)
    link.heal()
    assert received(client, 7) == b"at once"


def test_the_order_stays_when_the_delay_shrinks(link: Link, client: socket.socket) -> None:
    link.delay(0.3)
    client.sendall(b"first")
    wait_until(lambda: link.held_back == 5, Deadline(PATIENCE_S), "it is on its way")
    link.delay(0.01)
    client.sendall(b"second")
    assert received(client, 11) == b"firstsecond"


def test_a_delay_less_than_nothing_is_refused(link: Link) -> None:
    with pytest.raises(ValueError, match="-1"):
        link.delay(-1)


def test_many_bytes_pass_whole_also_when_they_are_slow(link: Link, client: socket.socket) -> None:
    data = os.urandom(1 << 20) * 16
    for seconds in (0.0, 0.05):
        link.delay(seconds)
        sender = threading.Thread(target=client.sendall, args=(data,))
        sender.start()
        assert received(client, len(data)) == data
        sender.join()


def test_the_end_of_a_stream_comes_after_its_last_byte(link: Link, client: socket.socket) -> None:
    link.delay(0.05)
    client.sendall(b"bye")
    client.shutdown(socket.SHUT_WR)
    assert received(client, 100) == b"bye"


def test_a_broker_that_is_dead_takes_no_connection(link: Link, echo: Echo) -> None:
    echo.close()
    with pytest.raises(ConnectionError):
        say_and_hear(link)


def test_a_broker_keeps_its_link_when_it_gets_another_port(
    carrier: Carrier, link: Link, echo: Echo
) -> None:
    other = Echo()
    assert carrier.lead(1, other.port) is link
    with connect(link) as client:
        assert answer(client, b"there") == b"there"
    assert (bytes(echo.received), bytes(other.received)) == (b"", b"there")
    other.close()


def cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


@pytest.mark.parametrize("fault", ["none", "cut", "answers", "delay"])
def test_waiting_takes_no_time_of_the_processor(
    carrier: Carrier, link: Link, client: socket.socket, fault: str
) -> None:
    if fault == "delay":
        link.delay(60)
    elif fault != "none":
        link.cut(answers_only=fault == "answers")
    client.sendall(b"waits")
    assert is_silent(client) or fault == "none"
    client.close()
    before = cpu_s(carrier._process.pid)
    time.sleep(0.5)
    assert cpu_s(carrier._process.pid) - before <= 0.05, "0.5 would be all of the time"


def test_links_that_have_ended_say_so(carrier: Carrier, link: Link) -> None:
    carrier._process.kill()
    carrier._process.wait()
    with pytest.raises(NodeControlError):
        link.cut()


OWNER = """
import sys
from eos_sink_lab.testing.network_links import Carrier
carrier = Carrier()
print(carrier._process.pid, flush=True)
sys.stdin.read()
"""


def test_the_links_end_with_their_owner() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    carrier = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    wait_until(lambda: not lives(carrier), Deadline(PATIENCE_S), "the links have ended")
    owner.stdin.close()
    owner.stdout.close()


def lives(pid: int) -> bool:
    """Whether the process is there and is no zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
