"""The shell script that is process 1 inside the User-Mode Linux box, and the kernel modules that it loads.

``box`` prepares the script's private folder ``$here``: ``command`` (executable), ``modules``, ``modprobe``, and empty
files that switch features on. The script writes the command's exit status into ``status``.
"""

from __future__ import annotations

MODULES: tuple[str, ...] = (
    "openvswitch", "veth", "bridge", "dummy", "ifb", "tun",
    "sch_htb", "sch_prio", "sch_netem", "sch_tbf", "sch_fq_codel", "cls_u32", "cls_fw", "cls_matchall", "act_police",
    "sch_ingress", "act_skbedit",
    "ip_tables", "iptable_mangle", "iptable_filter", "xt_DSCP", "xt_dscp", "xt_tcpudp", "xt_comment", "xt_multiport",
    "xt_cgroup", "xt_length", "xt_u32", "xt_owner", "vxlan", "geneve", "nf_tables", "tcp_diag", "inet_diag",
)  # fmt: skip
"""The script loads these modules at boot, without those that the kernel has built in."""

BUILT_IN_ELSEWHERE = frozenset({"tcp_diag", "inet_diag"})
"""The kernel has these modules built in where /usr/lib/uml/modules lacks them."""

INIT = r"""
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
fail() {
	echo "box: $*"
	sync
	poweroff -f
}

# The root is the machine's own file system. What the kernel or Open vSwitch writes goes to memory.
mount -t proc proc /proc && mount -t sysfs sys /sys || fail "cannot mount /proc and /sys"
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=0666 devpts /dev/pts
for folder in /dev/shm /run /var/log; do
	mount -t tmpfs tmpfs $folder || fail "cannot mount a tmpfs on $folder"
done
mkdir -p /run/lock /run/netns /run/openvswitch /run/box/tmp /var/log/openvswitch
chmod 1777 /run/lock /run/box/tmp /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
hostname localhost
ip link set lo up

# In reality links and switches wait for no program, neither of the hosts nor of the control plane.
for process in /proc/[0-9]*; do
	read -r name <$process/comm && case $name in ksoftirqd/*) chrt --rr -p 2 ${process#/proc/} ;; esac
done

# The kernel's own requests for a module go the same way as ours.
echo "$here/modprobe" >/proc/sys/kernel/modprobe
modprobe -d "$here" -a $(cat "$here/modules") || fail "cannot load the kernel modules under /usr/lib/uml/modules"
ulimit -n 65536
ulimit -c 0

if [ -e "$here/openvswitch" ]; then
	export OVS_RUNDIR=/run/openvswitch OVS_DBDIR=/run/openvswitch OVS_LOGDIR=/var/log/openvswitch
	ovsdb-tool create /run/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema &&
		ovsdb-server /run/openvswitch/conf.db --remote=punix:/run/openvswitch/db.sock --pidfile --detach \
			--no-chdir --log-file --verbose=console:off &&
		ovs-vsctl --no-wait init &&
		chrt --rr 1 ovs-vswitchd unix:/run/openvswitch/db.sock --pidfile --detach --no-chdir \
			--log-file --verbose=console:off ||
		fail "Open vSwitch did not start"
fi

# The command's output reaches the caller through two consoles, byte for byte: as a terminal where the caller has
# one, else through a pipe. The end of file of a third console says that the caller is gone.
for n in 1 2 3; do
	stty -F /dev/tty$n raw -echo
done
for n in 1 2; do
	if [ -e "$here/terminal$n" ]; then
		stty -F /dev/tty$n $(cat "$here/terminal$n")
		ln -s /dev/tty$n /run/box/$n
	else
		mkfifo /run/box/$n
	fi
done
copiers=
for n in 1 2; do
	[ -p /run/box/$n ] || continue
	cat /run/box/$n >/dev/tty$n &
	copiers="$copiers $!"
done

# A shell's background commands ignore SIGINT; this one must not.
setsid env --default-signal=INT,QUIT "$here/command" </dev/null >/run/box/1 2>/run/box/2 &
command=$!
(
	cat /dev/tty3 >/dev/null
	touch /run/box/alone
	kill -INT "-$command"
	for moment in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		kill -0 "$command" || break
	done
	rm -rf "$here"
	sync
	poweroff -f
) >/dev/null 2>&1 &
wait $command
echo $? >"$here/status"
# What the command left running may hold its output open: that does not hold up the end.
if [ -n "$copiers" ]; then
	(sleep 1; kill $copiers) >/dev/null 2>&1 &
	wait $copiers
fi
stty -F /dev/tty1 -echo
stty -F /dev/tty2 -echo
[ -e /run/box/alone ] && rm -rf "$here"
sync
poweroff -f
"""
