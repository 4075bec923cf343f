"""The extras of the package: which of them a command needs, for whoever has installed the agent alone."""

from __future__ import annotations

EXTRA_OF = {
    "jobs": "client",
    "plan": "client",
    "explain": "client",
    "console": "client",
    "probe": "client",
    "top": "client",
    "parse": "client",
    "certs": "controller",
    "check-config": "controller",
    "controller": "controller",
    "order": "simulator",
    "sim": "simulator",
    "lab": "lab",
    "predict": "deepprophet",
}
"""The extra that holds all libraries of a command."""


def what_is_missing(command: str, error: ModuleNotFoundError) -> str | None:
    """Returns which extra to install, in a sentence; None where no extra of ours has the module."""
    library = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(command)
    if extra is None or not library:
        return None
    how = f"pip install 'trainyard[{extra}]'"
    if extra in ("controller", "lab"):
        how = f"the install guide has the command for the extra '{extra}', with the files of 'trainyard constraints'"
    return f"{command} needs the library {library}, which is not installed: {how}"
