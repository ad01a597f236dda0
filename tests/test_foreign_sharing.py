"""What layers share while a foreign mask is imposed on them, and what they must not."""

import torch

from engine import Mask, Site, attend, recording


def test_layers_share_one_tensor_of_an_imposed_mask() -> None:
    """A window over many layers must not be held once for each of them."""
    q = torch.randn(1, 2, 5, 4)
    with recording(Mask.window(2)) as recorder:
        for layer in range(3):
            attend(Site("encoder", layer), q, q, q)
    tensors = {id(held.call.visibility.tensor) for held in recorder.recorded.values()}
    assert len(tensors) == 1
    assert recorder.recorded[Site("encoder", 0)].call.visibility.tensor is not None


def test_layers_with_other_masks_of_their_own_share_nothing() -> None:
    """An imposed mask joined to the native one depends on what each layer's own mask is."""
    q = torch.randn(1, 2, 5, 4)
    with recording(Mask.native() & Mask.blocking([(0, 1)])) as recorder:
        attend(Site("encoder", 0), q, q, q)
        attend(Site("encoder", 1), q, q, q, mask=Mask.causal())
    first, second = (recorder.recorded[Site("encoder", layer)].visible(0) for layer in (0, 1))
    assert first is not None
    assert second is not None
    assert int(first.sum()) == 24
    assert int(second.sum()) == 15
