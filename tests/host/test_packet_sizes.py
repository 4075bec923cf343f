"""The packets of an emulated host's segmentation offload, on the loopback interface of a namespace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.paths import ROOT

MODEL_BYTES = 12_500
FRAME_BYTES = 1448


@pytest.mark.parametrize("segments", [2, 8, 9])
def test_a_packet_has_as_many_full_frames_as_the_experiment_says(segments: int) -> None:
    packets = Counter(sent(segments))
    full = min(segments * FRAME_BYTES, MODEL_BYTES)
    assert max(packets) == full, packets
    # Linux may send a part of a message before it has the rest, so not every packet is full.
    assert packets[full] * full >= sum(packets.elements()) / 2, packets


def sent(segments: int) -> list[int]:
    """Returns the payload bytes of each packet with a part of a model, from a namespace of its own."""
    command = ["unshare", "--net", sys.executable, "-m", "tests.support.host.fan_out_packets"]
    done = subprocess.run(
        [*command, str(segments), str(MODEL_BYTES)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    sizes: list[int] = json.loads(done.stdout)
    return sizes
