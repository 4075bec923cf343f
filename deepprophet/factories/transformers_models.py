"""``transformers:NAME``: a model of the library transformers, with random weights. Needs PyTorch and transformers.

NAME is a type of model (``vit``), one with a size (``vit-tiny``), a ``config.json`` or its folder, or a name in the
library's local cache. Nothing is loaded over the network, and no code from a folder is run. The model has shapes and no
values (PyTorch's ``meta`` device), so that one of any size is there at once.
"""

from __future__ import annotations

import difflib
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from deepprophet import collector
from deepprophet.errors import InputError
from deepprophet.factories import example_batches, sizes
from deepprophet.factories.config_values import parts, renamed, values
from deepprophet.factories.functions import told
from deepprophet.graph.subject import Subject, subject

BATCH_SIZE = 8
"""An example batch has this size where none is asked for."""

META = torch.device("meta")

TASKS = (
    "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "MASKED_LM", "CAUSAL_LM", "IMAGE_CLASSIFICATION",
    "VIDEO_CLASSIFICATION", "AUDIO_CLASSIFICATION", "SEMANTIC_SEGMENTATION", "ZERO_SHOT_IMAGE_CLASSIFICATION",
    "TIME_SERIES_PREDICTION", "TIME_SERIES_CLASSIFICATION", "OBJECT_DETECTION", "DEPTH_ESTIMATION", "IMAGE_TO_IMAGE",
)  # fmt: skip
"""A type of model is trained for the first of these tasks that the library has a class for."""


def load(name: str, batch_size: int | None, length: int | None, device: torch.device = META) -> Subject:
    """Return the model of ``NAME`` or ``NAME:CLASS`` with a batch of random numbers. Raises InputError.

    ``length``: the tokens of an example. ``device``: where the weights are; only on ``meta`` they cost nothing.
    """
    path = f"transformers:{name}"
    if find_spec("transformers") is None:
        raise InputError(f"{path}: transformers is not installed in this environment: pip install transformers")
    given, _, class_name = name.partition(":")
    try:
        with warnings.catch_warnings(), collector.paused():
            warnings.simplefilter("ignore")
            import transformers  # noqa: PLC0415 - it may be missing

            transformers.logging.set_verbosity_error()
            config = _config(transformers, given)
            return of_config(config, class_name, batch_size or BATCH_SIZE, length, device, path=path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:  # whatever the library raises for a configuration
        raise InputError(f"{path}: {told(error)}") from error


def of_config(
    config: Any, class_name: str, batch_size: int, length: int | None, device: torch.device, *, path: str
) -> Subject:
    """Return the model of a configuration with a batch of random numbers. Raises InputError, and what the library does.

    ``class_name``: its class; empty: that of the configuration, or of the first task that there is.
    """
    import transformers  # noqa: PLC0415 - it may be missing

    notes = _settled(config)
    model = _model(_class(transformers, config, class_name), config, device)
    batch = example_batches.batch(model, config, batch_size, length)
    return replace(subject((model, batch), path), notes=tuple(notes))


def _config(library: Any, name: str) -> Any:
    """Return the configuration of a file, a folder, a type of model, or a name in the local cache."""
    types = library.CONFIG_MAPPING
    stem, size = sizes.named(name)
    if not name:
        raise InputError("it must be transformers:NAME, such as transformers:vit-tiny or transformers:config.json")
    if _is_there(Path(name)):
        return library.AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    if name in types:
        return types[name]()
    if size is not None and stem in types:
        return _sized(types[stem], size, stem)
    try:
        return library.AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        near = difflib.get_close_matches(stem, list(types), n=5)
        like = f"; like it are {', '.join(near)}" if near else ""
        raise InputError(
            f"no type of model{like}, no config.json and not in the local cache; name a config.json, which the "
            "model's page has"
        ) from error


def _is_there(path: Path) -> bool:
    """Return whether a path has a configuration; a folder may have the name of a type of model by chance."""
    return path.is_file() or (path / "config.json").is_file()


def _sized(kind: Any, size: sizes.Size, name: str) -> Any:
    default = kind()
    new: dict[str, Any] = renamed(kind, sizes.changes(values(default), size))
    for part, value in parts(default):
        if changed := sizes.changes(values(value), size):
            new[part] = {"model_type": value.model_type, **renamed(type(value), changed)}
    if not new:
        raise InputError(f"{name} has no one width that a size could change; leave the size out, or name a config.json")
    return kind(**new)


def _settled(config: Any) -> list[str]:
    """Set what a training sets, and what a trace needs; return what a reader must know of that."""
    notes = []
    for part in (config, *(part for _, part in parts(config))):
        if getattr(part, "use_cache", False):
            part.use_cache = False
        for name, value in list(vars(part).items()):
            if "layerdrop" in name and isinstance(value, float) and value > 0:
                setattr(part, name, 0.0)
                notes.append(f"{name} is 0 here, not {value:g}: a prediction knows no chance")
        if getattr(part, "apply_spec_augment", False):
            part.apply_spec_augment = False
            notes.append("apply_spec_augment is off here: which parts of the sound it masks is chance")
    if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
        # Labels become the decoder's inputs behind this token. Files of trained models name one; which, costs nothing.
        config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0
    return notes


def _class(library: Any, config: Any, name: str) -> Any:
    """Return the class of a name, of the configuration's own architectures, or of the first task that there is."""
    if name:
        if not _is_model(named := getattr(library, name, None)):
            raise InputError(f"transformers has no class {name} of models")
        return named
    for own in config.architectures or ():
        # A file may name anything.
        if _is_model(named := getattr(library, own, None)):
            return named
    from transformers.models.auto import modeling_auto as auto  # noqa: PLC0415 - with the library itself

    for names in (*(f"MODEL_FOR_{task}_MAPPING_NAMES" for task in TASKS), "MODEL_MAPPING_NAMES"):
        found = getattr(auto, names, {}).get(config.model_type)
        if found is not None:
            return getattr(library, found if isinstance(found, str) else found[0])
    raise InputError(f"transformers has no class that trains {config.model_type}; say it: transformers:NAME:CLASS")


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, torch.nn.Module)


def _model(kind: Any, config: Any, device: torch.device) -> torch.nn.Module:
    try:
        with device:
            model: torch.nn.Module = kind(config)
    except Exception:
        if device != META:
            raise
        # Few classes compute with values while they are made.
        model = kind(config)
    return model
