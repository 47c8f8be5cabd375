package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A machine that is not there, for programs that look at the one they run on: bind mounts over what
// the kubelet and numafitd read of it. It is test/machines/kep3545-8 without huge pages: NUMA node n
// has the cores 8n..8n+7, core c has the CPUs c and 64+c, and four cores share a cache.

const (
	madeNodes, madeCPUs, madeSockets = 8, 128, 2
	madeCores                        = madeCPUs / 2
	madeMemoryKB                     = 64 << 20 // of each node
	coresPerNode                     = madeCores / madeNodes
	coresPerCache                    = 4
)

// nodeOf is the NUMA node that the CPU is on.
func nodeOf(cpu int) int { return cpu % madeCores / coresPerNode }

// What the kubelet sets of the whole kernel, unless it finds these values.
var kernelTunables = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// makeUp puts the machine where programs look for theirs, and covers folders that are compiled into
// the kubelet: for device plugins, and for links to containers' logs.
func (n *node) makeUp() {
	n.Helper()
	dir := n.path("made-up")
	files := map[string]string{"proc/cpuinfo": madeCPUInfo(), "proc/meminfo": fmt.Sprintf(
		"MemTotal: %d kB\nMemFree: %[1]d kB\nMemAvailable: %[1]d kB\nSwapTotal: 0 kB\n", madeNodes*madeMemoryKB)}
	for name, value := range kernelTunables {
		files["proc/sys/"+name] = value + "\n"
	}
	for name := range files {
		n.covered = append(n.covered, "/"+name)
	}
	n.covered = append(n.covered, "/sys/devices/system/cpu", "/sys/devices/system/node")
	addCPUs(files)
	addNodes(files)
	for name, text := range files {
		n.must(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		n.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for cpu := range madeCPUs {
		n.must(os.Symlink(fmt.Sprintf("../../cpu/cpu%d", cpu),
			fmt.Sprintf("%s/sys/devices/system/node/node%d/cpu%d", dir, nodeOf(cpu), cpu)))
		n.must(os.Symlink(fmt.Sprintf("../../node/node%d", nodeOf(cpu)),
			fmt.Sprintf("%s/sys/devices/system/cpu/cpu%d/node%d", dir, cpu, nodeOf(cpu))))
	}
	for i, path := range n.covered {
		if err := syscall.Mount(dir+path, path, "", syscall.MS_BIND, ""); err != nil {
			n.covered = n.covered[:i]
			n.Fatalf("mount over %s: %v", path, err)
		}
	}
	for _, path := range []string{"/var/log", filepath.Dir(kubeletRoot), kubeletRoot} {
		n.must(os.MkdirAll(path, 0o755)) // below what is covered
		n.must(syscall.Mount("none", path, "tmpfs", 0, ""))
		n.covered = append(n.covered, path)
	}
	n.must(syscall.Mount("", kubeletRoot, "", syscall.MS_SHARED, "")) // or it mounts itself over it
}

func (n *node) uncover() {
	for _, path := range slices.Backward(n.covered) {
		if err := syscall.Unmount(path, 0); err != nil {
			n.Errorf("something is left in %s: %v", path, err)
		}
	}
}

func madeCPUInfo() string {
	var s strings.Builder
	for cpu := range madeCPUs {
		fmt.Fprintf(&s, "processor\t: %d\nvendor_id\t: made-up\ncpu MHz\t\t: 2000.000\nphysical id\t: %d\ncore id\t\t: %d\n\n",
			cpu, socketOf(cpu), cpu%madeCores)
	}
	return s.String()
}

func socketOf(cpu int) int { return cpu % madeCores * madeSockets / madeCores }

func addCPUs(files map[string]string) {
	const root = "sys/devices/system/cpu/"
	for _, name := range []string{"online", "possible", "present"} {
		files[root+name] = fmt.Sprintf("0-%d\n", madeCPUs-1)
	}
	for cpu := range madeCPUs {
		dir, core := fmt.Sprintf("%scpu%d/", root, cpu), cpu%madeCores
		threads := like(func(other int) bool { return other%madeCores == core })
		socket := like(func(other int) bool { return socketOf(other) == socketOf(cpu) })
		cache := like(func(other int) bool { return other%madeCores/coresPerCache == core/coresPerCache })
		for name, value := range map[string]string{
			"online": "1", "topology/physical_package_id": strconv.Itoa(socketOf(cpu)), "topology/core_id": strconv.Itoa(core),
			"topology/core_cpus": mask(threads), "topology/core_cpus_list": list(threads),
			"topology/thread_siblings": mask(threads), "topology/thread_siblings_list": list(threads),
			"topology/package_cpus": mask(socket), "topology/package_cpus_list": list(socket),
			"topology/core_siblings": mask(socket), "topology/core_siblings_list": list(socket),
			"cache/index3/id": strconv.Itoa(core / coresPerCache), "cache/index3/level": "3", "cache/index3/type": "Unified",
			"cache/index3/size": "16384K", "cache/index3/shared_cpu_map": mask(cache), "cache/index3/shared_cpu_list": list(cache),
		} {
			files[dir+name] = value + "\n"
		}
	}
}

func addNodes(files map[string]string) {
	const root = "sys/devices/system/node/"
	for _, name := range []string{"online", "possible", "has_cpu", "has_memory", "has_normal_memory"} {
		files[root+name] = fmt.Sprintf("0-%d\n", madeNodes-1)
	}
	for node := range madeNodes {
		dir := fmt.Sprintf("%snode%d/", root, node)
		cpus := like(func(cpu int) bool { return nodeOf(cpu) == node })
		var distances []string
		for other := range madeNodes {
			distances = append(distances, strconv.Itoa(distance(node, other)))
		}
		files[dir+"cpulist"], files[dir+"cpumap"] = list(cpus)+"\n", mask(cpus)+"\n"
		files[dir+"distance"] = strings.Join(distances, " ") + "\n"
		files[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal: %d kB\nNode %[1]d MemFree: %[2]d kB\n", node, madeMemoryKB)
	}
}

func distance(a, b int) int {
	switch {
	case a == b:
		return 10
	case a^b == 1:
		return 11
	case a*madeSockets/madeNodes == b*madeSockets/madeNodes:
		return 12
	}
	return 30
}

// like are the CPUs that are so.
func like(so func(cpu int) bool) (cpus []int) {
	for cpu := range madeCPUs {
		if so(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

func list(cpus []int) string {
	var parts []string
	for _, cpu := range cpus {
		parts = append(parts, strconv.Itoa(cpu))
	}
	return strings.Join(parts, ",")
}

// mask is the kernel's other form: words of 32 bits in hexadecimal, the highest first.
func mask(cpus []int) string {
	words := make([]uint32, madeCPUs/32)
	for _, cpu := range cpus {
		words[len(words)-1-cpu/32] |= 1 << (cpu % 32)
	}
	var parts []string
	for _, w := range words {
		parts = append(parts, fmt.Sprintf("%08x", w))
	}
	return strings.Join(parts, ",")
}
