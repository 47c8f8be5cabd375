# PCI devices on several NUMA nodes of a virtual machine, and NUMA nodes that are a device's memory and have no CPUs,
# for scripts that have read vm.sh. The kernel has both from the machine: /sys/bus/pci/devices/*/numa_node from
# root bridges on a NUMA node (pxb-pcie), has_generic_initiator from the firmware's table SRAT.
# shellcheck shell=bash disable=SC2154
mib_of_device=64
memory_near=(0 3)     # device memory is the nodes after the last one with CPUs; the CPUs that are nearest to each
devices_on=(1 2 4 5)  # a bridge each, with a device of each kind
to_memory=14          # its distance from those CPUs

# The bridge's bus, which firmware and QEMU number alike.
bus_of() { echo $(($1 * 16)); } # NUMA node

numa_with_devices() { # qemu's arguments, after those of numa(), of which the size of all memory is another then
	local a b i j
	echo "-m $((nodes * mib_of_node + ${#memory_near[@]} * mib_of_device)),maxmem=8G"
	for i in "${!memory_near[@]}"; do
		a=$((nodes + i))
		echo "-object memory-backend-ram,id=m$a,size=${mib_of_device}M -numa node,nodeid=$a,memdev=m$a"
		for ((b = 0; b < nodes; b++)); do
			both_ways "$a" $b $((b == memory_near[i] ? to_memory : to_memory + $(distance "${memory_near[i]}" $b)))
		done
		for ((j = 0; j < i; j++)); do
			both_ways "$a" $((nodes + j)) $((2 * to_memory + $(distance "${memory_near[i]}" "${memory_near[j]}")))
		done
	done
	for a in "${devices_on[@]}"; do
		echo "-device pxb-pcie,id=bridge$a,bus=pcie.0,bus_nr=$(bus_of "$a"),numa_node=$a"
		echo "-device pcie-root-port,id=port$a,bus=bridge$a,chassis=$a"
		echo "-device edu,bus=port$a,addr=0.0,multifunction=on -device pci-testdev,bus=port$a,addr=0.1"
	done
}

both_ways() { # NUMA node, NUMA node, distance
	echo "-numa dist,src=$1,dst=$2,val=$3 -numa dist,src=$2,dst=$1,val=$3"
}

# QEMU 7.2 writes no generic initiators into its SRAT, so this is another one, which the kernel takes in its place as it is
# newer (CONFIG_ACPI_TABLE_UPGRADE). It has the same CPUs and memory.
firmware() { # to stdout: what goes before the initrd
	local table sum=0 i folder="$dir/firmware/kernel/firmware/acpi"
	table=$(srat 0)
	for ((i = 0; i < ${#table}; i += 2)); do sum=$((sum + 0x${table:i:2})); done
	mkdir -p "$folder"
	# shellcheck disable=SC2059
	printf "$(srat $(((256 - sum % 256) % 256)) | sed 's/../\\x&/g')" >"$folder/SRAT.aml"
	(cd "$dir/firmware" && find kernel | cpio -o -H newc --quiet)
}

srat() { # checksum: the table in hexadecimal digits, by the ACPI specification, 5.2.16
	local rows
	rows=$(srat_rows)
	text SRAT && le 4 $((48 + ${#rows} / 2)) && le 1 1 "$1" && text 'BOCHS BXPC    ' && le 4 2 && text BXPC && le 4 1
	le 4 1 && le 8 0 && echo "$rows"
}

srat_rows() {
	local a cpu start=0 size
	for ((cpu = 0; cpu < nodes * cpus_of_node; cpu++)); do # type 0
		le 1 0 16 $((cpu / cpus_of_node)) "$cpu" && le 4 1 && le 1 0 0 0 0 && le 4 0
	done
	memory_row 0 0 $((640 << 10)) 1
	for ((a = 0; a < nodes + ${#memory_near[@]}; a++)); do
		size=$(((a < nodes ? mib_of_node : mib_of_device) << 20))
		memory_row $a $((a ? start : 1 << 20)) $((a ? size : size - (1 << 20))) 1
		start=$((start + size))
	done
	memory_row 0 $((4 << 30)) $((8 << 30)) 3 # the root, and what else is plugged
	for ((a = nodes; a < nodes + ${#memory_near[@]}; a++)); do # type 5, of a PCI device
		le 1 5 32 0 1 && le 4 $a && le 2 0 $(($(bus_of $a) << 8)) && le 4 0 0 0 1 0
	done
}

memory_row() { # NUMA node, address, length, flags
	le 1 1 40 && le 4 "$1" && le 2 0 && le 8 "$2" "$3" && le 4 0 "$4" && le 8 0
}

le() { # bytes, numbers...: each with its lowest byte first
	local width=$1 number i
	shift
	for number; do
		for ((i = 0; i < width; i++)); do printf %02x $((number >> 8 * i & 255)); done
	done
}

text() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
