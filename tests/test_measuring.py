"""Measured in a process of its own: what it holds, that it is bounded, and that nothing is left of it.

H heads, G key-value heads, T tokens, D head width.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import PRESETS, ResourceError, ShapeError, _plan, measuring
from engine.measuring import KERNELS, Kernel, Measurement, Plan, Point, exponent, fitting, needed_bytes, refusal
from engine.sizes import sizes_of_preset

# As the processes that measure, which run on as many threads as whoever starts them.
torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parent.parent
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's lists of processes")
MEGABYTE = 10**6
SMALL = Plan(heads=4, kv_heads=2, head_width=16, width=64, feed_forward=96, lengths=(64, 128, 256), most_seconds=30.0)
ENDLESS = replace(SMALL, lengths=(16_384,), heads=8, head_width=64, most_seconds=300.0)


def until(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds; say whether it came to hold in time."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    return done()


def lives(pid: int) -> bool:
    """Whether a process is there, a zombie too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children() -> set[int]:
    """The processes that this one has started and not yet heard the end of."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after[1]) == os.getpid():
            found.add(int(entry.parent.name))
    return found


def started(plan: Plan) -> tuple[Measurement, int]:
    """A measurement whose process is there, and the number of that process."""
    measurement = Measurement.start(plan)
    assert until(lambda: measurement._process is not None, 10)
    assert measurement._process is not None
    return measurement, measurement._process.pid


@pytest.fixture(scope="module")
def done() -> Measurement:
    """Attention of a GPT-2-like layer, measured once for all tests, by a parent that holds much more itself."""
    ballast = torch.ones(100 * MEGABYTE)  # 400 MB
    measurement = Measurement.start(Plan.of(sizes_of_preset(PRESETS["gpt2"]), lengths=(128, 256, 512, 1024)))
    assert measurement.wait(60)
    assert ballast.sum() > 0
    return measurement


def of(measurement: Measurement, kernel: Kernel) -> list[Point]:
    """The points of one kernel."""
    return [point for point in measurement.points() if point.kernel == kernel]


def test_every_length_of_every_kernel_becomes_a_point(done: Measurement):
    assert (done.error, done.refused, done.running) == (None, (), False)
    for kernel in KERNELS:
        assert [point.tokens for point in of(done, kernel)] == [128, 256, 512, 1024]
        assert all(point.seconds > 0 and point.runs >= 3 for point in of(done, kernel))


def test_the_peak_is_what_was_predicted(done: Measurement):
    """Of the longest text, to a tenth and what libraries set aside; the memory of who started it is not in it."""
    for kernel in KERNELS:
        longest = of(done, kernel)[-1]
        predicted = needed_bytes(done.plan, kernel, 1024)
        assert 0.9 * predicted < longest.peak_bytes < 1.1 * predicted + 8 * MEGABYTE


def test_eager_holds_the_matrix_and_sdpa_does_not(done: Measurement):
    """12 heads × 1,024² × 4 bytes are 50 MB, twice; q, k, v and the output are 3 MB each."""
    eager, sdpa = (of(done, kernel)[-1].peak_bytes for kernel in ("eager", "sdpa"))
    assert eager > 2 * 12 * 1024**2 * 4
    assert sdpa < 12 * 1024**2 * 4


def test_the_peak_of_the_matrix_grows_with_the_square(done: Measurement):
    """Fitted: near 2 eager and near 1 for SDPA, with its interval around it."""
    eager, sdpa = (exponent(of(done, kernel), "peak_bytes") for kernel in ("eager", "sdpa"))
    assert eager is not None
    assert sdpa is not None
    assert 1.5 < eager.exponent < 2.1
    assert 0.6 < sdpa.exponent < 1.4
    assert eager.low < eager.exponent < eager.high


def test_a_whole_layer_can_be_measured():
    """Under both kernels, with a gate and shared key-value heads; its own weights are not in what it holds."""
    plan = replace(SMALL, what="layer", gated=True, lengths=(64, 512))
    measurement = Measurement.start(plan)
    assert measurement.wait(30)
    assert measurement.error is None
    assert [point.tokens for point in measurement.points()] == [64, 512, 64, 512]
    predicted = needed_bytes(plan, "eager", 512)
    assert 0.9 * predicted < of(measurement, "eager")[-1].peak_bytes < 1.3 * predicted + 4 * MEGABYTE


@LINUX
@pytest.mark.parametrize("after", [0.0, 0.5, 1.8])
def test_cancelling_ends_it_within_two_seconds_and_leaves_nothing(after: float):
    """While the process starts, reads its libraries, or is deep in a matrix of gigabytes."""
    before = children()
    measurement, pid = started(ENDLESS)
    time.sleep(after)
    start = time.monotonic()
    measurement.cancel()
    assert time.monotonic() - start < 2
    assert not measurement.running
    assert not lives(pid)  # not even a zombie
    assert children() <= before
    assert (measurement.error, measurement.points()) == (None, ())
    assert not [thread for thread in threading.enumerate() if thread.name == "measurement"]


def test_cancelling_twice_or_afterwards_does_no_harm(done: Measurement):
    count = len(done.points())
    done.cancel()
    done.cancel()
    assert len(done.points()) == count
    assert done.error is None


@LINUX
@pytest.mark.parametrize("end", ["killed", "at its end"])
def test_it_ends_with_whoever_started_it(end: str):
    """Its input closes with the parent, however that came to its end; nor does it hold up a parent that is through."""
    code = measuring._ALONE.replace(
        "from engine._measured import main\nmain()",
        "import time\n"
        "from engine.measuring import Measurement, Plan\n"
        "plan = Plan(8, 8, 64, 64, 64, lengths=(16_384,), most_seconds=300)\n"
        "measurement = Measurement.start(plan)\n"
        "while measurement._process is None: time.sleep(0.01)\n"
        "print(measurement._process.pid, flush=True)\n"
        f"time.sleep({60 if end == 'killed' else 0.3})",
    )
    command = [sys.executable, "-c", code, str(ROOT / "engine")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert lives(child)
        if end == "killed":
            parent.send_signal(signal.SIGKILL)
        assert parent.wait(10) == (-signal.SIGKILL if end == "killed" else 0)
        assert until(lambda: not lives(child) or _is_zombie(child), 10)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and nobody has asked how; where nothing adopts orphans, that is how they stay."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def test_it_ends_by_itself_when_its_time_is_over():
    """In the middle of a run that would take much longer, and says so; the other kernel has had its share."""
    start = time.monotonic()
    measurement = Measurement.start(replace(ENDLESS, most_seconds=0.6, causal=False))
    assert measurement.wait(25)
    assert time.monotonic() - start < 25
    assert measurement.error is None
    assert [sentence.split(" ")[0] for sentence in measurement.refused] == ["sdpa", "eager"]
    assert "was ended when its 0.3 s were over." in measurement.refused[0]


def test_a_length_that_takes_too_long_or_too_much_is_not_begun():
    """Four times as long for twice the text: what the last took tells. What does not fit is refused where it runs."""
    lengths = tuple(2**power for power in range(6, 15))
    plan = replace(SMALL, lengths=lengths, most_seconds=0.8, most_bytes=needed_bytes(SMALL, "eager", 256) + 1)
    plan = replace(plan, most_bytes=max(needed_bytes(plan, "sdpa", lengths[-1]), needed_bytes(plan, "eager", 256)))
    measurement = Measurement.start(plan)
    assert measurement.wait(25)
    assert measurement.error is None
    late, large = measurement.refused
    assert re.match(r"sdpa (at [\d,]+ tokens would take about [\d.]+ s, and [\d.]+ s are left|was ended when)", late)
    assert 64 < of(measurement, "sdpa")[-1].tokens < 2**14
    assert large == fitting(plan, "eager").refused
    assert of(measurement, "eager")[-1].tokens == fitting(plan, "eager").lengths[-1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_does_not_fit_is_refused_with_both_numbers(kernel: Kernel):
    """Before anything is allocated: neither the limit of a plan nor the memory that is free is passed."""
    plan = replace(SMALL, heads=16, kv_heads=16, lengths=(1024, 2048, 4096))
    plan = replace(plan, most_bytes=needed_bytes(plan, kernel, 2048))
    fit = fitting(plan, kernel)
    assert fit.lengths == (1024, 2048)
    needed, allowed = (needed_bytes(plan, kernel, length) / 1e6 for length in (4096, 2048))
    large = f"{needed / 1e3:,.1f} GB" if needed > 1e3 else f"{needed:,.1f} MB"
    assert fit.refused == (
        f"{kernel} at 4,096 tokens would need {large}, and no more than {allowed:,.1f} MB may be taken."
    )
    assert fitting(SMALL, kernel).refused == ""


def test_more_than_is_free_is_refused(monkeypatch: pytest.MonkeyPatch):
    """A fifth of what is free is left for everybody else."""
    monkeypatch.setattr(_plan, "free_bytes", lambda device: 10 * MEGABYTE)
    fits = [length for length in range(64, 4096, 64) if not refusal(SMALL, "eager", length)]
    assert needed_bytes(SMALL, "eager", fits[-1]) <= 8 * MEGABYTE < needed_bytes(SMALL, "eager", fits[-1] + 64)
    assert refusal(SMALL, "eager", 4096).endswith("and 8.0 MB are free.")


def test_a_measurement_that_could_measure_nothing_does_not_begin():
    before = threading.active_count()
    with pytest.raises(ResourceError, match=r"^Nothing can be measured: sdpa at 64 tokens would need"):
        Measurement.start(replace(SMALL, most_bytes=1000))
    assert threading.active_count() <= before


# What a measurement does with its process, by way of one that is ready at once.
QUICK = """
import sys, json
task = json.loads(sys.stdin.readline())
for tokens in task["plan"]["lengths"]:
    point = dict(kernel=task["kernel"], tokens=tokens, seconds=1.0, peak_bytes=1, runs=3)
    print(json.dumps({"point": point}), flush=True)
