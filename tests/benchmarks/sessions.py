"""A class of thirty at once: each changes the head or the sentence five times, thinking in between."""

from __future__ import annotations

import asyncio
import random
from time import perf_counter

from tests.benchmarks.client import Reader, reader
from tests.benchmarks.rows import Row
from tests.benchmarks.sentences import sentence
from tests.benchmarks.server import processor_seconds
from tests.conftest import Server

PART = "30 sessions"
SESSIONS = 30
CHANGES = 5
THINKING = (1.0, 3.0)  # seconds
AT_MOST = 60.0  # seconds, whatever happens


async def load(server: Server) -> list[Row]:
    """Let thirty readers work at once, each on 15 tokens; stops by itself.

    Raises:
        TimeoutError: they were not done after a minute.
    """
    before, began = processor_seconds(server.pid), perf_counter()
    async with asyncio.timeout(AT_MOST):
        readers = await asyncio.gather(*(_one(server.url, number) for number in range(SESSIONS)))
    took, used = perf_counter() - began, processor_seconds(server.pid) - before
    opened = sorted(times[0] for times in readers)
    changed = sorted(time for times in readers for time in times[1:])
    return [
        Row(PART, "first page, half of them within", _share(opened, 0.5), "ms", 15, opened[0], opened[-1]),
        Row(PART, "head or sentence changed, p50", _share(changed, 0.5), "ms", 15, changed[0], changed[-1]),
        Row(PART, "head or sentence changed, p95", _share(changed, 0.95), "ms", 15, changed[0], changed[-1]),
        Row(PART, "cores kept busy by the server, mean", used / took, "cores"),
    ]


async def _one(url: str, number: int) -> list[float]:
    """Open a session and change things; the times of the first page and of each change, in milliseconds."""
    chance = random.Random(number)
    async with reader(url) as session:
        await asyncio.sleep(chance.uniform(0, 1))
        times = [(await session.open()).milliseconds]
        for change in range(CHANGES):
            await asyncio.sleep(chance.uniform(*THINKING))
            times.append(await _changed(session, chance, number * CHANGES + change))
    return times


async def _changed(session: Reader, chance: random.Random, number: int) -> float:
    if chance.random() < 0.5:
        reply = await session.type("sentence", sentence(15, number))
    else:
        reply = await session.pick("grid", {"layer": chance.randrange(6), "head": chance.randrange(12)})
    return reply.milliseconds


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
