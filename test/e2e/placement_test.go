package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What was decided, what was asked of runc, what is in force: and that they are the same.

type held struct {
	Pod, Container, ID string
	Exclusive          bool
	SharesInPod        bool `json:"shares_in_pod"`
	CPUs, Mems         string
	Nodes              string
	Wishes             string
}

type status struct {
	Pool       string
	Generation int64
	Counters   struct {
		Compared, Disagreed int
		HintsAccepted       int `json:"hints_accepted"`
		HintsRepaired       int `json:"hints_repaired"`
		HintsRejected       int `json:"hints_rejected"`
		Updates             int
		Drifted             int
	}
	SharedPool struct{ Enforced string }     `json:"shared_pool"`
	Quota      struct{ Pods, Rewritten int } `json:"cfs_quota"`
	Kubelet    struct {
		DevicePlugin string `json:"device_plugin"`
		PodResources string `json:"pod_resources"`
		PodsAPI      string `json:"pods_api"`
	}
	Nodes []struct {
		ID       int
		CPUs     int `json:"cpus"`
		Held     int `json:"cpus_held"`
		Reserved int `json:"cpus_reserved"`
	}
	Containers []held
	Claims     []struct{ Claim, Share, Node, CPUs string }
	DRADriver  struct{ Registration string } `json:"dra_driver"`
}

// waits: it is what a pod that was decided as a whole has for a container that is to come, or to come
// again, as an init container is that has ended. No container has such an ID.
func (h held) waits() bool { return strings.Contains(h.ID, "/") }

func (s status) running() (all []held) {
	for _, h := range s.Containers {
		if !h.waits() {
			all = append(all, h)
		}
	}
	return all
}

// status is what `numafit status --json` shows.
func (n *node) status() (s status) {
	n.Helper()
	out := n.run(os.Getenv("NUMAFIT"), "status", "--socket", n.path("run/numafitd.sock"), "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		n.Fatalf("numafit status --json: %v: %s", err, out)
	}
	return s
}

func (n *node) held(id string) held {
	n.Helper()
	if id == "" {
		n.Fatal("no container of that name runs")
	}
	for _, h := range n.status().Containers {
		if h.ID == id {
			return h
		}
	}
	n.Fatalf("numafitd does not know container %.12s", id)
	return held{}
}

// askedFor are the lines of all that runc was asked for this container, in order.
func (n *node) askedFor(id string) (lines []asked) {
	n.Helper()
	for _, a := range n.allAsked() {
		if a.ID == id {
			lines = append(lines, a)
		}
	}
	if len(lines) == 0 {
		n.Fatalf("runc was not asked for %.12s", id)
	}
	return lines
}

// allAsked is all that runc was asked for, in order.
func (n *node) allAsked() (lines []asked) {
	n.Helper()
	text, err := os.ReadFile(n.path(askedFile))
	n.must(err)
	for d := json.NewDecoder(strings.NewReader(string(text))); d.More(); {
		var a asked
		n.must(d.Decode(&a))
		lines = append(lines, a)
	}
	return lines
}

// placed is where the container runs now: as the kernel says, or as runc was told to tell it.
func (n *node) placed(id string) (cpus, mems string) {
	n.Helper()
	if n.truly() {
		return n.inForce(id)
	}
	for _, a := range n.askedFor(id) {
		if a.CPUs != "" {
			cpus = a.CPUs
		}
		if a.Mems != "" {
			mems = a.Mems
		}
	}
	return cpus, mems
}

// inForce is what the kernel lets the container run on: its cgroup's cpuset (v1 or v2) within those above
// it, and the process's own view, which have to agree.
func (n *node) inForce(id string) (cpus, mems string) {
	n.Helper()
	pid := n.pid(id)
	folder := cpusetCgroup(pid)
	for _, files := range [][2]string{{"cpuset.cpus.effective", "cpuset.mems.effective"}, {"cpuset.effective_cpus", "cpuset.effective_mems"}} {
		if _, err := os.Stat(filepath.Join(folder, files[0])); err == nil {
			cpus, mems = n.read(filepath.Join(folder, files[0])), n.read(filepath.Join(folder, files[1]))
		}
	}
	view := n.read(fmt.Sprintf("/proc/%d/status", pid))
	if c, m := line(view, "Cpus_allowed_list:"), line(view, "Mems_allowed_list:"); c != cpus || m != mems {
		n.Fatalf("%.12s: its cgroup says cpus %s mems %s, its process %s and %s", id, cpus, mems, c, m)
	}
	return cpus, mems
}

