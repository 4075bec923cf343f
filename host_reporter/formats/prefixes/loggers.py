"""What loggers put between the date and the message: a level, and the logger's name. Pure.

Python's logging with the usual formats, Hydra's, Loguru's (https://loguru.readthedocs.io/en/stable/api/logger.html) and
that of Hugging Face's Transformers. MMEngine's names and TensorFlow's stay, because they tell the format of the line.
"""

from __future__ import annotations

import re

_LEVEL = r"(?:TRACE|DEBUG|INFO|SUCCESS|WARN(?:ING)?|ERROR|CRITICAL)"
_NAME = r"(?!mm[a-z0-9]{2,12} )[A-Za-z_][\w.]{0,80}"
_MODULE = r"(?:__main__|root|[A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,8})"
"""A logger's name that no message begins with."""

_BEHIND_DATE = re.compile(
    # - INFO - and - name - INFO - and - INFO - package.module -
    rf"-?\s{{0,2}}(?:{_NAME} - )?{_LEVEL}\s{{0,8}}(?:-|:)\s{{1,2}}(?:{_MODULE}(?::\d{{1,6}})? (?:-|:) )?"
    # | INFO     | module:function:12 -
    rf"|\|?\s?{_LEVEL}\s{{0,8}}\|\s{{1,2}}[\w.]{{1,80}}:[\w.<>]{{1,80}}:\d{{1,6}} - "
    # INFO] of [2024-05-01 12:00:00,123 INFO]
    rf"|\s?{_LEVEL}\]:?\s"
    # [INFO][name] and [name][INFO] - and [INFO]
    rf"|\s?(?:\[{_NAME}\]\s?)?\[{_LEVEL}\](?:\s?\[{_MODULE}\])?\s?(?:[-:]\s)?"
    # >> of [INFO|trainer.py:12] 2024-05-01 12:00:00,123 >>
    r"|>> "
)
_ALONE = re.compile(
    # INFO:name: as logging.basicConfig() has it
    rf"{_LEVEL}:(?!tensorflow:)[A-Za-z_][\w.]{{0,80}}:"
    rf"|\[{_LEVEL}(?:\|[\w./-]{{1,100}}:\d{{1,6}})?\]:?\s"
)


def behind_date(text: str) -> str:
    """Returns a line without what a logger puts behind its date, which is not there any more."""
    match = _BEHIND_DATE.match(text)
    return text[match.end() :] if match is not None else text


def alone(text: str) -> str:
    """Returns a line without what a logger that writes no date puts before the message."""
    match = _ALONE.match(text)
    return text[match.end() :] if match is not None else text
