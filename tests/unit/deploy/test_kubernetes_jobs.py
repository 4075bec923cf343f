"""The example of a training's pod that is told its DSCP: valid by the API's schemas, with the script that ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from host_reporter.environment.job_files import DEFAULT_DIRECTORY
from tests.support.deploy.manifests import FOLDER, VERSIONS, Manifests
from tests.support.launchers.scripts import WITH_ENVIRONMENT

FILES = sorted((FOLDER / "jobs").glob("*.yaml"))
MANIFESTS = Manifests(FILES)
DOCUMENTS, of_kind = MANIFESTS.documents, MANIFESTS.of_kind


def pod() -> dict[str, Any]:
    return dict(of_kind("Job")["spec"]["template"]["spec"])


def trainer() -> dict[str, Any]:
    (container,) = pod()["containers"]
    return dict(container)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_a_manifest_is_what_the_api_server_takes(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_the_script_is_the_one_that_ships() -> None:
    assert of_kind("ConfigMap")["data"]["with-environment"] == WITH_ENVIRONMENT.read_text()


def test_the_command_is_the_script_the_job_and_the_training() -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in trainer()["volumeMounts"]}
    shell, script, job, *command = trainer()["command"]
    assert (shell, script) == ("sh", f"{mounts['trainyard-launch']}/with-environment")
    assert command == ["python", "train.py"]
    names = [variable["name"] for variable in trainer()["env"]]
    # A variable knows only those above it.
    assert job == f"$({names[-1]})" and names.index("POD_NAMESPACE") < names.index("TRAINYARD_ENVIRONMENT")
    values = {variable["name"]: variable.get("value") for variable in trainer()["env"]}
    assert values["TRAINYARD_ENVIRONMENT"] == f"k8s-$(POD_NAMESPACE).{of_kind('Job')['metadata']['name']}"


def test_the_folder_is_the_agents_and_the_pod_only_reads_it() -> None:
    (volume,) = (volume for volume in pod()["volumes"] if "hostPath" in volume)
    assert volume["hostPath"] == {"path": DEFAULT_DIRECTORY, "type": "DirectoryOrCreate"}
    assert all(mount["readOnly"] for mount in trainer()["volumeMounts"])
    agent = yaml.safe_load((FOLDER / "daemonset.yaml").read_text())["spec"]["template"]["spec"]
    shared = {each["hostPath"]["path"] for each in agent["volumes"] if "hostPath" in each}
    assert str(Path(DEFAULT_DIRECTORY).parent) in shared


def test_the_example_is_not_applied_with_the_agent() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert not [name for name in listed if "jobs" in name]
