package interop

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The machine that numafitd believes to run on: the one of test/machines/kep3545-8, as a root
// directory of its own with a made-up /sys, in which CPUs and memory can come and go. Mounts need a
// mount namespace (the script `run` makes one); without, the recorded machine is taken, on which
// nothing comes or goes, and whose disk is never full.

const (
	nrCPUs       = nrNodes * perNode
	nrCores      = nrCPUs / 2
	coresOfNode  = nrCores / nrNodes
	memoryMiB    = 64 << 10 // of each node
	pages2Mi     = 1024
	pages1Gi     = 4
	runDirectory = "8m" // the tmpfs: several journals of the largest kind that the settings here allow
)

type hardware struct {
	*soak
	root   string // "": nothing can be made up
	online cpuSet
	memory [nrNodes]int // MiB
	pages  [nrNodes]int // of 1 GiB
	files  map[string]string
}

func nodeOfCPU(cpu int) int { return cpu % nrCores / coresOfNode }

// onNode are the machine's CPUs of that NUMA node.
func onNode(node int) cpuSet { return like(func(cpu int) bool { return nodeOfCPU(cpu) == node }) }

// like are the CPUs that are so.
func like(so func(cpu int) bool) (s cpuSet) {
	for cpu := range nrCPUs {
		if so(cpu) {
			s[cpu/64] |= 1 << (cpu % 64)
		}
	}
	return s
}

// mask is the kernel's other form: words of 32 bits in hexadecimal, the highest first.
func (s cpuSet) mask() string {
	var words []string
	for i := nrCPUs/32 - 1; i >= 0; i-- {
		words = append(words, fmt.Sprintf("%08x", uint32(s[i/2]>>(i%2*32))))
	}
	return strings.Join(words, ",")
}

// mount puts programs, libraries and /proc beside the /sys that is made up, and a small tmpfs below
// the run directory. What the soak keeps has the same path inside and outside.
func (m *hardware) mount() {
	for _, path := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/dev", "/proc"} {
		if _, err := os.Stat(path); err == nil {
			m.bind(path, m.root+path)
		}
	}
	run := filepath.Join(m.dir, "run")
	m.must(os.MkdirAll(run, 0o700))
	m.must(syscall.Mount("none", run, "tmpfs", 0, "mode=0700,size="+runDirectory))
	m.bind(m.dir, m.root+m.dir)
	m.bind(filepath.Dir(absolute(os.Getenv("NUMAFITD"))), m.root+"/programs")
}

func absolute(path string) string {
	path, _ = filepath.Abs(path)
	return path
}

func (m *hardware) bind(from, to string) {
	m.must(os.MkdirAll(to, 0o755))
	m.must(syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""))
}

func newHardware(s *soak) *hardware {
	m := &hardware{soak: s, files: map[string]string{}}
	if os.Getenv("SOAK_NAMESPACE") != "" {
		m.root = s.dir + ".root"
		m.must(os.Mkdir(m.root, 0o755))
		m.must(syscall.Mount("none", m.root, "tmpfs", 0, "mode=0755"))
		m.mount()
	}
	m.restore()
	return m
}

// bytes are what containers may have of a kind of memory on the node: huge pages to the byte,
// ordinary memory less the huge pages, which are a few GiB.
func (m *hardware) bytes(node int, kind string) (low, high uint64) {
	const gib = 1 << 30
	switch all := uint64(m.memory[node]) << 20; kind {
	case "memory":
		return all - (pages1Gi+4)*gib, all
	case "hugepages-1Gi":
		return uint64(m.pages[node]) * gib, uint64(m.pages[node]) * gib
	}
	return 0, math.MaxUint64
}

// name is numafitd's setting for it.
func (m *hardware) name() string {
	if m.root == "" {
		return machine
	}
	return "this"
}

func (m *hardware) remove() {
	if m.root != "" {
		_ = syscall.Unmount(filepath.Join(m.dir, "run"), syscall.MNT_DETACH)
		_ = syscall.Unmount(m.root, syscall.MNT_DETACH)
		os.Remove(m.root)
	}
}

// restore makes it whole.
func (m *hardware) restore() {
	m.online = everyCPU
	for node := range nrNodes {
		m.memory[node], m.pages[node] = memoryMiB, pages1Gi
	}
	m.write()
}

// onlineFile is what numafitd looks at. Before it says that a CPU is there all others have it, and
// they have it until it says that the CPU is gone: a kernel's files never say otherwise.
const onlineFile = "sys/devices/system/cpu/online"

