"""Measure speed and size: `python -m tests.benchmarks [part ...]`, everything by default.

Prints a table and writes the same as JSON. Nothing here passes or fails: a machine that others share says little
about the code in one run. Ratios are of things timed in turns within one run, so they hold better.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.rows import Row, as_json, machine, table
from tests.conftest import ROOT, streamlit_server

RESULTS = Path(__file__).parent / "results.json"


def main() -> int:
    """Run what was asked for, everything by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="part", help=", ".join(PARTS))
    parser.add_argument("--json", type=Path, default=RESULTS, help="where to write (%(default)s)")
    asked = parser.parse_args()
    where, rows = machine(), []
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    for part in asked.parts or PARTS:
        print(f"{part} ...", file=sys.stderr)
        rows += PARTS[part]()
    print(table(rows))
    asked.json.write_text(json.dumps(as_json(rows, where), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {asked.json}")
    return 0


def _engine() -> list[Row]:
    from tests.benchmarks.engine import costs

    return costs()


def _server() -> list[Row]:
    from tests.benchmarks.server import reruns

    with tempfile.TemporaryDirectory() as folder, streamlit_server(ROOT / "app" / "main.py", Path(folder)) as app:
        return asyncio.run(reruns(app))


def _sessions() -> list[Row]:
    from tests.benchmarks.sessions import load

    with tempfile.TemporaryDirectory() as folder, streamlit_server(ROOT / "app" / "main.py", Path(folder)) as app:
        return asyncio.run(load(app))


def _browser() -> list[Row]:
    from tests.benchmarks.browser import waits

    return waits()


def _recorded() -> list[Row]:
    from tests.benchmarks.recorded import comparisons

    return comparisons()


def _peers() -> list[Row]:
    from tests.benchmarks.peers import pages

    return pages()


def _gpu() -> list[Row]:
    from tests.benchmarks.gpu import long_texts

    return long_texts()


PARTS: dict[str, Callable[[], list[Row]]] = {
    "engine": _engine,
    "server": _server,
    "sessions": _sessions,
    "browser": _browser,
    "recorded": _recorded,
    "bertviz": _peers,
    "gpu": _gpu,
}

if __name__ == "__main__":
    sys.exit(main())
