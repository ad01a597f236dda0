"""Starting Python beside the app: a process that reads only the parts of the engine that it needs."""

from __future__ import annotations

# Reading the whole engine takes seconds, so its parts are read as those of a bare package. The first argument of the
# process is the engine's folder.
_CODE = """
import sys, types
engine = types.ModuleType("engine")
engine.__path__ = [sys.argv[1]]
sys.modules["engine"] = engine
from {module} import main
main()
"""


def code_of(module: str) -> str:
    """Write the code that runs `main` of a part of the engine, such as "engine._measured"."""
    return _CODE.format(module=module)


def last_words(code: int, complaints: str) -> str:
    """Say why a process failed: the last line of its complaints or, without any, its exit code."""
    return (complaints.strip().splitlines() or [f"exit code {code}"])[-1]
