"""How much memory this process has held at most, on Linux, and forgetting it."""

from __future__ import annotations

from pathlib import Path


def forget_peaks() -> None:
    """Let the peak begin again at what is held now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """Say what was held at most since the last time it was forgotten, in bytes."""
    return _status("VmHWM")


def held_bytes() -> int:
    """Say what is held now, in bytes."""
    return _status("VmRSS")


def free_bytes() -> int:
    """Say what the machine has left, in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("This system does not say how much memory is left.")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"This system does not say {name}.")
