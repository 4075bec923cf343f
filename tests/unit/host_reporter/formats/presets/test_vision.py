"""The presets of programs for images read all kinds of their lines, also those that no sample has."""

from __future__ import annotations

from host_reporter.formats.events import Diverged, Point
from tests.support.agent.logs import Parsed, interpreted


def diverges(found: Parsed) -> bool:
    return any(isinstance(event, Diverged) or (isinstance(event, Point) and event.diverged) for event in found.events)


MMENGINE = "05/01 12:00:00 - mmengine - INFO - "
MMCV = "2023-05-01 12:00:00,123 - mmdet - INFO - "


def test_mmengine_tells_its_length_in_its_settings_and_maps_in_its_validations() -> None:
    lines = [
        "train_cfg = dict(by_epoch=True, max_epochs=12, val_interval=1)",
        f"{MMENGINE}Hooks will be executed in the following order:",
        f"{MMENGINE}Epoch(train)  [1][ 50/100]  lr: 9.9e-04  eta: 1:02:03  time: 0.21  loss: 1.5  loss_cls: 0.7",
        f"{MMENGINE}Epoch(train)  [1][100/100]  lr: 9.9e-04  eta: 1:02:03  time: 0.21  loss: 1.2  loss_cls: 0.6",
        f"{MMENGINE}Epoch(val)  [1][ 50/625]    eta: 0:00:12  time: 0.02  data_time: 0.001  memory: 900",
        f"{MMENGINE}Epoch(val)  [1][625/625]    coco/bbox_mAP: 0.1230  coco/bbox_mAP_50: 0.2340  time: 0.02",
    ]
    found = interpreted(lines)
    assert (found.preset, found.described.iterations) == ("mmengine", 1200)
    assert (found.described.metric, found.described.direction) == ("validation coco/bbox_mAP", "max")
    assert found.points == [(50, 1.5), (100, 1.2), (100, 0.123)]


def test_mmengine_resumed_goes_on_and_begun_anew_is_a_new_run() -> None:
    hooks = f"{MMENGINE}Hooks will be executed in the following order:"
    line = MMENGINE + "Iter(train) [{}/400]  lr: 1e-2  eta: 0:10:00  time: 0.2  loss: 0.5"
    run = [hooks, *(line.format(done) for done in range(50, 401, 50))]
    assert interpreted([*run[:5], hooks, *run[5:]]).ends == 0
    assert interpreted([*run, hooks, line.format(10), line.format(20)]).ends == 1
    assert diverges(interpreted([*run, line.format(400).replace("0.5", "nan")]))


def test_mmcv_before_mmengine() -> None:
    lines = [
        f"{MMCV}workflow: [('train', 1)], max: 2 epochs",
        f"{MMCV}Epoch [1][50/100]\tlr: 1.978e-03, eta: 0:01:00, time: 0.3, data_time: 0.04, memory: 3900, loss: 1.2",
        f"{MMCV}Epoch(val) [1][625]\tbbox_mAP: 0.1000, bbox_mAP_50: 0.2",
    ]
    found = interpreted(lines)
    assert (found.preset, found.points, found.described.iterations) == ("mmengine", [(50, 1.2), (50, 0.1)], 200)
    segmentation = [
        f"{MMCV}Iter [50/200]\tlr: 1e-2, eta: 0:01:00, loss: 0.9, aux.acc_seg: 60.0",
        f"{MMCV}Iter(val) [250]\taAcc: 0.7, mIoU: 0.2, mAcc: 0.3",
    ]
    found = interpreted(segmentation)
    assert (found.points, found.described.iterations, found.described.direction) == ([(50, 0.9), (50, 0.7)], 200, "max")