"""


def with_code(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let measurements run this instead."""
    monkeypatch.setattr(measuring, "_ALONE", code)


@LINUX
def test_ten_measurements_leave_no_more_than_two(monkeypatch: pytest.MonkeyPatch):
    """Neither memory nor open files, threads or processes."""
    with_code(monkeypatch, QUICK)

    threads = set(threading.enumerate())  # those of earlier tests may end meanwhile, which is no concern here

    def left(times: int) -> tuple[int, int, int]:
        for _ in range(times):
            measurement = Measurement.start(SMALL)
            assert measurement.wait(10)
            assert len(measurement.points()) == 6
        held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
        files = len(list(Path("/proc/self/fd").iterdir()))
        return int(held.split()[1]), files, len(children())

    (memory_early, *early), (memory_late, *late) = left(2), left(8)
    assert late == early
    assert memory_late - memory_early < 8_000  # kB
    assert until(lambda: set(threading.enumerate()) <= threads, 2)


def test_points_can_be_seen_while_more_are_to_come(monkeypatch: pytest.MonkeyPatch):
    with_code(monkeypatch, QUICK + "import time; time.sleep(60)")
    measurement = Measurement.start(SMALL)
    assert until(lambda: len(measurement.points()) == 3, 10)
    assert measurement.running
    measurement.cancel()
    assert len(measurement.points()) == 3


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no such kernel')", "The process that measured eager failed: ValueError: no such kernel"),
        ("import sys; sys.exit(3)", "The process that measured eager failed: exit code 3"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "The process that measured eager was ended from outside: its time was over, or memory ran out.",
        ),
    ],
)
def test_a_process_that_fails_is_an_error_of_one_sentence(monkeypatch: pytest.MonkeyPatch, code: str, said: str):
    """Python's own last line, or how the process ended; never a number alone, and never silence."""
    with_code(monkeypatch, code)
    measurement = Measurement.start(SMALL)
    assert measurement.wait(10)
    assert (measurement.error, measurement.points()) == (said, ())


