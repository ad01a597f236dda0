"""How much memory is free, and how much a process has taken at most: what the system itself says."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from engine.errors import ResourceError

KERNEL = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
# Where a system does not say what is free, this share of all its memory is taken to be.
GUESSED_FREE = 0.5


def free_bytes(device: str) -> int:
    """Say how many bytes can still be had, containers' limits included.

    Args:
        device: "cpu" or "cuda", with a number or without.

    Returns:
        Bytes, 0 at least.

    Raises:
        ResourceError: the system does not say how much memory it has.
    """
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    return max(0, min([_machine(), *_groups()]))


def peak_bytes(device: str) -> int:
    """Say how many bytes this process has held at most: in all, or on a GPU.

    Raises:
        ResourceError: the system does not keep count.
    """
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device)
    if (peak := _line(KERNEL / "self" / "status", "VmHWM:")) is not None:
        return peak  # what getrusage calls the peak on Linux begins with the parent's
    try:
        import resource  # not everywhere: Windows has none
    except ImportError as error:
        raise ResourceError(f"{sys.platform} does not say how much memory a process has taken.") from error
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak(device: str) -> None:
    """Count the peak from now on, where the system can; elsewhere it stays what it was."""
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        (KERNEL / "self" / "clear_refs").write_text("5")
    except OSError:
        return


def give_back() -> None:
    """Return to the system what was freed and is only kept in case it is needed again, where the system can."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _machine() -> int:
    if (free := _line(KERNEL / "meminfo", "MemAvailable:")) is not None:
        return free
    try:
        return int(GUESSED_FREE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError) as error:
        raise ResourceError(f"{sys.platform} does not say how much memory it has.") from error


def _line(file: Path, name: str) -> int | None:
    """Read a number of kilobytes from one of the kernel's lists, in bytes; None where there is no such list."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), None)


def _groups() -> Iterator[int]:
    """Give what is left in each control group that this process belongs to, of either version, its parents' too."""
    try:
        own = (KERNEL / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for entry in own:
        _, controllers, path = entry.split(":", 2)
        if controllers in ("", "memory"):
            root = GROUPS / controllers
            names = ("memory.max", "memory.current") if not controllers else _FIRST_VERSION
            folder = root / path.lstrip("/")
            yield from _left(root, *names)
            while folder != root and root in folder.parents:
                yield from _left(folder, *names)
                folder = folder.parent


_FIRST_VERSION = ("memory.limit_in_bytes", "memory.usage_in_bytes")


def _left(folder: Path, limit: str, used: str) -> Iterator[int]:
    try:
        most, taken = (folder / limit).read_text().strip(), int((folder / used).read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):
        return
    if most.isdigit():  # otherwise "max": no limit
        files = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file")), 0)
        yield int(most) - taken + files  # copies of files are given up when memory is needed
