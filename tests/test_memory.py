"""What is free and what was taken, read from a system that a test writes."""

import os
import sys
from pathlib import Path

import pytest

from engine import ResourceError
from engine import _memory as memory
from engine._memory import free_bytes, peak_bytes


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system that says what a test writes: 8 GB are free on the machine, and it knows no groups yet."""
    monkeypatch.setattr(memory, "KERNEL", tmp_path / "proc")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable:    8000000 kB\n")
    return tmp_path


def group(folder: Path, limit: str, used: int, files: int = 0, version: int = 2) -> None:
    """Write what a control group says about memory."""
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip((*names, "memory.stat"), (limit, str(used), f"anon 5\ninactive_file {files}\n"), strict=True):
        (folder / name).write_text(f"{text}\n")


def test_what_is_free_is_what_the_machine_says(system: Path):
    assert free_bytes("cpu") == 8_192_000_000


def test_a_container_has_no_more_than_its_limit(system: Path):
    """At its root, and what files only happen to take is given up when it is needed."""
    (system / "proc" / "self" / "cgroup").write_text("0::/\n")
    group(system / "groups", str(2**30), 2**29, files=2**20)
    assert free_bytes("cpu") == 2**29 + 2**20


def test_no_limit_limits_nothing(system: Path):
    (system / "proc" / "self" / "cgroup").write_text("0::/\n")
    group(system / "groups", "max", 2**29)
    assert free_bytes("cpu") == 8_192_000_000


def test_the_narrowest_group_above_decides(system: Path):
    """A service in a slice: each may have a limit of its own."""
    (system / "proc" / "self" / "cgroup").write_text("0::/slice/service\n")
    group(system / "groups" / "slice", str(2**31), 2**31 - 5000)
    group(system / "groups" / "slice" / "service", str(2**30), 0)
    assert free_bytes("cpu") == 5000


def test_groups_of_the_first_version_count_too(system: Path):
    """Where memory has a tree of its own, and no limit is a very large number."""
    (system / "proc" / "self" / "cgroup").write_text("3:cpu:/\n2:memory:/app\n")
    group(system / "groups" / "memory", str(2**63 - 4096), 10**9, version=1)
    assert free_bytes("cpu") == 8_192_000_000
    group(system / "groups" / "memory" / "app", str(10**9), 10**9 + 5, version=1)
    assert free_bytes("cpu") == 0


def test_a_system_without_lists_is_taken_to_have_half_its_memory_free(system: Path, monkeypatch: pytest.MonkeyPatch):
    """As on a Mac: it says how much it has."""
    (system / "proc" / "meminfo").unlink()
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__)
    assert free_bytes("cpu") == 2_048_000
    monkeypatch.delattr(os, "sysconf")
    with pytest.raises(ResourceError, match="does not say how much memory it has"):
        free_bytes("cpu")


def test_a_peak_comes_from_the_system_in_bytes(system: Path, monkeypatch: pytest.MonkeyPatch):
    """From Linux's list; elsewhere in kilobytes, on a Mac in bytes."""
    resource = pytest.importorskip("resource")
    usage = type("Usage", (), {"ru_maxrss": 7000})
    monkeypatch.setattr(resource, "getrusage", lambda who: usage)
    monkeypatch.setattr(sys, "platform", "freebsd")
    assert peak_bytes("cpu") == 7000 * 1024
    monkeypatch.setattr(sys, "platform", "darwin")
    assert peak_bytes("cpu") == 7000
    (system / "proc" / "self" / "status").write_text("VmRSS:\t 3 kB\nVmHWM:\t   5 kB\n")
    assert peak_bytes("cpu") == 5 * 1024
