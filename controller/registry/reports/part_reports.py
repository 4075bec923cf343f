"""What counts of a report where the job is joined of parts: progress and the end from the host of rank 0. Pure."""

from __future__ import annotations

from typing import NamedTuple

from controller.declared.batch import JobPart
from controller.declared.parts.launches import is_of_launch
from controller.declared.parts.parts_of_job import PartsOfJob


class Counted(NamedTuple):
    """The news of a host as far as they count for the whole job.

    ``ends_part``: the job has ended on this host only. ``refused`` and ``left_out`` are sentences for the host.
    """

    news: JobPart
    ends_part: bool = False
    refused: str | None = None
    left_out: str | None = None


def counted(parts: PartsOfJob, host: str, news: JobPart, sent_at: float) -> Counted:
    """Returns what counts of the news of a host. ``sent_at`` is when they were sent, by the host's clock."""
    speaks = parts.may_tell_progress(host)
    left_out = None
    if not speaks and (news.points or news.diverged):
        news = news._replace(points=(), diverged=False)
        left_out = "progress is taken from the host that rank 0 runs on, and this is another one"
    if not news.ended:
        return Counted(news, left_out=left_out)
    part = parts.get(host)
    if part is not None and not is_of_launch(part, sent_at if news.as_of is None else news.as_of):
        refused = "the end is from before this launch of the job on this host"
        return Counted(news._replace(ended=False), refused=refused, left_out=left_out)
    if speaks and parts.first is not None:
        return Counted(news, left_out=left_out)
    return Counted(news._replace(ended=False), ends_part=True, left_out=left_out)
