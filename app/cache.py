"""What all sessions share: one copy of each model, and the traces and arrays made last, both bounded.

Nothing here belongs to a session. Keys are ids and text; values are never changed by who reads them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import streamlit as st

from app.cost_bench import Bench
from app.train_queue import Trainer
from engine import Entry, Mask, Model, ModelError, Policy, Trace, load, models
from engine.interventions import Silence
from engine.shipped import SHIPPED

MODELS_KEPT = 3
BYTES_KEPT = 600_000_000

T = TypeVar("T")


@dataclass
class Store:
    """Values by key, the least recently used thrown out beyond a number of bytes.

    Two who ask for the same missing value wait for one computation of it.
    """

    limit: int
    _held: OrderedDict[Hashable, tuple[Any, int]] = field(default_factory=OrderedDict)
    # A lock lives as long as somebody makes the value or waits for it.
    _making: WeakValueDictionary[Hashable, threading.Lock] = field(default_factory=WeakValueDictionary)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        with self._lock:
            return sum(size for _, size in self._held.values())

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of `key`, making it when it is not there; a failure is not kept."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key][0]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._held:
                    return self._held[key][0]
            value = make()
            self._keep(key, value, size(value))
            return value

    def _keep(self, key: Hashable, value: Any, size: int) -> None:
        with self._lock:
            self._held[key] = (value, size)
            total = sum(held for _, held in self._held.values())
            while total > self.limit and len(self._held) > 1:
                total -= self._held.popitem(last=False)[1][1]


@st.cache_resource(show_spinner=False)
def _store() -> Store:
    return Store(BYTES_KEPT)


@st.cache_resource(show_spinner=False)
def policy() -> Policy:
    """What the operator of this app allows to be loaded."""
    return Policy.from_environment()


@st.cache_resource(show_spinner=False, ttl=60)
def entries() -> tuple[Entry, ...]:
    """The models that can be picked now; looked up again once a minute."""
    return tuple(entry for entry in models(policy()) if entry.available)


def model(name: str) -> Model:
    """Load a model of the list, once for everybody; of the large ones the least recently used is dropped beyond three.

    Raises:
        ModelError: it is not in the list, or cannot be loaded.
    """
    return _small(name) if name in SHIPPED else large(name)


@st.cache_resource(max_entries=MODELS_KEPT, show_spinner="Loading the model …")
def large(name: str) -> Model:
    """Load a model that does not come with the app; see `model`."""
    return _loaded(name)


@st.cache_resource(max_entries=len(SHIPPED), show_spinner="Loading the model …")
def _small(name: str) -> Model:
    return _loaded(name)


def _loaded(name: str) -> Model:
    if name not in {entry.id for entry in entries()}:
        known = ", ".join(entry.id for entry in entries()) or "none: see the README on how to install one"
        raise ModelError(f"There is no model {name!r} here. There is: {known}.")
    device = os.environ.get("ATTENTION_EXPLORER_DEVICE", "auto")
    dtype = os.environ.get("ATTENTION_EXPLORER_DTYPE", "float32")
    return load(name, device=device, dtype=dtype, policy=policy())


def trace(name: str, sentence: str, mask: Mask, target: str = "", silence: str = "") -> Trace:
    """Run a model on a sentence, or fetch the trace of the same run made before.

    A target is for an encoder–decoder; other models do without. A head is silenced that `silence` names.

    Raises:
        EngineError: the model cannot be loaded or cannot read this, or has no such head.
    """
    loaded = model(name)
    wanted = target.strip() or None if "cross" in loaded.card.kinds else None
    key = ("trace", name, sentence, mask, wanted, silence)
    done = silences(silence)
    return _store().get(
        key, lambda: loaded.run(sentence, target=wanted, mask=mask, interventions=done), lambda made: made.nbytes
    )


def silences(silence: str) -> tuple[Silence, ...]:
    """Read which head a view silences: one or none."""
    return (Silence.parse(silence),) if silence else ()


def derived(key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
    """Keep what was computed from a trace, under a key that names the trace and the choices."""
    return _store().get(("derived", key), make, size)


@st.cache_resource(show_spinner=False)
def bench() -> Bench:
    """The one place where measurements are made, whoever asks; it holds the last one's few points."""
    return Bench()


@st.cache_resource(show_spinner=False)
def trainer() -> Trainer:
    """The one place where models are trained while somebody watches, whoever asks."""
    return Trainer()
