"""What the tables tell each other about a packet, in OpenFlow's 64 bits of metadata. Pure.

The lower 32 bits are the number of the main job of the packet's source, and the upper 16 bits that of the source's own
group among those with this main job (see ``groups``). Two bits between them say of which kind the packet is, and the
next one that the switch believes its DSCP. Eight bits above those say which place its pair of hosts has. All are 0 at
first.
"""

from __future__ import annotations

from controller.rules.rule import Match, SetMetadata

GROUP = 0xFFFF_FFFF
OF_ITS_OWN = 0xFFFF
_JOB_KIND = 1 << 32
_CONTROL_KIND = 1 << 33
_BELIEVED = 1 << 34
_PLACE_SHIFT = 40
_PLACE = 0xFF << _PLACE_SHIFT
_OWN_SHIFT = 48
_WHOLE_GROUP = OF_ITS_OWN << _OWN_SHIFT | GROUP
_OF_NO_JOB_ALONE = 1
_OF_FIRST = 2

NOTE_JOB_KIND = SetMetadata(_JOB_KIND, _JOB_KIND)
"""Note that the packet is of a kind that jobs use."""
NOTE_CONTROL_KIND = SetMetadata(_CONTROL_KIND, _CONTROL_KIND)
"""Note that the packet is of a kind that controls the network."""
NOTE_BOTH_KINDS = SetMetadata(_JOB_KIND | _CONTROL_KIND, _JOB_KIND | _CONTROL_KIND)
"""Note that the packet is of both kinds."""
IS_CONTROL_KIND = (_CONTROL_KIND, _CONTROL_KIND)
"""Matches packets of a kind that controls the network."""
NOTE_BELIEVED = SetMetadata(_BELIEVED, _BELIEVED)
"""Note that the packet has come by a port at which the switch believes DSCPs."""
IS_BELIEVED = (_BELIEVED, _BELIEVED)
"""Matches packets that have come by such a port."""


OF_JOB_KIND_OF_NO_JOB_ALONE = (_OF_NO_JOB_ALONE << _PLACE_SHIFT | _JOB_KIND, _PLACE | _JOB_KIND)
"""Matches packets of a kind that jobs use, between hosts that have jobs and of which no job has both alone."""


def note_group(main: int, own: int) -> SetMetadata:
    """Returns the action that notes the group of a packet's source, by the number of its main job and its own one."""
    return SetMetadata(own << _OWN_SHIFT | main, _WHOLE_GROUP)


def of_main_job(main: int) -> Match:
    """Returns what matches packets whose source is of any group with this main job."""
    return Match(metadata=(main, GROUP))


def of_group(main: int, own: int) -> Match:
    """Returns what matches packets whose source is of this group."""
    return Match(metadata=(own << _OWN_SHIFT | main, _WHOLE_GROUP))


def note_place(own: int | None) -> SetMetadata:
    """Returns the action that notes the place of a pair of hosts that one job alone uses; None: no job does.

    ``own`` is the class of the job, or its DSCP where it has one of its own.
    """
    return SetMetadata(_place(own) << _PLACE_SHIFT, _PLACE)


def note_own(own: int) -> SetMetadata:
    """Returns the action that notes that a packet is of the job that ``own`` stands for, whatever kind it is of."""
    return SetMetadata(_place(own) << _PLACE_SHIFT | _JOB_KIND, _PLACE | _JOB_KIND)


def of_job_kind_in(own: int) -> tuple[int, int]:
    """Returns what matches packets of a kind that jobs use, between hosts of the place that ``own`` stands for."""
    return _place(own) << _PLACE_SHIFT | _JOB_KIND, _PLACE | _JOB_KIND


def _place(own: int | None) -> int:
    return _OF_NO_JOB_ALONE if own is None else _OF_FIRST + own
