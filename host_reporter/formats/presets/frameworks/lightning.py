"""Lightning's bars: ``Epoch 0:   7%|▋  | 1/15 [00:00<00:00, 85.04it/s, v_num=0, train_loss=1.97]``, and those of rich.

Epochs count from 0. A bar that begins again still names the epoch before. The metrics of a validation stand in the bar
until the next one. No line but the last one tells how many epochs there are. Rich's bar is
``Epoch 3/9  ━━━━━━━━ 15/15 0:00:00 • 0:00:00 58.75it/s``; the metrics stand in lines below it.
"""

from __future__ import annotations

from host_reporter.formats.preset import Pattern, Preset

_STOPPED = r"`Trainer\.fit` stopped: `max_epochs=(?P<epochs>\d{1,9})` reached"
_RICH = r"^Epoch (?P<epoch>\d{1,9})/(?:(?P<epochs>\d{1,9})|-\d)\s{1,4}[\u2501\u2578-\u257f ]{1,200}+(?P<step>\d{1,12})/"

PRESET = Preset(
    name="lightning",
    title="Lightning",
    source="https://lightning.ai/docs/pytorch/stable/common/progress_bar.html",
    marks=r"^Epoch \d{1,9}: .{0,250}?[|:] ?\d{1,12}(?:/\d{1,12}|it) \[.{1,60}v_num=|^`Trainer\.(?:fit|test)` stopped: "
    r"|^GPU available: (?:True|False)(?: \(\w{1,12}\))?, used: |^Sanity Checking(?: DataLoader \d+)?: "
    r"|^Epoch \d{1,9}/-?\d{1,9} .{1,250} \d{1,3}:\d\d:\d\d \u2022 ",
    patterns=(
        Pattern(regex=r"^Training: (?:\s{0,3}\d{0,3}%?\||-?\d{1,9}it)", begun=True),
        Pattern(
            regex=r"^Epoch (?P<epoch>\d{1,9}):\s{1,4}\d{1,3}%\|[^|]{0,200}\|\s{0,12}"
            # No end of line need be between them.
            r"(?P<step>[1-9]\d{0,11})/(?P<of>\d{1,12}) \[" + rf"(?:[^\]]{{0,400}}\]{_STOPPED})?",
            pairs=True,
            lasting=True,
            add={"epoch": 1},
        ),
        Pattern(regex="^" + _STOPPED),
        Pattern(
            regex=r"^Epoch (?P<epoch>\d{1,9}): : (?P<step>[1-9]\d{0,11})it \[",
            pairs=True,
            lasting=True,
            add={"epoch": 1},
        ),
        Pattern(
            regex=_RICH + r"(?:(?P<of>\d{1,12})|--?) .{0,60}\u2022",
            pairs=True,
            lasting=True,
            add={"epoch": 1, "epochs": 1},
        ),
        # The rest of the metrics, at the right of rich's bar.
        Pattern(regex=r"^\s{30,200}+[\w./]", pairs=True, lasting=True),
    ),
)
