"""A model and its batch on tensors without values: of other types, devices and batch sizes. Needs PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from deepprophet.graph.subject import Batch


def convert(model: torch.nn.Module, kind: torch.dtype, device: torch.device) -> None:
    """What ``model.to(device, kind)`` does; that does not take tensors without values."""
    converted: dict[int, Any] = {}
    for module in model.modules():
        for name, tensor in [*module._parameters.items(), *module._buffers.items(), *_unregistered(module)]:
            own = kind if tensor is not None and tensor.is_floating_point() else None
            if tensor is None or (tensor.device == device and own in (None, tensor.dtype, torch.float32)):
                continue
            if id(tensor) not in converted:
                new = _moved(tensor, tensor.dtype if own in (None, torch.float32) else own, device)
                trained = isinstance(tensor, torch.nn.Parameter)
                # The old one is kept too, so that its identity does not come again.
                converted[id(tensor)] = (torch.nn.Parameter(new, tensor.requires_grad) if trained else new, tensor)
            setattr(module, name, converted[id(tensor)][0])


def _unregistered(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Tensors that a module made without values holds beside its parameters and buffers."""
    return [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, torch.Tensor) and value.device.type == "meta"
    ]


def _moved(tensor: torch.Tensor, kind: torch.dtype, device: torch.device) -> torch.Tensor:
    if tensor.device.type == "meta":
        # It has no values that could be copied.
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=kind, device=device)
    return tensor.detach().to(device=device, dtype=kind)


def buffer_bytes(model: torch.nn.Module) -> tuple[int, ...]:
    """Return the bytes of what is not trained, by type of number."""
    sizes: dict[torch.dtype, int] = {}
    for buffer in model.buffers():
        sizes[buffer.dtype] = sizes.get(buffer.dtype, 0) + buffer.numel() * buffer.element_size()
    return tuple(size for size in sizes.values() if size)


def resized(batch: Batch, was: int, size: int, kind: torch.dtype, device: torch.device) -> Batch:
    """Return the batch with ``size`` examples instead of ``was``, of a type of number, on a device."""

    def resize(tensor: torch.Tensor) -> torch.Tensor:
        if size != was and tensor.dim() > 0 and tensor.shape[0] == was:
            tensor = tensor.new_empty((size, *tensor.shape[1:]))
        tensor = tensor.to(device)
        return tensor.to(kind) if tensor.is_floating_point() and kind is not torch.float32 else tensor

    return batch.each(resize)
