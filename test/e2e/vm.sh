# What virtual machines are made of, for the scripts that read this file. It expects $dir, a folder of
# the script's own, $kernel, as test/programs/make makes it, and these:
#   nodes cpus_of_node mib_of_node sockets    of the machine
# shellcheck shell=bash disable=SC2154
# On a busy host the kernel calibrates the processor's counter wrongly, and seconds pass ten times too fast.
right_clock='clocksource=acpi_pm tsc=unstable'
modules='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk failover net_failover virtio_net overlay'

program() { # path [name]: into the root, with the libraries that it is linked with and that are not there
	install -D -m755 "$1" "$dir/root/$bin/${2:-$(basename "$1")}"
	{ ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
		[ -e "$dir/root$library" ] || install -D "$(realpath "$library")" "$dir/root$library"
	done
}

disk() { # size: of the root
	/sbin/mke2fs -q -t ext4 -O ^has_journal -d "$dir/root" "$dir/root.img" "$1"
}

initrd() { # all that it takes to find the disk. The command line's first=PATH is what it starts there
	mkdir -p "$dir"/initrd/{bin,dev,new,proc}
	cp "$(command -v busybox)" "$dir/initrd/bin"
	for module in $modules; do # built into some kernels
		find "$kernel" -name "$module.ko*" -exec cp {} "$dir/initrd" \;
	done
	find "$dir/initrd" -name '*.ko.xz' -exec xz -d {} +
	find "$dir/initrd" -name '*.ko.zst' -exec zstd -q -d --rm {} +
	cat >"$dir/initrd/init" <<-END
		#!/bin/busybox sh
		/bin/busybox mount -t devtmpfs none /dev
		/bin/busybox mount -t proc none /proc
		for module in $modules; do
			[ ! -e /\$module.ko ] || /bin/busybox insmod /\$module.ko
		done
		while [ ! -b /dev/vda ]; do /bin/busybox sleep 0.1; done
		/bin/busybox mount -t ext4 /dev/vda /new
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
	echo "-m $((nodes * mib_of_node)) -smp $((nodes * cpus_of_node)),sockets=$sockets"
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

# Emulated, as /dev/kvm is not everywhere, and with one thread for all CPUs: that is quicker and steadier
# than one for each, and Linux 6.12 panics with more (int3 while it patches itself, QEMU 7.2).
emulate() { # what the root starts first, the kernel's further arguments, qemu's. It never returns
	local first=$1 append=$2
	shift 2
	# shellcheck disable=SC2046
	exec qemu-system-x86_64 -accel tcg,thread=single -machine q35 -cpu max -display none -monitor none -nic none \
		-kernel "$kernel"/boot/vmlinuz-* -initrd "$dir/initrd.img" \
		-append "console=ttyS0 panic=-1 nowatchdog mitigations=off first=$first $append" \
		-drive "file=$dir/root.img,format=raw,if=virtio,snapshot=on" $(numa) "$@"
}