def test_ultralytics_with_the_bars_of_tqdm_and_a_loss_that_is_no_number() -> None:
    heading = "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size"
    bar = (
        "      {}/3      2.66G      {}      1.52      1.28         12        640: 100%|#| {}/8 [00:02<00:00,  3.5it/s]"
    )
    validation = "                   all        128        929      0.682      0.535      0.612      0.{}"
    lines = [
        heading,
        bar.format(1, 1.2, 4),
        bar.format(1, 1.2, 8),
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|#| 4/4 [00:01]",
        validation.format(4),
        heading,
        bar.format(2, 1.1, 8),
        validation.format(5),
    ]
    found = interpreted(lines)
    assert (found.preset, found.described.iterations) == ("ultralytics", 24)
    assert found.points == [(4, None), (8, None), (8, 0.4), (16, None), (16, 0.5)]
    assert diverges(interpreted([*lines, bar.format(3, "nan", 4)]))
    assert not diverges(found)


def test_ultralytics_classifies() -> None:
    lines = [
        "      Epoch    GPU_mem       loss  Instances       Size",
        "        1/2     0.311G      2.103         16         32: 100% ━━━━━━━━━━━━ 8/8 9.9it/s 0.8s",
        "               classes   top1_acc   top5_acc: 100% ━━━━━━━━━━━━ 4/4 9.1it/s 0.4s",
        "                   all      0.312      0.812",
    ]
    found = interpreted(lines)
    assert (found.described.metric, found.points) == ("metrics/accuracy_top1", [(8, None), (8, 0.312)])


def test_ultralytics_ends_before_it_validates_the_best_weights() -> None:
    lines = [
        "        1/1         0G      4.254      2.481       2.59          4         64: 100% ━━━━━━━━ 8/8 2.0it/s 3s",
        "                   all         16         16       0.69      0.438      0.408      0.194",
        "1 epochs completed in 0.017 hours.",
        "Ultralytics 8.4.190 🚀 Python-3.11.2 torch-2.13.0+cpu CPU (AMD EPYC)",
        "                   all         16         16       0.69      0.438      0.408      0.196",
    ]
    found = interpreted(lines)
    assert (found.preset, found.ends, found.points) == ("ultralytics", 1, [(8, None), (8, 0.194)])


def test_detectron2_resumed_and_diverged() -> None:
    prefix = "[05/01 12:00:27 d2.utils.events]:  eta: 2:47:11  "
    line = prefix + "iter: {}  total_loss: {}  loss_cls: 0.4    time: 0.35  lr: 0.02  max_mem: 4382M"
    start = "[05/01 12:00:20 d2.engine.train_loop]: Starting training from iteration {}"
    run = [start.format(0), *(line.format(19 + 20 * i, 2) for i in range(9))]
    assert interpreted([*run, start.format(180), line.format(199, 1.5)]).points[-1] == (200, 1.5)
    assert interpreted([*run, start.format(0), line.format(19, 1.9)]).ends == 1
    assert diverges(interpreted([*run, line.format(199, "nan")]))


def test_torchvision_s_logger_in_other_programs() -> None:
    line = "Epoch: [{}]  [ {}/312]  eta: 0:10:02  lr: 0.000000  loss: {} (6.9920)  time: 1.9296  data: 0.7032"
    lines = [
        line.format(5, 0, 6.9),
        line.format(5, 20, 6.8),
        "* Acc@1 3.120 Acc@5 10.010 loss 5.900",
        line.format(6, 0, 6.5),
    ]
    found = interpreted(lines)
    assert (found.preset, found.points) == ("torchvision", [(1, 6.9), (21, 6.8), (21, 3.12), (313, None)])
    assert diverges(interpreted([*lines, "Loss is nan, stopping training"]))


def test_several_ranks_that_print_the_same() -> None:
    lines = [
        f"[1,{rank}]<stdout>:Train Epoch: 1 [{done}/60000 ({done // 600}%)]\tLoss: {1 + rank}.5"
        for done in (0, 640, 1280)
        for rank in (0, 1)
    ]
    found = interpreted(lines)
    assert (found.preset, found.points) == ("pytorch-mnist", [(0, 1.5), (640, 1.5), (1280, 1.5)])
