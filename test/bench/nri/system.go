package main

import (
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A system that is not there, for a numafitd that has the pool by cgroups: a directory that the
// programs in C are confined to, with their libraries, the /sys of a machine and a cgroup v2 tree.
// All of these are plain files on a tmpfs, which nobody has to mount: what a write of a cgroup takes
// the kernel is not measured. The machine is rack.machine's.

const (
	nrNodes   = 8
	nrSockets = 2
	nrCores   = machineCPUs / 2 // core c has the CPUs c and nrCores+c
	nodeMiB   = 512 << 10
	tree      = "sys/fs/cgroup"
)

type system struct{ dir string }

func (s system) put(name, text string) {
	path := filepath.Join(s.dir, name)
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	check(os.WriteFile(path, []byte(text), 0o644))
}

// install copies a program with its libraries, to where it looks for them.
func (s system) install(program string) {
	copyFile := func(from, to string) {
		content, err := os.ReadFile(from)
		check(err)
		s.put(to, string(content))
		check(os.Chmod(filepath.Join(s.dir, to), 0o755))
	}
	copyFile(program, filepath.Base(program))
	libraries, err := exec.Command("ldd", program).Output()
	check(err)
	for _, line := range strings.Split(string(libraries), "\n") {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				copyFile(word, word)
			}
		}
	}
}

// newSystem is a whole one with these programs.
func newSystem(dir string, programs ...string) system {
	s := newTree(dir)
	for _, program := range programs {
		s.install(program)
	}
	s.put("proc/self/mountinfo", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	s.put("proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000000\n")
	s.addCPUs()
	s.addNodes()
	s.put(tree+"/cgroup.controllers", "cpuset cpu memory\n")
	s.put(tree+"/cgroup.procs", "")
	check(os.MkdirAll(filepath.Join(dir, "run"), 0o755))
	return s
}

// newTree has nothing but the kubelet's cgroups.
func newTree(dir string) system {
	s := system{dir}
	for name, text := range cgroupFiles {
		s.put("templates/"+name, text)
	}
	s.empty()
	return s
}

// command is what starts a program there.
func (s system) command(program string) []string {
	command := []string{"chroot", s.dir, "/" + filepath.Base(program)}
	if os.Geteuid() != 0 {
		return append([]string{"unshare", "--user", "--map-root-user"}, command...)
	}
	return command
}

// canConfine is nil where a program can be started there.
func (s system) canConfine(program string) error {
	command := append(s.command(program), "--version")
	if text, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// like is the set of the CPUs that are so, as the kernel's mask.
func like(so func(cpu int) bool) string {
	var words [machineCPUs / 32]uint32
	for cpu := range machineCPUs {
		if so(cpu) {
			words[cpu/32] |= 1 << (cpu % 32)
		}
	}
	var text []string
	for i := len(words) - 1; i >= 0; i-- {
		text = append(text, fmt.Sprintf("%08x", words[i]))
	}
	return strings.Join(text, ",") + "\n"
}

func nodeOf(cpu int) int { return cpu % nrCores * nrNodes / nrCores }

func (s system) addCPUs() {
	const cpus = "sys/devices/system/cpu/"
	for _, name := range []string{"online", "possible", "present"} {
		s.put(cpus+name, fmt.Sprintf("0-%d\n", machineCPUs-1))
	}
	var sockets [nrSockets]string
	for i := range sockets {
		sockets[i] = like(func(cpu int) bool { return nodeOf(cpu)*nrSockets/nrNodes == i })
	}
	for cpu := range machineCPUs {
		dir, socket := fmt.Sprintf("%scpu%d/topology/", cpus, cpu), nodeOf(cpu)*nrSockets/nrNodes
		s.put(dir+"physical_package_id", fmt.Sprintln(socket))
		s.put(dir+"core_id", fmt.Sprintln(cpu%nrCores))
		s.put(dir+"core_cpus", like(func(other int) bool { return other%nrCores == cpu%nrCores }))
		s.put(dir+"package_cpus", sockets[socket])
	}
}

// distance is what rack.machine has: on the node, the node beside it, the socket, the other socket.
func distance(a, b int) int {
	return [...]int{10, 11, 12, 30}[bits.Len(uint(a^b))]
}

func (s system) addNodes() {
	const nodes = "sys/devices/system/node/"
	for _, name := range []string{"online", "possible", "has_cpu", "has_memory", "has_normal_memory"} {
		s.put(nodes+name, fmt.Sprintf("0-%d\n", nrNodes-1))
	}
	for node := range nrNodes {
		dir := fmt.Sprintf("%snode%d/", nodes, node)
		var distances []string
		for other := range nrNodes {
			distances = append(distances, fmt.Sprint(distance(node, other)))
		}
		first := node * nrCores / nrNodes
		last := first + nrCores/nrNodes - 1
		s.put(dir+"cpulist", fmt.Sprintf("%d-%d,%d-%d\n", first, last, nrCores+first, nrCores+last))
		s.put(dir+"cpumap", like(func(cpu int) bool { return nodeOf(cpu) == node }))
		s.put(dir+"distance", strings.Join(distances, " ")+"\n")
		s.put(dir+"meminfo", fmt.Sprintf("Node %d MemTotal: %d kB\nNode %[1]d MemFree: %[2]d kB\n", node, nodeMiB<<10))
	}
}

// Cgroups

var cgroupFiles = map[string]string{
	"cpuset.cpus": "\n", "cpuset.cpus.effective": fmt.Sprintf("0-%d\n", machineCPUs-1),
	"cpuset.mems": "\n", "cpuset.mems.effective": fmt.Sprintf("0-%d\n", nrNodes-1),
	"cpu.max": "max 100000\n", "cgroup.events": "populated 1\nfrozen 0\n", "cgroup.procs": "1\n",
}

// addCgroup makes one that numafitd may write; linkCgroup one that it has no reason to, whose files
// are links to those of all others.
func (s system) addCgroup(path string) {
	for name, text := range cgroupFiles {
		s.put(tree+path+"/"+name, text)
	}
}

func (s system) linkCgroup(path string) {
	dir := filepath.Join(s.dir, tree, path)
	check(os.MkdirAll(dir, 0o755))
	for name := range cgroupFiles {
		check(os.Link(filepath.Join(s.dir, "templates", name), filepath.Join(dir, name)))
	}
}

// removeCgroup removes it with those below it.
func (s system) removeCgroup(path string) { check(os.RemoveAll(filepath.Join(s.dir, tree, path))) }

// empty has no pods in it, and no bounds.
func (s system) empty() {
	s.removeCgroup("/kubepods")
	s.addCgroup("/kubepods")
	s.addCgroup("/kubepods/burstable")
}

// cpus is what was set for a cgroup.
func (s system) cpus(path string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, tree, path, "cpuset.cpus"))
	check(err)
	return strings.TrimSpace(string(text))
}

// write sets them, as numafitd does, and takes the time.
func (s system) write(path, cpus string) time.Duration {
	name := filepath.Join(s.dir, tree, path, "cpuset.cpus")
	from := time.Now()
	file, err := syscall.Open(name, syscall.O_WRONLY|syscall.O_TRUNC|syscall.O_CLOEXEC, 0)
	check(err)
	_, err = syscall.Write(file, []byte(cpus))
	check(err)
	check(syscall.Close(file))
	return time.Since(from)
}
