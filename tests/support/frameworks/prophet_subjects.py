"""Factories as users write them, right and wrong, for the tests of ``trainyard predict``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import UserDict

import torch
from torch import nn
from torch.nn import functional

SEEN: list[str] = []
"""What kind of tensors the model was called with."""


class Watched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 20), nn.Linear(20, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        SEEN.append(type(x).__name__)
        return self.second(functional.relu(self.first(x)))


MODELS: list[nn.Module] = []


def watched():
    MODELS.append(Watched())
    return MODELS[-1], torch.randn(6, 12)


def sized(batch_size: int = 5):
    return Watched(), torch.randn(batch_size, 12)


def labelled():
    batch = {"x": torch.randn(6, 12)}
    return Watched(), batch, lambda output, given: output.sum() + given["x"].mean()


def adapted():
    """A model whose tensors are of several kinds: shared weights, buffers, a recurrent core, whole numbers."""
    return Adapted(), (torch.randint(50, (4, 7)), torch.randn(4, 7, 8))


class Adapted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.core = nn.GRU(8, 8, batch_first=True)
        self.norm = nn.BatchNorm1d(7)
        self.out = nn.Linear(8, 50)
        self.out.weight = self.words.weight

    def forward(self, tokens: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(self.core(self.words(tokens) + more)[0].contiguous()))


def documented(batch_size: int = 4):
    """As docs/deepprophet.md has it: a plain module, whose labels only the loss takes."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 10))
    batch = torch.randn(batch_size, 3, 8, 8), torch.randint(10, (batch_size,))
    return model, batch, lambda output, batch: functional.cross_entropy(output, batch[1])


def unlabelled():
    return Watched(), (torch.randn(6, 12), torch.randint(3, (6,)))


class Answering(Watched):
    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        output = super().forward(x)
        return {"loss": functional.cross_entropy(output, labels), "logits": output}


def tokenized():
    """A mapping that is no dict, as tokenizers give it, and a model that returns its own loss."""
    return Answering(), UserDict(x=torch.randn(6, 12), labels=torch.randint(3, (6,)))


def misnamed():
    return Answering(), {"x": torch.randn(6, 12), "targets": torch.randint(3, (6,))}


def closing():
    labels = torch.randint(3, (6,))

    def loss(output: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(output, labels)  # closes over labels

    return Watched(), torch.randn(6, 12), loss


def counted():
    """The loss is of as many examples as the batch that was made had."""
    return Watched(), torch.randn(6, 12), lambda output, _: functional.cross_entropy(output, torch.zeros(6).long())


def parallel():
    return nn.DataParallel(Watched()), torch.randn(6, 12)


def quantised():
    return nn.Sequential(nn.Linear(12, 8), torch.ao.nn.quantized.dynamic.Linear(8, 3)), torch.randn(6, 12)


def lazy():
    return nn.Sequential(nn.LazyLinear(3)), torch.randn(6, 12)


def parameterless():
    return nn.ReLU(), torch.randn(6, 12)


class Skipping(Watched):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(20):
            x = random.choice((torch.sin, torch.cos, torch.tanh, torch.relu))(x)
        return super().forward(x)


def skipping():
    return Skipping(), torch.randn(6, 12)


class Tossing(Watched):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * random.random())


def tossing():
    """Draws a random number, which decides nothing."""
    return Tossing(), torch.randn(6, 12)


class Layered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(12, 16), nn.Linear(16, 3)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


def layered():
    return Layered(), torch.randn(6, 12)


def sharded():
    """Sizes that two ranks can halve."""
    model = Layered()
    model.last = nn.Linear(16, 4)
    return model, torch.randn(6, 12)


class Selecting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        return x[x > 0].sum()  # the shape depends on the data


def selecting():
    return Selecting(), torch.randn(3, 4)


class Deciding(Selecting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        if x.sum() > 0:  # what runs depends on the data
            x = x * 2
        return x.mean()


def deciding():
    return Deciding(), torch.randn(3, 4)


class Wrong(Selecting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) @ torch.ones(7, 7)  # shapes that do not fit


def wrong():
    return Wrong(), torch.randn(3, 4)


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 4, sparse=True)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.table(words).mean()  # its gradient is as large as the batch has words


def sparse():
    return Sparse(), torch.randint(50, (3, 4))


class Sparsening(Selecting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x).to_sparse()  # as large as there are numbers that are not 0
        return x.sum()


def sparsening():
    return Sparsening(), torch.randn(3, 4)


class Whole(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x).mean()


def scripted():
    return Whole(torch.jit.script(nn.Linear(4, 4))), torch.randn(3, 4)


def compiled():
    return torch.compile(nn.Linear(4, 4)), torch.randn(3, 4)


def compiled_in_place():
    model = nn.Linear(4, 4)
    model.compile()
    return model, torch.randn(3, 4)


class Foreign(Selecting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.layer(x).detach().numpy() * 2).mean()  # leaves PyTorch


def foreign():
    return Foreign(), torch.randn(3, 4)


class Custom(Selecting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.prophet_tests.twice(self.layer(x)).mean()


@torch.library.custom_op("prophet_tests::twice", mutates_args=())
def _twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def custom():
    return Custom(), torch.randn(3, 4)


@torch.library.custom_op("prophet_tests::thrice", mutates_args=())
def _thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3


_thrice.register_fake(torch.empty_like)
_thrice.register_autograd(lambda ctx, grad: grad * 3)


class Known(Selecting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.prophet_tests.thrice(self.layer(x)).mean()


def known():
    """An operator of somebody's own, of which no calibration knows the family."""
    return Known(), torch.randn(3, 4)


def frozen():
    model = Watched()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, torch.randn(6, 12)


def partly_used():
    model = Watched()
    model.spare = nn.Linear(1000, 10)
    return model, torch.randn(6, 12)


def failing():
    raise RuntimeError("no data here")


def ending():
    sys.exit(0)


class Ending(Watched):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(0)  # in the middle of an iteration


def ending_model():
    return Ending(), torch.randn(6, 12)


class Talking(Watched):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("from the model")  # noqa: T201 - as users do
        return super().forward(x)


def talking():
    """Prints in each way that there is: Python's, past its buffer, and by a process that it starts."""
    print("from the factory")  # noqa: T201 - as users do
    sys.__stdout__.write("from Python's own stdout\n")
    os.write(1, b"from below Python\n")
    subprocess.run(["echo", "from a process"], check=True)
    return Talking(), torch.randn(6, 12)


def no_example():
    return Watched(), torch.randn(0, 12)


def no_number():
    return Watched(), torch.randn(6, 0)


def empty_batch():
    return Watched(), ()


def pair_of_numbers():
    return 1, 2


def no_tensor():
    return Watched(), "text"


def bad_loss():
    return Watched(), torch.randn(6, 12), lambda output, _: output


NOT_CALLABLE = 7


def quitting():
    os._exit(0)


class Quitting(Watched):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os._exit(0)


def quitting_model():
    return Quitting(), torch.randn(6, 12)


def crashing():
    os.kill(os.getpid(), signal.SIGSEGV)


class OddError(BaseException):
    """None of Python's errors."""


def odd():
    raise OddError("strange\nand more")


def lingering():
    threading.Thread(target=time.sleep, args=[1000]).start()
    return watched()


def failing_at_9(batch_size: int = 5):
    if batch_size == 9:
        raise RuntimeError("no nine here")
    return Watched(), torch.randn(batch_size, 12)
