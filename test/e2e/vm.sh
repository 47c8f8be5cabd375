# What virtual machines are made of, for the scripts that read this file. It expects $dir, a folder of
# the script's own, $kernel, as test/programs/make makes it, and these:
#   nodes cpus_of_node mib_of_node sockets    of the machine
# shellcheck shell=bash disable=SC2154
# On a busy host the kernel calibrates the processor's counter wrongly, and seconds pass ten times too fast.
right_clock='clocksource=acpi_pm tsc=unstable'
# What costs an emulated machine most. An instruction that is repeated (rep movsb) is executed once for each byte
# of a page (erms); each system call that looks at a program's memory switches a guard on and off (smap).
processor='max,-erms,-smap,-smep,-la57,-pku,-umip'
# The kernel clears each page once more, measures its own sources of randomness, and reads certificates
# and types that nothing here asks for.
spared='init_on_alloc=0 initcall_blacklist=load_system_certificate_list,jent_mod_init,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init'
virtio='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci'
network='failover net_failover virtio_net' # modules for a machine that has one
# Where the kernel knows memory that is a disk (pmem) the root is such, and its programs run where they lie (dax). While
# a machine that counts instructions waits for another disk, all its timers go off one after another; and the
# kernel moves a program's pages to the NUMA node of each container that it starts, where all is translated anew.
if [ -n "$(find "$kernel" -name 'virtio_pmem.ko*')" ]; then
	device=pmem0 modules="$virtio libnvdimm nd_btt nd_pmem nd_virtio virtio_pmem overlay" options='-o dax=always,nobarrier'
else
	device=vda modules="$virtio virtio_blk overlay" options=
fi

program() { # path [name]: into the root, with the libraries that it is linked with and that are not there
	install -D -m755 "$1" "$dir/root/$bin/${2:-$(basename "$1")}"
	libraries "$1"
}

libraries() { # path: into the root, where they are not there
	{ ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
		[ -e "$dir/root$library" ] || install -D "$(realpath "$library")" "$dir/root$library"
	done
}

disk() { # size: of the root
	/sbin/mke2fs -q -t ext4 -b 4096 -O ^has_journal -d "$dir/root" "$dir/root.img" "$1"
	size=$1
}

initrd() { # all that it takes to find the disk. The command line's first=PATH is what it starts there
	mkdir -p "$dir"/initrd/{bin,dev,new,proc}
	cp "$(command -v busybox)" "$dir/initrd/bin"
	for module in $modules; do # built into some kernels
		find "$kernel" -name "$module.ko*" -exec cp {} "$dir/initrd" \;
	done
	find "$dir/initrd" -name '*.ko.xz' -exec xz -d {} +
	find "$dir/initrd" -name '*.ko.zst' -exec zstd -q -d --rm {} +
	find "$dir/initrd" -name '*.ko' -exec strip -g -R .BTF {} + # their signatures as well: each takes half a second to check
	cat >"$dir/initrd/init" <<-END
		#!/bin/busybox sh
		/bin/busybox mount -t devtmpfs none /dev
		/bin/busybox mount -t proc none /proc
		for module in $modules; do
			[ ! -e /\$module.ko ] || /bin/busybox insmod /\$module.ko
		done
		while [ ! -b /dev/$device ]; do /bin/busybox sleep 0.1; done
		/bin/busybox mount -t ext4 $options /dev/$device /new
		/bin/busybox mount -o move /dev /new/dev
		/bin/busybox mount -o move /proc /new/proc
		/bin/busybox mount -t sysfs none /new/sys
		/bin/busybox mount -t cgroup2 -o nsdelegate,favordynmods none /new/sys/fs/cgroup
		exec /bin/busybox switch_root /new "\$first"
	END
	chmod +x "$dir/initrd/init"
	(cd "$dir/initrd" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd.img"
}

distance() { # from to: neighbours 11, the same socket 12, the other one 20 or 32
	local half=$((nodes / sockets))
	if [ $(($1 / half)) = $(($2 / half)) ]; then
		echo $((($1 ^ $2) == 1 ? 11 : 12))
	else
		echo $((($1 + half) % nodes == $2 ? 20 : 32))
	fi
}

numa() { # qemu's arguments for nodes and distances
	local a b
	echo "-m $((nodes * mib_of_node)),maxmem=8G -smp $((nodes * cpus_of_node)),sockets=$sockets"
	for ((a = 0; a < nodes; a++)); do
		echo "-object memory-backend-ram,id=m$a,size=${mib_of_node}M"
		echo "-numa node,nodeid=$a,cpus=$((a * cpus_of_node))-$(((a + 1) * cpus_of_node - 1)),memdev=m$a"
	done
	for ((a = 0; a < nodes; a++)); do
		for ((b = 0; b < nodes; b++)); do
			[ $a = $b ] || echo "-numa dist,src=$a,dst=$b,val=$(distance $a $b)"
		done
	done
}

root_disk() { # qemu's arguments for it: what is written is lost at the end
	case $device in
	pmem0) echo "-object memory-backend-file,id=root,mem-path=$dir/root.img,size=$size,share=off -device virtio-pmem-pci,memdev=root" ;;
	vda) echo "-drive file=$dir/root.img,format=raw,if=virtio,snapshot=on" ;;
	esac
}

# Stops the machine for a moment, over and over. A processor that waits for another one without a pause, as Linux 6.1 does
# for each that it brings up, uses all instructions until the next timer, and that other one gets none (QEMU 7.2); after
# a stop the next processor has its turn. For machines that count instructions, in the background.
share_turns() {
	mkfifo "$dir/monitor.in" "$dir/monitor.out" "$dir/never"
	monitor=pipe:$dir/monitor
	{
		cat <"$dir/monitor.out" >/dev/null &
		while ! read -rt 0.05; do printf 'stop\ncont\n'; done <>"$dir/never" >"$dir/monitor.in"
	} &
}

# Emulated, as /dev/kvm is not everywhere, and with one thread for all CPUs: that is quicker and steadier
# than one for each, and Linux 6.12 panics with more (int3 while it patches itself, QEMU 7.2).
emulate() { # what the root starts first, the kernel's further arguments, qemu's. It never returns
	local first=$1 append=$2
	shift 2
	# shellcheck disable=SC2046
	exec qemu-system-x86_64 -accel tcg,thread=single -machine q35 -cpu "$processor" -display none -monitor "${monitor:-none}" -nic none \
		-kernel "$kernel"/boot/vmlinuz-* -initrd "$dir/initrd.img" \
		-append "console=ttyS0 panic=-1 nowatchdog mitigations=off $spared first=$first $append" \
		$(root_disk) $(numa) "$@"
}
