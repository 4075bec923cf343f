"""A device by its sheet: what follows from the numbers, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepprophet.costs import costs as costing
from deepprophet.costs import sheet
from deepprophet.costs.calibration import from_text
from deepprophet.errors import InputError
from deepprophet.graph.families import FAMILIES
from deepprophet.graph.graph import Graph
from tests.support.prophet_world import operator

PLAIN = "name: Abacus\nflops_per_second: {fp32: 2.0e+12, bf16: 8.0e+12}\nmemory_bytes_per_second: 1.0e+11\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "device.yaml"
    path.write_text(text)
    return path


def test_seconds_follow_from_the_numbers(tmp_path: Path) -> None:
    more = "share_of_peak: 0.5\nshare_of_memory: 0.5\ncall_seconds: 1.0e-3\nfactor: 4\n"
    known = sheet.read(written(tmp_path, PLAIN + more), ["fp32", "bf16"]).calibration(1, "2.13.0")
    graph = Graph(
        (
            operator(flops=1e12, bytes=1e10),
            operator(dtype="bfloat16", flops=1e12),
            operator(size=9, family="elementwise", flops=1e12, bytes=5e10),
            operator(size=10, family="view", bytes=5e10),
        ), (), (), 1, "float32",
    )  # fmt: skip
    parts = costing.costs(graph, known, {})
    assert [part.seconds for part in parts] == pytest.approx([1.0 + 0.2 + 1e-3, 0.25 + 1e-3, 1.0 + 1e-3, 0.3e-3])
    assert {part.way for part in parts} == {"roofline"}
    assert (parts[1].low, parts[1].high) == (pytest.approx(0.25 / 4 + 1e-3), pytest.approx(0.25 * 4 + 1e-3))
    seconds, low, high = costing.total(parts, known.contexts[0], graph.times())
    assert low <= seconds / 3
    assert high >= seconds * 4


def test_every_family_has_its_roofline_and_the_calibration_can_be_kept(tmp_path: Path) -> None:
    known = sheet.read(written(tmp_path, PLAIN), ["fp32"]).calibration(2, "2.13.0")
    assert {roofline.family for roofline in known.rooflines} == set(FAMILIES)
    assert {roofline.dtype for roofline in known.rooflines} == {"float32", "bfloat16"}
    assert (known.provenance.device, known.provenance.kind, known.provenance.threads) == ("Abacus", "cuda", 2)
    assert from_text(known.model_dump_json(), "x") == known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: is empty; it must hold a device: name, flops_per_second"),
        ("name: a\n", "flops_per_second: "),
        (PLAIN + "kind: tpu\n", ":4: kind: "),
        (PLAIN + "share_of_peak: 2\n", ":4: share_of_peak: "),
        (PLAIN.replace("fp32", "fp8"), ":2: flops_per_second"),
        (PLAIN.replace("1.0e+11", "0"), ":3: memory_bytes_per_second: "),
    ],
)
def test_wrong_sheet_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as told:
        sheet.read(path, ["fp32"])
    assert str(told.value).startswith(f"{path}:")
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_a_type_without_a_peak_is_not_predicted_by_another_ones(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN.replace("fp32: 2.0e+12, ", ""))
    assert sheet.read(path, ["bf16"]).flops_per_second == {"bf16": 8e12}
    with pytest.raises(InputError) as told:
        sheet.read(path, ["bf16", "fp32"])
    assert str(told.value) == f"{path}: flops_per_second has no fp32; give its peak there, or ask for --dtype bf16"