def test_a_process_that_never_answers_is_ended(monkeypatch: pytest.MonkeyPatch):
    """A little after its time, if it does not end by itself."""
    with_code(monkeypatch, "import time; time.sleep(60)")
    monkeypatch.setattr(measuring, "GRACE_SECONDS", 0.2)
    measurement = Measurement.start(replace(SMALL, most_seconds=0.4))
    assert measurement.wait(10)
    assert "was ended from outside" in str(measurement.error)


def test_it_runs_on_as_many_threads_as_whoever_started_it(monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, Any] = {}
    real = subprocess.Popen

    def watched(*given: Any, **more: Any) -> Any:
        seen.update(more["env"])
        return real(*given, **more)

    with_code(monkeypatch, QUICK)
    monkeypatch.setattr(subprocess, "Popen", watched)
    assert Measurement.start(SMALL).wait(10)
    assert seen["OMP_NUM_THREADS"] == str(torch.get_num_threads())


def test_it_reads_no_more_of_the_engine_than_it_needs():
    """Neither transformers nor the catalogue: those take seconds, and a hundred megabytes."""
    code = measuring._ALONE.replace("main()\n", "print(sorted(sys.modules))")
    told = subprocess.run(
        [sys.executable, "-P", "-c", code, str(ROOT / "engine")], capture_output=True, text=True, check=True, cwd="/"
    )
    assert "'engine._measured'" in told.stdout
    assert "transformers" not in told.stdout
    assert "engine.catalogue" not in told.stdout


