"""PyTorch's example of MNIST, and Horovod's: ``Train Epoch: 1 [640/60000 (1%)]  Loss: 0.5``.

The numbers count samples, not batches: nothing in the log tells the size of a batch.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_PLACE = r"(?P<step>\d{1,12})/(?P<of>\d{1,12}) \(\s{0,2}\d{1,3}%\)\]"

PRESET = Preset(
    name="pytorch-mnist",
    title="PyTorch's example of MNIST",
    source="https://github.com/pytorch/examples/blob/main/mnist/main.py",
    marks=r"^Train Epoch: \d{1,9} \[\d{1,12}/\d{1,12} \(\s{0,2}\d{1,3}%\)\]\s{1,4}Loss: ",
    patterns=(
        Pattern(regex=rf"^Train Epoch: (?P<epoch>1) \[(?=0/){_PLACE}\s{{1,4}}Loss: (?P<loss>{NUMBER})", begun=True),
        Pattern(regex=rf"^Train Epoch: (?P<epoch>\d{{1,9}}) \[{_PLACE}\s{{1,4}}Loss: (?P<loss>{NUMBER})"),
        Pattern(regex=rf"^Test set: Average loss: (?P<loss>{NUMBER})", validation=True),
    ),
)
