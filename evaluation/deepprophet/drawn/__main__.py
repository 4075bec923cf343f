"""``python -m evaluation.deepprophet.drawn studied`` or ``unseen``: draw the models, and write which they are.

The rule is in ``rule``. No prediction is made here. Exit status: 2 for a draw that is not to be made.
"""

from __future__ import annotations

import sys

import torch
import transformers

from deepprophet.device.loop import iteration
from deepprophet.graph.subject import subject
from evaluation.deepprophet.drawn import library, listed, networks, rule
from evaluation.deepprophet.drawn.library import CPU, UnfitError
from evaluation.deepprophet.drawn.listed import Draw, Drawn
from evaluation.deepprophet.drawn.rule import HELD_OUT, KINDS, NETWORK, STUDIED, Kind

SEEDS = {"studied": STUDIED, "unseen": HELD_OUT}


def main(name: str) -> None:
    """Draws the models of a name, and writes them."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    seed = SEEDS[name]
    studied = listed.draws().get("studied") if seed == HELD_OUT else None
    used = set() if studied is None else {*rule.LOOKED_AT, *(drawn.type for drawn in studied.models)}
    found: list[Drawn] = []
    skipped: dict[str, str] = {}
    for kind in KINDS:
        for drawn in _of_kind(name, seed, kind, used, skipped):
            found.append(drawn)
            used.add(drawn.type)
    found += [_network(name, seed, number) for number in range(rule.NETWORKS[seed])]
    listed.write(name, Draw(seed, transformers.__version__, tuple(found), skipped))


def _of_kind(name: str, seed: int, kind: Kind, used: set[str], skipped: dict[str, str]) -> list[Drawn]:
    classes = dict(library.types_of(kind))
    found: list[Drawn] = []
    for type_ in rule.ordered(seed, kind, classes):
        if len(found) == rule.PER_KIND[seed]:
            break
        if type_ in used:
            continue
        try:
            found.append(_tried(name, seed, kind, type_, classes[type_]))
            _say(f"{kind.name}: {type_}")
        except UnfitError as error:
            skipped[type_] = str(error)
            _say(f"{kind.name}: {type_} is skipped: {error}")
    return found


def _tried(name: str, seed: int, kind: Kind, type_: str, class_name: str) -> Drawn:
    """Returns a type of model of the first drawn size that trains. Raises UnfitError with the last reason."""
    last = UnfitError("it was not tried")
    for number in range(rule.TRIES):
        draw = rule.random_of(seed, type_, number)
        count, length = draw.choice(rule.BATCH_SIZES), draw.choice(rule.LENGTHS)
        try:
            config = library.drawn_config(type_, draw)
            library.check(config, class_name, count, length)
            return Drawn(f"{name}-{type_}", kind.name, type_, count, length, class_name, config)
        except UnfitError as error:
            last = error
    raise last


def _network(name: str, seed: int, number: int) -> Drawn:
    count = rule.random_of(seed, "batch", number).choice((8, 16, 32))
    iteration(subject(networks.factory(seed, number)(count)), "sgd", CPU)()
    return Drawn(f"{name}-network-{number}", NETWORK, f"network {number}", count, seed=seed, number=number)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    wanted = " ".join(sys.argv[1:])
    if (reason := listed.why_not(wanted, listed.draws())) is not None:
        _say(reason)
        sys.exit(2)
    main(wanted)
