"""Everything that can go wrong in the engine, in sentences fit for a reader of the page."""


class EngineError(Exception):
    """Any failure of the engine; its message names the offending value and what to do."""


class TextError(EngineError):
    """The text cannot be given to a model: it is empty, or holds nothing to attend to."""


class MaskError(EngineError):
    """A mask that does not fit: a window of zero, lengths that do not add up, a name unknown."""


class InterventionError(EngineError):
    """A change to a running model that cannot be made: a head that is not there, attention that is not ours."""


class ShapeError(EngineError):
    """Tensors or indices whose shapes do not fit each other."""


class ModelError(EngineError):
    """A model that cannot be had: unknown, not allowed, missing, broken or mismatched."""


class CaptureError(EngineError):
    """A run whose attention could not be recorded the way its model was probed."""


class ResourceError(EngineError):
    """The machine has no room for a run: a shorter text or a smaller model is needed."""
