"""All recordings, those of one program beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.logs.recording import Recording, torchrun, training

KERAS = {"KERAS_BACKEND": "torch"}
VERSION_0 = "lightning_logs/version_0/*"
EVENTS = (r"(events\.out\.tfevents)\.[^/]*$", r"\1.0")
"""The files of TensorBoard are named by time, host and process; here they are ``events.out.tfevents.0``."""
ELASTIC = (r"^logs/[^/]+/", "logs/run/")
"""torchrun makes up a name for a run's folder."""
WORK_DIRS = ("work_dirs/*/*.log", "work_dirs/*/vis_data/*.json")
MMENGINE = ((r"^work_dirs/[0-9_]+/", "work_dirs/run/"), (r"/[0-9_]+\.(log|json)$", r"/run.\1"))
"""MMEngine names files by the time."""
RAY = {
    # On a busy machine Ray starts slowly.
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
WORKERS = ("ray/session_2*/logs/worker-*.out",)
TRIALS = ("results/*/*/result.json", "results/*/*/progress.csv", *WORKERS)
TUNE = (
    (r"/train_[^/]*_0000([0-9])_[^/]*/", r"/trial_\1/"),
    (r"^ray/session_[^/]*/", "ray/session/"),
    (r"/worker-[0-9a-f]+-[0-9a-f]+-([0-9]+)\.out$", r"/worker-\1.out"),
)
"""Ray names trials by their settings and the time, and workers by long hashes."""
MLFLOW = {"MLFLOW_ALLOW_FILE_STORE": "true", "GIT_PYTHON_REFRESH": "quiet"}
STORE = ("mlruns/*/meta.yaml", "mlruns/*/*/meta.yaml", "mlruns/*/*/metrics/*", "mlruns/*/*/params/*")
RUNS = ((r"^mlruns/[0-9]{2,}/", "mlruns/experiment/"), (r"/[0-9a-f]{32}/", "/run/"))
KERAS2 = ("*.csv", "logs/*/events*")
DEEPSPEED = ("deepspeed", "--num_gpus", "2", "--module", "evaluation.logs.trainings.loops.deepspeed_engine")
CPU = {"DS_ACCELERATOR": "cpu"}
YOLO = {"YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

RECORDINGS: Sequence[Recording] = (
    Recording(
        "keras-bars", "keras", "keras", training("trainers.keras3", "--verbose", "1"), "joined", ("*.csv",), KERAS
    ),
    Recording(
        "keras-terminal", "keras", "keras", training("trainers.keras3", "--verbose", "1"), "terminal", ("*.csv",), KERAS
    ),
    Recording(
        "keras-lines", "keras", "keras", training("trainers.keras3", "--verbose", "2"), "apart", ("*.csv",), KERAS
    ),
    Recording(
        "lightning-bars",
        "lightning",
        "lightning",
        training("trainers.lightning_trainer"),
        "joined",
        (VERSION_0,),
        {},
        (EVENTS,),
    ),
    Recording(
        "lightning-terminal",
        "lightning",
        "lightning",
        training("trainers.lightning_trainer", "--logger", "tensorboard"),
        "terminal",
        (VERSION_0,),
        {},
        (EVENTS,),
    ),
    Recording(
        "lightning-rich",
        "lightning",
        "lightning",
        training("trainers.lightning_trainer", "--bar", "rich"),
        "joined",
        (VERSION_0,),
    ),
    Recording(
        "lightning-rich-terminal",
        "lightning",
        "lightning",
        training("trainers.lightning_trainer", "--bar", "rich"),
        "terminal",
        (VERSION_0,),
    ),
    Recording(
        "hugging-face",
        "transformers",
        "transformers",
        training("trainers.hugging_face"),
        "joined",
        ("out/*/trainer_state.json", "out/runs/*/events*"),
        {},
        (EVENTS, (r"out/runs/[^/]+/", "out/runs/run/")),
    ),
    Recording(
        "hugging-face-no-bar",
        "transformers",
        "transformers",
        training("trainers.hugging_face", "--no-bar"),
        "apart",
        ("out/*/trainer_state.json",),
    ),
    Recording(
        "hugging-face-torchrun",
        "transformers",
        "transformers",
        torchrun(module="trainers.hugging_face"),
        "joined",
        ("out/*/trainer_state.json",),
    ),
    Recording("torchrun", "pytorch", "torch", torchrun(module="loops.torch_loop"), "apart"),
    Recording(
        "torchrun-tee",
        "pytorch",
        "torch",
        torchrun("--tee", "3", "--log-dir", "logs", module="loops.torch_loop", arguments=("--log-dir", "logs")),
        "joined",
        ("logs/**/*.log",),
        {},
        (ELASTIC,),
    ),
    Recording("xgboost", "xgboost", "xgboost-cpu", training("trainers.boosting_xgboost")),
    Recording("lightgbm", "lightgbm", "lightgbm", training("trainers.boosting_lightgbm")),
    Recording(
        "stable-baselines3",
        "stable-baselines3",
        "stable-baselines3",
        training("trainers.stable_baselines"),
        "apart",
        ("out/*",),
        {},
        (EVENTS,),
    ),
    Recording("mmengine", "mmengine", "mmengine", training("trainers.openmmlab"), "joined", WORK_DIRS, {}, MMENGINE),
    Recording(
        "mmengine-iterations",
        "mmengine",
        "mmengine",
        training("trainers.openmmlab", "--by-iterations"),
        "joined",
        WORK_DIRS,
        {},
        MMENGINE,
    ),
    Recording("ray-tune", "ray", "ray", training("loops.ray_tune"), "joined", TRIALS, RAY, TUNE),
    Recording("ray-train", "ray", "ray", training("loops.ray_train"), "joined", WORKERS, RAY, TUNE),
    Recording(
        "ray-train-all-lines",
        "ray",
        "ray",
        training("loops.ray_train"),
        "joined",
        WORKERS,
        RAY | {"RAY_DEDUP_LOGS": "0"},
        TUNE,
    ),
    Recording("mlflow", "mlflow", "mlflow", training("loops.mlflow_tracking"), "apart", STORE, MLFLOW, RUNS),
    Recording("flax", "flax", "flax", training("loops.flax_loop"), "apart", ("logs/*",), {}, (EVENTS,)),
    Recording(
        "keras2-bars",
        "tensorflow",
        "tf-keras",
        training("trainers.keras2", "--verbose", "1"),
        "joined",
        KERAS2,
        {},
        (EVENTS,),
    ),
    Recording(
        "keras2-terminal",
        "tensorflow",
        "tf-keras",
        training("trainers.keras2", "--verbose", "1"),
        "terminal",
        ("*.csv",),
    ),
    Recording(
        "keras2-lines", "tensorflow", "tf-keras", training("trainers.keras2", "--verbose", "2"), "apart", ("*.csv",)
    ),
    Recording("tensorflow-estimator", "tensorflow", "tensorflow-estimator", training("trainers.tensorflow_estimator")),
    Recording("deepspeed", "deepspeed", "deepspeed", DEEPSPEED, "apart", (), CPU),
    Recording("deepspeed-info", "deepspeed", "deepspeed", (*DEEPSPEED, "--info"), "apart", (), CPU),
    Recording(
        "ultralytics", "ultralytics", "ultralytics", training("trainers.yolo"), "joined", ("runs/*/results.csv",), YOLO
    ),
    Recording("opennmt", "opennmt", "opennmt-py", training("trainers.opennmt"), "joined", ("train.log",)),
    Recording(
        "llama-factory",
        "llamafactory",
        "llamafactory",
        training("trainers.llama_factory"),
        "joined",
        ("out/trainer_log.jsonl", "out/trainer_state.json"),
    ),
    Recording(
        "openmpi-tagged",
        "mpi",
        "Open MPI",
        ("mpirun.openmpi", "-np", "2", "--tag-output", *training("loops.ranks")),
        "apart",
        (),
        AS_ROOT,
        version=("mpirun.openmpi", "--version"),
    ),
    Recording(
        "openmpi-timestamps",
        "mpi",
        "Open MPI",
        ("mpirun.openmpi", "-np", "2", "--tag-output", "--timestamp-output", *training("loops.ranks")),
        "apart",
        (),
        AS_ROOT,
        version=("mpirun.openmpi", "--version"),
    ),
    Recording(
        "mpich-ranks",
        "mpi",
        "MPICH",
        ("mpiexec.mpich", "-n", "2", "-prepend-rank", *training("loops.ranks")),
        "apart",
        version=("mpiexec.mpich", "--version"),
    ),
    Recording(
        "nemo",
        "nemo",
        "nemo-toolkit",
        training("trainers.nemo_experiment"),
        "joined",
        ("nemo/blobs/1/*.txt", "nemo/blobs/1/events*"),
        {},
        (EVENTS,),
    ),
)
