"""The priorities of the rules in each table."""

from __future__ import annotations

# Priorities in the classify table. A rule that names a destination port goes before one that names a source port, so
# that a packet which matches both always belongs to the same job. Of these, a rule that names both hosts goes first.
MISS = 0
BY_DSCP = 100
BY_TRUSTED_PORT = 200
FROM_TUNNEL = 300
PAIR = 1000
FROM_LISTENER = 1001
BY_SOURCE_PORT = 1002
TO_LISTENER = 1003
BY_DESTINATION_PORT = 1004
BY_BOTH_PORTS = 1005
ACKNOWLEDGEMENT = 1500
BY_INNER_PORT = 2000
CONTROL = 3000
# The priorities of the rules that lead to a host, in the forward table: by its IP addresses, and by its MAC address.
TO_HOST = 100
TO_HOST_BY_MAC = 50
# The priority of the rule for announcements, in the gate's table: above that of the gate itself, which is 1.
ANNOUNCEMENT = 2
# The priorities in the tables between these two. A packet that reports congestion is both RoCE and control traffic, and
# never a job's data. The DSCP of a job goes before the kind of a packet. IP addresses go before MAC addresses, because
# a packet that a router forwards has the router's MAC address. What a group says of its own goes before what it has in
# common with others.
KIND = 100
ALL_OF_PAIR = 110
ROCEV2_OF_PAIR = 120
CONTROL_KIND = 200
OWN_DSCP = 300
SOURCE = 100
SOURCE_BY_MAC = 50
CONTROL_SOURCE = 200
PAIR_PLACE_OF_GROUP = 120
PAIR_PLACE = 100
OF_ANY_JOB = 60
PAIR_PLACE_OF_GROUP_BY_MAC = 50
PAIR_PLACE_BY_MAC = 40
OF_ANY_JOB_BY_MAC = 20
LAST_CLASS = 1
LAST_CLASS_UNMARKED = 2
OWN_CLASS = 3
OWN_CLASS_UNMARKED = 4
BY_OUTER_DSCP = 5
