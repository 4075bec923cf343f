"""What the name of a metric says: which direction is better, and whether it is of the validation. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from host_reporter.formats.events import Direction


def _table(text: str) -> frozenset[str]:
    return frozenset(text.split())


MIN_WORDS = _table(
    "loss losses ppl perplexity error err errors mae mape rmse rmsle mse smape wer cer ter nll bpc bpb bpd "
    "logloss mlogloss merror nloglik cost xent xentropy crossentropy ce kl fid lpips l1 l2 elbo regret edit eer "
    "distortion"
)
"""Words of a metric's name that say that smaller values are better."""

LOSS_WORDS = _table("loss losses nll logloss mlogloss nloglik xent xentropy crossentropy ce")
"""Those of them that are losses, which training lowers."""

MAX_WORDS = _table(
    "acc accuracy accuracies f1 fscore auc auroc auprc aucpr bleu chrf map ap ar miou iou dice precision recall top "
    "rew reward rewards return returns psnr ssim r2 mrr ndcg em score rouge rougel meteor cider mcc kappa success "
    "winrate pearson spearman sensitivity specificity"
)
"""Words of a metric's name that say that larger values are better."""

SIDE_WORDS = _table("aux auxiliary balance balancing router z mtp")
"""Words of a loss's name that say that it stands beside the loss that is trained for."""

WHOLE_WORDS = _table("loss total train training lm reduced mean avg average")
"""The words of the name of the loss that is trained for, where others are its parts: loss beside loss_cls."""

VALIDATION_WORDS = _table("val valid validation eval evaluation test testing dev heldout holdout")
"""Words of a metric's name that say that it is of data that is not trained on."""

NO_METRIC_WORDS = _table(
    "lr learning scale scaler norm gnorm grad weight coef coefficient time seconds sec ms eta speed throughput "
    "memory mem samples tokens wps ups runtime runtimes elapsed count number best params beta alpha "
    "early patience minimum maximum std rank code save modules"
)
"""Words of a name that say that its value does not measure how good the model is."""

_WORD = re.compile(r"[a-z]++\d?|\d++")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Returns the words of a metric's name in lower case: ``val_top5Acc`` gives val, top5, acc."""
    return tuple(_WORD.findall(_CAMEL.sub(" ", name[:200].replace("mAP", "map").replace("IoU", "iou")).lower()))


@lru_cache(maxsize=4096)
def direction(name: str) -> Direction | None:
    """Returns the direction that the name says, by its last telling word; None where it says none, or is no metric."""
    parts = words(name)
    if not NO_METRIC_WORDS.isdisjoint(parts):
        return None
    for word in reversed(parts):
        for text in (word, word.rstrip("0123456789")):
            if text in MIN_WORDS:
                return "min"
            if text in MAX_WORDS:
                return "max"
    return None


def is_validation(name: str) -> bool:
    """Returns whether a metric is of data that is not trained on."""
    return not VALIDATION_WORDS.isdisjoint(words(name)) or name.startswith("valid_")


def is_loss(name: str) -> bool:
    """Returns whether a metric is a loss: a run whose loss is no finite number has diverged."""
    return not LOSS_WORDS.isdisjoint(words(name)) and direction(name) == "min"


def is_beside(name: str) -> bool:
    """Returns whether a metric is a loss that stands beside another one, such as that of a mixture's router."""
    return not SIDE_WORDS.isdisjoint(part.rstrip("0123456789") for part in words(name))


def is_whole(name: str) -> bool:
    """Returns whether a metric is the loss that is trained for, as far as its name says it."""
    parts = words(name)
    return "loss" in parts and set(parts) <= WHOLE_WORDS | VALIDATION_WORDS


def same(one: str, other: str) -> bool:
    """Returns whether two names are the same but for case, spaces and signs: ``val_loss`` and ``Val loss``."""
    return one == other or (bool(words(one)) and words(one) == words(other))
