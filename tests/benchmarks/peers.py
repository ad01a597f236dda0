"""What a page of bertviz, a common viewer for notebooks, weighs for the same attention: 12 × 12 heads.

It is installed for this benchmark alone, beside the app, and run in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.rows import Row
from tests.conftest import ROOT

PART = "bertviz"
LENGTHS = (64, 128, 256)
FOLDER = Path(sys.prefix) / "peers"
WANTED = Path(__file__).parent / "requirements.txt"
SCRIPT = """
import json, sys, time, torch
from bertviz import head_view
tokens = int(sys.argv[1])
attention = torch.softmax(torch.randn(12, 1, 12, tokens, tokens), dim=-1)
start = time.perf_counter()
page = head_view(list(attention), [f"word{n}" for n in range(tokens)], html_action="return")
print(json.dumps({"bytes": len(page.data.encode()), "seconds": time.perf_counter() - start}))
"""


def pages() -> list[Row]:
    """Build its page at several lengths; what cannot be installed is said instead of measured."""
    if not _installed():
        return [Row(PART, "left out: it could not be installed", 0.0, "pages")]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    rows = []
    for tokens in LENGTHS:
        command = [sys.executable, "-c", SCRIPT, str(tokens)]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        rows.append(Row(PART, "page of 12 × 12 heads, size", found["bytes"] / 1e6, "MB", tokens))
        rows.append(Row(PART, "page of 12 × 12 heads, time to build", found["seconds"], "s", tokens))
    return rows


def _installed() -> bool:
    if (FOLDER / "bertviz").is_dir():
        return True
    # Its own needs are the app's, but for IPython; boto3 and others serve parts that are not used here.
    viewer, notebook = (line for line in WANTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(FOLDER)]
    return all(
        subprocess.run([*pip, *wanted], check=False).returncode == 0 for wanted in ((notebook,), ("--no-deps", viewer))
    )
