"""StyleGAN2-ADA and StyleGAN3: ``tick 5     kimg 20.0     time 8m 20s  sec/tick 101.2 ...``.

Thousands of images (kimg) count as iterations, because the length of the run is told in them. The quality is in the
lines of the metrics that are computed now and then, such as ``fid50k_full``.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="stylegan",
    title="StyleGAN2-ADA and StyleGAN3",
    source="https://github.com/NVlabs/stylegan3/blob/main/training/training_loop.py",
    marks=r"^tick \d{1,9}\s{1,8}kimg [\d.]{1,12}\s{1,12}time ",
    patterns=(
        Pattern(regex=rf"^tick \d{{1,9}}\s{{1,8}}kimg (?P<iteration>{NUMBER})\s{{1,12}}time "),
        Pattern(regex=rf"^Training for (?P<total>{NUMBER}) kimg", begun=True),
        Pattern(
            regex=rf'^\{{"results": \{{"(?:fid|kid)\w{{1,40}}": (?P<metric>{NUMBER})',
            metric="fid",
            direction="min",
        ),
    ),
)