func cpusetCgroup(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	folder := ""
	for _, l := range strings.Fields(string(text)) {
		if _, path, ok := strings.Cut(l, ":cpuset:"); ok {
			return "/sys/fs/cgroup/cpuset" + path
		}
		if path, ok := strings.CutPrefix(l, "0::"); ok {
			folder = "/sys/fs/cgroup" + path
		}
	}
	return folder
}

// grep are the lines of a log that have the words.
func (n *node) grep(log, words string) string {
	n.Helper()
	var found []string
	for _, l := range strings.Split(n.read(n.path(log)), "\n") {
		if strings.Contains(l, words) {
			found = append(found, l)
		}
	}
	return strings.Join(found, "\n")
}

func (n *node) read(path string) string {
	n.Helper()
	text, err := os.ReadFile(path)
	n.must(err)
	return strings.TrimSpace(string(text))
}

// line is what stands behind the word at the start of a line.
func line(text, word string) string {
	for _, l := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(l, word); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// problem says what is not as it has to be: every container runs where numafitd says, which says so
// of all of them and of no other, and no CPU that is one container's own is in another's cpuset.
func (n *node) problem(s status) string {
	n.Helper()
	nr, owner := 0, map[int]string{}
	for _, p := range n.pods {
		nr += len(p.containers)
	}
	if nr != len(s.running()) {
		return fmt.Sprintf("%d containers run, numafitd knows %d: %+v", nr, len(s.running()), s.Containers)
	}
	for _, h := range s.running() {
		name := h.Pod + "/" + h.Container
		if cpus, mems := n.placed(h.ID); cpus != h.CPUs || mems != h.Mems {
			return fmt.Sprintf("%s: decided cpus %s mems %s, in force cpus %s mems %s", name, h.CPUs, h.Mems, cpus, mems)
		}
		if !h.Exclusive && !h.SharesInPod {
			if h.CPUs != s.Pool && !(strings.Contains(h.Wishes, "spread=one-node") && n.within(h.CPUs, s.Pool)) {
				return fmt.Sprintf("%s runs on %s, and the shared pool is %s", name, h.CPUs, s.Pool)
			}
			continue
		}
		for cpu := range n.set(h.CPUs) {
			if h.SharesInPod {
				name = h.Pod // whose containers share it, and no other
			}
			if owner[cpu] != "" && owner[cpu] != name {
				return fmt.Sprintf("CPU %d belongs to %s and to %s", cpu, owner[cpu], name)
			}
			owner[cpu] = name
		}
	}
	for cpu := range n.set(s.Pool) {
		if owner[cpu] != "" {
			return fmt.Sprintf("CPU %d belongs to %s, and to the shared pool %s", cpu, owner[cpu], s.Pool)
		}
	}
	return ""
}

// check insists that all is in order now: an answer has no afterwards.
func (n *node) check() status {
	n.Helper()
	s := n.status()
	if p := n.problem(s); p != "" {
		n.Fatal(p)
	}
	return s
}

// settle waits for that: what a Synchronize changes, containerd does after its reply.
func (n *node) settle() status {
	n.Helper()
	n.awaitOrder("all to be in order", func() string { return n.problem(n.status()) })
	return n.check()
}

// checkCreated insists that the container was created where the decision that it carries puts it.
func (n *node) checkCreated(id string) {
	n.Helper()
	var p struct{ CPUs, Mems string }
	a := n.askedFor(id)[0]
	if err := json.Unmarshal([]byte(a.Placement), &p); err != nil || a.Op != "create" {
		n.Fatalf("%.12s: %s with the placement %q: %v", id, a.Op, a.Placement, err)
	}
	if a.CPUs == "" || a.CPUs != p.CPUs || a.Mems != p.Mems {
		n.Fatalf("%.12s: created on cpus %s mems %s, with the placement %s", id, a.CPUs, a.Mems, a.Placement)
	}
}

// within: all of one list are on the other.
func (n *node) within(list, of string) bool {
	n.Helper()
	all := n.set(of)
	for i := range n.set(list) {
		if !all[i] {
			return false
		}
	}
	return true
}

type set map[int]bool

func (n *node) set(list string) set {
	n.Helper()
	s := set{}
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil {
			n.Fatalf("%q is not a kernel list of numbers", list)
		}
		for i := lo; i <= hi; i++ {
			s[i] = true
		}
	}
	return s
}
