"""The science of Attention Explorer, usable without a browser: `from engine import load, Mask`."""

from engine.attention import attend, attention_weights
from engine.audit import Audit
from engine.blocks import Cache
from engine.card import Card
from engine.catalogue import Entry, Policy, load, models
from engine.config import Config
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
from engine.model import Model
from engine.presets import PRESETS, Preset, build, count_parameters, preset
from engine.recording import recording
from engine.scratch import ScratchModel, untrained
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token, Word, group_words, pool_words
from engine.trace import Trace
from engine.transformer import (
    Decoder,
    Encoder,
    EncoderDecoder,
    TextClassifier,
    VisionTransformer,
    sentence_embedding,
)
from engine.vocabulary import number_words

__all__ = [
    "PRESETS",
    "Audit",
    "Cache",
    "CaptureError",
    "Card",
    "Config",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "EngineError",
    "Entry",
    "HuggingFaceModel",
    "Kind",
    "Mask",
    "MaskError",
    "Model",
    "ModelError",
    "Policy",
    "Preset",
    "Prompt",
    "ResourceError",
    "ScratchModel",
    "ShapeError",
    "Site",
    "TextClassifier",
    "TextError",
    "Token",
    "Trace",
    "VisionTransformer",
    "Word",
    "attend",
    "attention_entropy",
    "attention_weights",
    "build",
    "count_parameters",
    "group_words",
    "load",
    "models",
    "number_words",
    "pool_words",
    "preset",
    "recording",
    "sentence_embedding",
    "untrained",
]