def test_needed_bytes_are_the_tensors_that_are_held():
    """By hand, T = 10, D = 16: q and the output 4·10·16 numbers each, k and v 2·10·16, float32 or half of it."""
    plan = replace(SMALL, causal=False)
    linear = 4 * (2 * 640 + 2 * 320)
    assert needed_bytes(plan, "sdpa", 10) == linear
    assert needed_bytes(replace(plan, causal=True), "sdpa", 10) == linear
    assert needed_bytes(plan, "eager", 10) == linear + 4 * (2 * 4 * 100 + 2 * 640)
    assert needed_bytes(replace(plan, kv_heads=4), "eager", 10) == 4 * (4 * 640 + 2 * 4 * 100)
    assert needed_bytes(replace(plan, causal=True), "eager", 10) == needed_bytes(plan, "eager", 10) + 100
    assert needed_bytes(replace(plan, dtype="bfloat16"), "sdpa", 10) == linear // 2


def test_a_plan_takes_a_models_own_sizes():
    llama = Plan.of(sizes_of_preset(PRESETS["llama-3-8b"]), what="layer", lengths=(8, 16))
    assert (llama.heads, llama.kv_heads, llama.head_width, llama.width) == (32, 8, 128, 4096)
    assert (llama.feed_forward, llama.gated, llama.causal, llama.what) == (14_336, True, True, "layer")
    bert = Plan.of(sizes_of_preset(PRESETS["bert-base"]))
    assert (bert.gated, bert.causal, bert.kv_heads) == (False, False, 12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": 0}, "heads is 0; it must be 1 at least."),
        ({"kv_heads": 3}, "4 heads cannot share 3 key-value heads evenly: give a divisor."),
        ({"lengths": (64, 64)}, "The lengths 64, 64 do not grow; the peaks would not be theirs."),
        ({"lengths": ()}, "The lengths  do not grow; the peaks would not be theirs."),
        ({"lengths": (0, 4)}, "The lengths 0, 4 do not grow; the peaks would not be theirs."),
        ({"dtype": "float8"}, "There is no measuring in 'float8'; there is float32, bfloat16, float16."),
        ({"device": "mps"}, "There is no measuring on 'mps'; there is cpu and cuda."),
        ({"what": "model"}, 'What is measured is "attention" or "layer", not \'model\'.'),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes: dict[str, Any], said: str):
    with pytest.raises(ShapeError) as refused:
        replace(SMALL, **changes)
    assert str(refused.value) == said


def test_a_gpu_that_is_not_there_is_no_place_to_measure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ResourceError, match="There is no CUDA device here"):
        Measurement.start(replace(SMALL, device="cuda"))


@pytest.mark.gpu
def test_a_gpu_holds_what_was_predicted():
    """PyTorch's own count there has no other memory in it."""
    plan = replace(SMALL, device="cuda", heads=16, kv_heads=16, head_width=64, lengths=(512, 1024, 4096))
    measurement = Measurement.start(plan)
    assert measurement.wait(60)
    assert measurement.error is None
    for point in measurement.points():
        predicted = needed_bytes(plan, point.kernel, point.tokens)
        assert 0.9 * predicted < point.peak_bytes < 1.5 * predicted + 8 * MEGABYTE