// write makes /sys say what the machine is now: files that have changed, each at once.
func (m *hardware) write() {
	if m.root == "" {
		return
	}
	files := map[string]string{}
	m.addCPUs(files)
	m.addNodes(files)
	gone := m.files[onlineFile] != "" && !mustSet(m.files[onlineFile]).minus(m.online).empty()
	if gone {
		m.put(filepath.Join(m.root, onlineFile), files[onlineFile])
	}
	for name := range m.files {
		if _, there := files[name]; !there {
			m.must(os.Remove(filepath.Join(m.root, name)))
		}
	}
	for _, name := range sortedKeys(files) {
		if before, there := m.files[name]; name != onlineFile && (!there || before != files[name]) {
			m.put(filepath.Join(m.root, name), files[name])
		}
	}
	m.put(filepath.Join(m.root, onlineFile), files[onlineFile])
	m.files = files
	m.prune(filepath.Join(m.root, "sys/devices/system/cpu"))
}

func (m *hardware) put(path, text string) {
	m.must(os.MkdirAll(filepath.Dir(path), 0o755))
	m.must(os.WriteFile(path+".new", []byte(text+"\n"), 0o644))
	m.must(os.Rename(path+".new", path))
}

// prune removes directories that have become empty, such as topology/ of a CPU that is offline.
func (m *hardware) prune(top string) {
	filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "topology" {
			os.Remove(path) // fails unless it is empty
			return fs.SkipDir
		}
		return nil
	})
}

func (m *hardware) addCPUs(files map[string]string) {
	const root = "sys/devices/system/cpu/"
	files[root+"possible"], files[root+"present"] = everyCPU.String(), everyCPU.String()
	files[onlineFile] = m.online.String()
	for cpu := range nrCPUs {
		dir := fmt.Sprintf("%scpu%d/", root, cpu)
		if m.online.and(like(func(c int) bool { return c == cpu })).empty() {
			files[dir+"online"] = "0"
			continue
		}
		core, socket := cpu%nrCores, nodeOfCPU(cpu)*2/nrNodes
		threads := m.online.and(like(func(c int) bool { return c%nrCores == core }))
		neighbours := m.online.and(like(func(c int) bool { return nodeOfCPU(c)*2/nrNodes == socket }))
		files[dir+"online"] = "1"
		for name, value := range map[string]string{"physical_package_id": strconv.Itoa(socket), "core_id": strconv.Itoa(core),
			"core_cpus": threads.mask(), "core_cpus_list": threads.String(), "thread_siblings": threads.mask(),
			"thread_siblings_list": threads.String(), "package_cpus": neighbours.mask(), "package_cpus_list": neighbours.String(),
			"core_siblings": neighbours.mask(), "core_siblings_list": neighbours.String()} {
			files[dir+"topology/"+name] = value
		}
	}
}

func (m *hardware) addNodes(files map[string]string) {
	const root = "sys/devices/system/node/"
	for _, name := range []string{"online", "possible", "has_cpu", "has_memory", "has_normal_memory"} {
		files[root+name] = fmt.Sprintf("0-%d", nrNodes-1)
	}
	for node := range nrNodes {
		dir := fmt.Sprintf("%snode%d/", root, node)
		cpus := onNode(node).and(m.online)
		var distance []string
		for other := range nrNodes {
			distance = append(distance, strconv.FormatUint(distances[node][other], 10))
		}
		files[dir+"cpulist"], files[dir+"cpumap"] = cpus.String(), cpus.mask()
		files[dir+"distance"] = strings.Join(distance, " ")
		files[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal: %d kB\nNode %[1]d MemFree: %[2]d kB", node, m.memory[node]<<10)
		for size, pages := range map[int]int{2 << 10: pages2Mi, 1 << 20: m.pages[node]} {
			pool := fmt.Sprintf("%shugepages/hugepages-%dkB/", dir, size)
			files[pool+"nr_hugepages"], files[pool+"free_hugepages"] = strconv.Itoa(pages), strconv.Itoa(pages)
		}
	}
}

// The disk

// fill takes all room below the run directory.
func (m *hardware) fill() {
	f, err := os.Create(filepath.Join(m.dir, "run/filler"))
	if err != nil {
		return // there is none to begin with
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

func (m *hardware) empty() { os.Remove(filepath.Join(m.dir, "run/filler")) }
