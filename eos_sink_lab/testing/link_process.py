"""Carries the connections between clients and brokers, and disturbs them on command.

It runs as a process (standard library only), so that it does not compete for the interpreter of the
tests. Commands are lines of JSON; each is answered with a line when it is in effect:

    {"link": 1, "port": 20001, "to": 20002}    listen, and lead to that port from now on
    {"link": 1, "cut": "none|all|answers|reset", "delay": 0.0, "rate": 0}
    {"link": 1, "forget": true}
    {"link": 1, "logins": 20}                  refuse more in a second; answered with their number
    {"link": 1, "held_back": true}             answered with a number of bytes
    {"link": 1, "hold": 26, "match": "id"}     hold the next such request; answered with its number
    {"link": 1, "held": 0, "do": "tell|deliver|drop"}      answered with its state

It ends when its input ends or its parent is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from typing import Any

from eos_sink_lab.testing.carried_links import Link
from eos_sink_lab.testing.request_frames import Hold

DONE = "done"

_CHECK_PARENT_EVERY_S = 0.5


async def execute(command: dict[str, Any], links: dict[int, Link]) -> int | str:
    """Execute a command of the parent; return what a question asks for."""
    number = int(command["link"])
    if "to" in command:
        if number not in links:
            links[number] = Link(command["port"])
        links[number].to = command["to"]
    elif "forget" in command:
        for connection in links[number].connections:
            connection.forget()
    elif "logins" in command:
        logins = links[number].logins
        logins.counts = True
        logins.most, tried, logins.tried = command["logins"], logins.tried, 0
        return tried
    elif "held_back" in command:
        return links[number].held_back
    elif "hold" in command:
        holds = links[number].holds
        holds.append(Hold(command["hold"], command["match"].encode("latin-1")))
        return len(holds) - 1
    elif "held" in command:
        return links[number].strike(command["held"], command["do"])
    else:
        await links[number].change(command["cut"], command["delay"], command["rate"])
    return 0


async def end_with_parent() -> None:
    """End when the parent is gone; a child that it forked may hold the pipe open."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_CHECK_PARENT_EVERY_S)
    os._exit(0)


async def main() -> None:
    """Carry connections until the input ends."""
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    watching = asyncio.create_task(end_with_parent())
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    links: dict[int, Link] = {}
    while line := await commands.readline():
        try:
            answer = f"{DONE} {await execute(json.loads(line), links)}"
        except OSError as error:
            answer = f"{error}"
        print(answer, flush=True)  # noqa: T201 - the answer to the parent
    watching.cancel()


def run() -> None:
    """What the process does."""
    asyncio.run(main())
