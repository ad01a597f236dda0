"""The science of Attention Explorer, usable without a browser: `from engine import load, Mask`."""

from engine.attention import attend, attention_weights
from engine.audit import Audit
from engine.card import Card
from engine.catalogue import Entry, Policy, load, models
from engine.errors import (
    CaptureError,
    EngineError,
    MaskError,
    ModelError,
    ResourceError,
    ShapeError,
    TextError,
)
from engine.huggingface import HuggingFaceModel
from engine.masks import Mask
from engine.measures import attention_entropy
from engine.recording import recording
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token, Word, group_words, pool_words
from engine.trace import Trace

__all__ = [
    "Audit",
    "CaptureError",
    "Card",
    "EngineError",
    "Entry",
    "HuggingFaceModel",
    "Kind",
    "Mask",
    "MaskError",
    "ModelError",
    "Policy",
    "Prompt",
    "ResourceError",
    "ShapeError",
    "Site",
    "TextError",
    "Token",
    "Trace",
    "Word",
    "attend",
    "attention_entropy",
    "attention_weights",
    "group_words",
    "load",
    "models",
    "pool_words",
    "recording",
]
