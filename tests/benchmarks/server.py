"""What one click costs the server: milliseconds until the script has finished, and bytes to the browser."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable
from pathlib import Path

from tests.benchmarks.client import Reader, Reply, reader
from tests.benchmarks.rows import REPEATS, Row, middle
from tests.benchmarks.sentences import sentence
from tests.conftest import Server

PART = "server"
LENGTHS = (15, 128, 512)
CHANGES = ("new sentence", "head changed", "word pinned", "mask flipped")
AIMS = {("new sentence", 15): 300.0, ("head changed", 15): 100.0}
MOST_KILOBYTES = 1500.0
# Nobody clicks again at once; and a request within some 50 ms of the last answer waits 40 ms for the network, since
# Streamlit's socket holds small messages back (Nagle) until the last ones are acknowledged.
PAUSE = 0.2  # seconds


async def reruns(server: Server) -> list[Row]:
    """Measure every kind of change at every length, in one session on a server that nobody else uses.

    Raises:
        RuntimeError: the page did not answer as it should, so its times mean nothing.
    """
    rows = []
    async with reader(server.url) as session:
        await session.open()
        for tokens in LENGTHS:
            replies, seconds = await _changes(session, server.pid, tokens)
            rows += _rows(tokens, replies, seconds)
    return rows


async def _changes(session: Reader, pid: int, tokens: int) -> tuple[dict[str, list[Reply]], dict[str, float]]:
    """Make every change several times; give the replies, and the server's processor seconds."""
    replies: dict[str, list[Reply]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)

    async def measured(what: str, change: Awaitable[Reply]) -> None:
        before = processor_seconds(pid)
        replies[what].append(await change)
        await asyncio.sleep(PAUSE)  # what the server clears up afterwards counts as its work, not as the reader's wait
        seconds[what] += processor_seconds(pid) - before

    await session.type("sentence", sentence(tokens, REPEATS))
    for number in range(REPEATS):
        await measured("new sentence", session.type("sentence", sentence(tokens, number)))
        if not session.says(f"{tokens} of "):
            raise RuntimeError(f"The page does not show {tokens} tokens.")
        head = {"layer": number % 6, "head": number % 12}
        await measured("head changed", session.pick("grid", head))
        if tokens <= 128 and replies["head changed"][-1].kinds.get("plotly_chart map", 0) == 0:
            raise RuntimeError("The page did not draw another head.")
        await measured("word pinned", session.pick("ribbon", {"pin": 1 + number}))
        await measured("mask flipped", session.choose("mask", "GPT-style"))
        if not session.says("Not what this model was trained with"):
            raise RuntimeError("The page did not run the model under another mask.")
        await session.choose("mask", "As trained")
        await asyncio.sleep(PAUSE)
    return replies, seconds


def _rows(tokens: int, replies: dict[str, list[Reply]], seconds: dict[str, float]) -> list[Row]:
    rows = []
    for what in CHANGES:
        times = [reply.milliseconds for reply in replies[what]]
        sizes = [reply.nbytes / 1000 for reply in replies[what]]
        processor = 1000 * seconds[what] / len(times)
        rows += [
            middle(PART, what, times, "ms", tokens=tokens, aim=AIMS.get((what, tokens))),
            Row(PART, f"{what}, processor time, mean", processor, "ms", tokens),
            middle(PART, f"{what}, bytes sent", sizes, "KB", tokens=tokens, aim=MOST_KILOBYTES),
        ]
    return rows


def processor_seconds(pid: int) -> float:
    """Read how much processor time a process has used, all threads, in steps of 1/100 s; Linux only, else 0."""
    status = Path(f"/proc/{pid}/stat")
    if not status.exists():
        return 0.0
    fields = status.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")
