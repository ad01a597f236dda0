"""What sessions share: bounded by bytes, computed once however many ask, failures not kept."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import cache
from app.cache import Store
from engine import Mask, ModelError
from tests.app_pages import operator_allows
from tests.tiny_models import save

SENTENCE = "The cat sat on the mat"


def kept(store: Store, *keys: str) -> list[str]:
    """Say which keys are still held, without touching their order: a held value is not made again."""
    return [key for key in keys if key in store._held]


def put(store: Store, key: str, size: int = 10) -> str:
    """Ask for a value whose size is given."""
    return store.get(key, lambda: f"value of {key}", lambda made: size)


def test_a_value_is_made_once_and_then_held():
    """The second who asks gets the same object."""
    store = Store(limit=100)
    first = store.get("a", lambda: np.zeros(3), lambda made: made.nbytes)
    assert store.get("a", lambda: pytest.fail("made twice"), lambda made: 0) is first
    assert store.nbytes == 24


def test_the_least_recently_used_goes_first():
    """Looking at a value makes it recent."""
    store = Store(limit=30)
    for key in "abc":
        put(store, key)
    put(store, "a")
    put(store, "d")
    assert kept(store, *"abcd") == ["a", "c", "d"]
    assert store.nbytes == 30


def test_one_large_value_drives_out_many_small_ones():
    """The bound is on bytes, not on how many there are."""
    store = Store(limit=30)
    for key in "abc":
        put(store, key)
    put(store, "d", size=25)
    assert kept(store, *"abcd") == ["d"]


def test_a_value_beyond_the_bound_is_held_alone_until_the_next():
    """What was just made must be usable, however large."""
    store = Store(limit=30)
    put(store, "a")
    put(store, "b", size=1000)
    assert kept(store, "a", "b") == ["b"]
    put(store, "c")
    assert kept(store, "a", "b", "c") == ["c"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 40)), max_size=40))
def test_the_bound_holds_after_every_request(asked: list[tuple[str, int]]):
    """Never more bytes than allowed, unless a single value is larger than that."""
    store = Store(limit=60)
    for key, size in asked:
        put(store, key, size)
        assert store.nbytes <= 60
        assert key in store._held


def test_many_who_ask_at_once_wait_for_one_computation():
    """Thirty threads, one run of the model."""
    store, made, everybody = Store(limit=100), [], threading.Barrier(30)

    def make() -> object:
        made.append(threading.get_ident())
        threading.Event().wait(0.05)
        return object()

    def ask(_: int) -> object:
        everybody.wait()
        return store.get("a", make, lambda value: 10)

    with ThreadPoolExecutor(30) as pool:
        values = set(pool.map(ask, range(30)))
    assert len(made) == 1
    assert len(values) == 1


def test_nobody_slips_in_between_making_and_keeping():
    """Who asks while the finished value is being weighed waits for it, and does not make another."""
    store, weighing, made = Store(limit=100), threading.Event(), []

    def make() -> object:
        made.append(1)
        return object()

    def weigh(_: object) -> int:
        weighing.set()
        threading.Event().wait(0.1)
        return 10

    def ask() -> object:
        return store.get("a", make, weigh)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask)
        weighing.wait()
        second = pool.submit(ask)
        assert first.result() is second.result()
    assert len(made) == 1


def test_two_different_values_are_made_side_by_side():
    """A long run of one sentence holds up nobody who asks for another."""
    store, both = Store(limit=100), threading.Barrier(2, timeout=10)

    def make() -> int:
        return both.wait()

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(lambda key: store.get(key, make, lambda value: 1), "ab")) == {0, 1}


def test_a_failure_reaches_who_asked_and_is_not_kept():
    """The next try makes the value; nothing is left locked."""
    store = Store(limit=100)

    def fail() -> None:
        raise ModelError("broken")

    for _ in range(2):
        with pytest.raises(ModelError, match="broken"):
            store.get("a", fail, lambda made: 1)
    assert store.nbytes == 0
    assert put(store, "a") == "value of a"
    assert not store._making


def test_who_waited_for_a_failure_tries_for_himself():
    """One session's failed run doesn't fail the others'."""
    store, started, calls = Store(limit=100), threading.Event(), []

    def make() -> str:
        calls.append(1)
        started.set()
        threading.Event().wait(0.05)
        if len(calls) == 1:
            raise ModelError("broken")
        return "made"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(store.get, "a", make, len)
        started.wait()
        second = pool.submit(store.get, "a", make, len)
        assert isinstance(first.exception(), ModelError)
        assert second.result() == "made"


def test_a_run_is_made_once_for_all_sessions():
    """The same model, sentence and mask are the same trace; another mask is another."""
    first = cache.trace("minilm", SENTENCE, Mask.native())
    assert cache.trace("minilm", SENTENCE, Mask.native()) is first
    assert cache.trace("minilm", SENTENCE, Mask.causal()) is not first


def test_a_model_without_a_decoder_takes_no_notice_of_a_target():
    """What stood there for an encoder–decoder does no harm, and makes no second run."""
    assert cache.trace("minilm", SENTENCE, Mask.native(), "the mat") is cache.trace("minilm", SENTENCE, Mask.native())


def test_a_model_is_loaded_once_however_many_ask():
    """One copy in memory."""
    with ThreadPoolExecutor(8) as pool:
        assert len({id(model) for model in pool.map(cache.model, ["minilm"] * 8)}) == 1


def test_no_more_than_three_models_are_kept(tmp_path: Path):
    """A fourth drives out the one used longest ago."""
    for name in "abcd":
        save("bert", tmp_path / name)
    with operator_allows(tmp_path):
        first = cache.model(str(tmp_path / "a"))
        assert cache.model(str(tmp_path / "a")) is first
        for name in "bcd":
            cache.model(str(tmp_path / name))
        assert cache.model(str(tmp_path / "a")) is not first


def test_a_model_that_is_not_offered_is_refused_by_name():
    """A link can't load what the operator didn't allow."""
    with pytest.raises(ModelError, match=r"There is no model '/etc' here\. There is: twin-encoder, .*, minilm"):
        cache.model("/etc")
