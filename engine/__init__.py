"""The science of Attention Explorer, usable without a browser: `from engine import load, Mask`."""

from engine.attention import attend, attention_weights
from engine.audit import Audit
from engine.blocks import Cache
from engine.card import Card, Entry
from engine.catalogue import Policy, load, models
from engine.config import Config
from engine.errors import (
    CaptureError,
    EngineError,
    InterventionError,
    MaskError,
    ModelError,
    ResourceError,
    ShapeError,
    TextError,
)
from engine.huggingface import HuggingFaceModel
from engine.interventions import Silence
from engine.masks import Mask
from engine.measures import attention_entropy, attention_mass, attention_rollout
from engine.model import Model
from engine.predicting import Guess, Prediction
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
from engine.vision import VisionModel
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
    "Guess",
    "HuggingFaceModel",
    "InterventionError",
    "Kind",
    "Mask",
    "MaskError",
    "Model",
    "ModelError",
    "Policy",
    "Prediction",
    "Preset",
    "Prompt",
    "ResourceError",
    "ScratchModel",
    "ShapeError",
    "Silence",
    "Site",
    "TextClassifier",
    "TextError",
    "Token",
    "Trace",
    "VisionModel",
    "VisionTransformer",
    "Word",
    "attend",
    "attention_entropy",
    "attention_mass",
    "attention_rollout",
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
