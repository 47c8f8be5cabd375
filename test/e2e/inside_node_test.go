package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the cases in a virtual machine's node share: its programs are those of the node, not the test's,
// and are found where an operator finds them.

const (
	insideDir   = "/var/lib/e2e" // outlives a reboot
	rebootWords = "the node starts anew now"
	allCPUs     = "0-7" // node-vm's machine has these, two on each of four NUMA nodes
	nrAllCPUs   = 8
)

// inside is the node that this program runs in. It comes without pods, with all its services in order.
func inside(t *testing.T) *node {
	t.Helper()
	n := insideAsLeft(t)
	n.clear()
	return n
}

// insideAsLeft comes with the pods that the case before has left: those of runThree, or none. A case that
// passes leaves them, others leave none.
func insideAsLeft(t *testing.T) *node {
	t.Helper()
	n := insideAny(t)
	n.afterDeath()
	n.awaitInOrder()
	n.look()
	t.Cleanup(func() {
		if t.Failed() || !n.hasThree() {
			n.clear()
		}
	})
	return n
}

// afterDeath undoes what a case that died may have left. After any other case there is nothing of that.
func (n *node) afterDeath() {
	n.Helper()
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/online")
	for _, online := range files {
		if n.read(online) == "0" {
			n.must(os.WriteFile(online, []byte("1"), 0o644))
		}
	}
	n.wake("kubelet")
	if _, err := os.Stat(n.path("pods/" + daemonPod + ".json")); err == nil {
		n.unitAgain()
	}
	n.wake("numafitd")
	n.settingsAgain()
}

// insideAny is the node as it is, once its runtime answers and has the image.
func insideAny(t *testing.T) *node {
	t.Helper()
	patience, again = 2*time.Minute, 500*time.Millisecond // of the machine's own clock
	n := &node{T: t, options: options{machine: this}, dir: insideDir, pods: map[string]*pod{}, port: 10255}
	n.must(os.MkdirAll(n.dir, 0o700))
	for name, there := range map[string]string{"containerd.sock": "/run/containerd/containerd.sock",
		"run": "/run/numafit", "pods": "/etc/kubernetes/manifests"} {
		if err := os.Symlink(there, n.path(name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	n.wake("containerd") // of a case that died
	n.connect()
	if _, err := os.Stat(n.path("image.tar")); err != nil {
		n.must(writeImage(n.path("new.tar")))
		n.run("ctr", "-n", "k8s.io", "images", "import", n.path("new.tar"))
		n.must(os.Rename(n.path("new.tar"), n.path("image.tar")))
	}
	return n
}

// panicsOn has the kernel panic when that pod is the one that was asked for (boxes.panic).
func (n *node) panicsOn(pod string) {
	if n.dir == insideDir && os.Getenv(panicVariable) == pod {
		n.must(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0o200))
	}
}

func (n *node) awaitInOrder() {
	n.Helper()
	n.await("the kubelet to be healthy", n.healthy)
	n.await("the cgroups of its classes", func() bool { return len(classes()) == 2 })
	n.awaitConnected()
}

func (n *node) awaitConnected() {
	n.Helper()
	n.await("numafitd to be connected", func() bool {
		out, err := exec.Command("numafit", "status", "--socket", n.path("run/numafitd.sock"), "--json").Output()
		return err == nil && strings.Contains(string(out), `"connection":"ready"`)
	})
}

// clear takes all pods away, and waits until nobody knows of them any more. What their cgroups were in is
// as it was before the first one.
func (n *node) clear() {
	if n.Failed() {
		n.report()
	}
	files, _ := filepath.Glob(n.path("pods/*"))
	for _, f := range files {
		os.Remove(f)
	}
	hadFailed := n.Failed()
	defer func() {
		if n.Failed() && !hadFailed {
			n.report()
		}
	}()
	n.awaitOrder("all pods to end", func() string {
		n.look()
		s, cgroups := n.status(), podCgroups()
		if len(n.pods) == 0 && len(s.Containers) == 0 && len(cgroups) == 0 {
			return ""
		}
		return fmt.Sprintf("sandboxes %v, containers:\n%s\ncgroups %v", slices.Collect(maps.Keys(n.pods)), picture(s), cgroups)
	})
	n.checkCgroupsAreAsFound()
}

// podCgroups are the cgroups of pods and what is in them, without the folder of all: a list of paths.
func podCgroups() (all []string) {
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err == nil && d.IsDir() && (strings.HasPrefix(name, "pod") || strings.Contains(name, "-pod")) {
			all = append(all, path)
			return fs.SkipDir
		}
		return nil
	})
	return all
}

// classes are the cgroups of the QoS classes that have pods without CPUs of their own.
func classes() (dirs []string) {
	for _, name := range []string{"burstable", "besteffort"} {
		found, _ := filepath.Glob("/sys/fs/cgroup/kubepods*/*" + name + "*")
		dirs = append(dirs, found...)
	}
	return dirs
}

// allowed are the CPUs that a task may run on; "": it has ended.
func allowed(task string) string {
	text, _ := os.ReadFile("/proc/" + task + "/status")
	return line(string(text), "Cpus_allowed_list:")
}

// checkInForce looks at all that the kernel has of a container: its cgroup, each task of it, and the
// pages that its processes have written.
func (n *node) checkInForce(h held) {
	n.Helper()
	dir := cpusetCgroup(n.pid(h.ID))
	cpus, mems := n.read(dir+"/cpuset.cpus.effective"), n.read(dir+"/cpuset.mems.effective")
	if cpus != h.CPUs || mems != h.Mems {
		n.Errorf("%s: decided cpus %s mems %s, %s has in force %s and %s", h.Container, h.CPUs, h.Mems, dir, cpus, mems)
	}
	nrTasks, nrPages := 0, 0
	for _, pid := range strings.Fields(n.read(dir + "/cgroup.procs")) {
		tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/status")
		for _, path := range tasks {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended
			}
			nrTasks++
			c, m := line(string(text), "Cpus_allowed_list:"), line(string(text), "Mems_allowed_list:")
			if c != h.CPUs || m != h.Mems {
				n.Errorf("%s: decided cpus %s mems %s, the task %s has %s and %s", h.Container, h.CPUs, h.Mems, path, c, m)
			}
		}
		maps, err := os.ReadFile("/proc/" + pid + "/numa_maps")
		if err != nil {
			continue
		}
		for node, pages := range writtenPages(string(maps)) {
			nrPages += pages
			if !n.set(h.Mems)[node] {
				n.Errorf("%s is to have its memory on %s, process %s has %d pages on node %d:\n%s",
					h.Container, h.Mems, pid, pages, node, maps)
			}
		}
	}
	if nrTasks == 0 || nrPages == 0 {
		n.Errorf("%s: %d tasks and %d pages in %s", h.Container, nrTasks, nrPages, dir)
	}
}

// writtenPages are those of no file, by NUMA node, in a process's numa_maps. Those of files are in the page
// cache, where whoever read the file first has put them.
func writtenPages(numaMaps string) map[int]int {
	pages := map[int]int{}
	for _, l := range strings.Split(numaMaps, "\n") {
		if strings.Contains(l, " file=") || !strings.Contains(l, " anon=") {
			continue
		}
		for _, field := range strings.Fields(l) {
			var node, nr int
			if _, err := fmt.Sscanf(field, "N%d=%d", &node, &nr); err == nil {
				pages[node] += nr
			}
		}
	}
	return pages
}

// checkAll insists that all that runs is where numafitd says, by all that the kernel has.
func (n *node) checkAll() status {
	n.Helper()
	s := n.settle()
	for _, h := range s.running() {
		n.checkInForce(h)
	}
	return s
}

// dropStatic takes a pod's file away, and waits until it has ended.
func (n *node) dropStatic(name string) {
	n.Helper()
	n.must(os.Remove(n.path("pods/" + name + ".json")))
	n.await(name+" to end", func() bool {
		n.look()
		return n.pods[name] == nil && n.podStatus(name) == nil
	})
}

// logOf is what a pod's container has printed, in all its lives.
func (n *node) logOf(pod, container string) string {
	n.Helper()
	files, _ := filepath.Glob("/var/log/pods/*_" + pod + "-" + nodeName + "_*/" + container + "/*.log")
	var printed []string
	for _, file := range files {
		for _, l := range strings.Split(n.read(file), "\n") {
			if _, text, ok := strings.Cut(l, " F "); ok { // its time and stream are before that
				printed = append(printed, text)
			}
		}
	}
	return strings.Join(printed, "\n")
}

// killContainer ends a container's first process, which nobody has asked for.
func (n *node) killContainer(p *pod, name string) {
	n.Helper()
	id := p.containers[name]
	n.must(syscall.Kill(n.pid(id), syscall.SIGKILL))
	n.await(name+" to end", func() bool {
		n.look()
		return n.pods[p.name].containers[name] != id
	})
}

// awaitAgain waits until the kubelet has started a container anew that has ended. Its own status still has the
// old one as ready for a moment.
func (n *node) awaitAgain(pod, container string) {
	n.Helper()
	n.await(container+" to run again", func() bool {
		n.look()
		return n.pods[pod].containers[container] != ""
	})
}

// runThree runs a pod of each class, with CPUs of their own and without.
func (n *node) runThree() (own *pod) {
	n.Helper()
	n.putPod("batch", burstable, nil, batch)
	n.putPod("best", bestEffort, nil, []want{{name: "best"}})
	own = n.runStatic("own", guaranteed, nil, []want{
		{name: "two", milli: 2000, memory: 32 * mi, args: []string{"sleep 1000000 & " + untilTold}},
		{name: "part", milli: 300, memory: 32 * mi}})
	n.awaitStatic("batch")
	n.awaitStatic("best")
	return own
}

// hasThree: these pods run, no other one, and all is in order.
func (n *node) hasThree() bool {
	n.Helper()
	n.look()
	own, batch, best := n.pods["own"], n.pods["batch"], n.pods["best"]
	return len(n.pods) == 3 && own != nil && batch != nil && best != nil && len(own.containers) == 2 &&
		len(batch.containers) == 1 && len(best.containers) == 1 && n.problem(n.status()) == ""
}

// haveThree runs them, unless they run already.
func (n *node) haveThree() (own *pod) {
	n.Helper()
	if n.hasThree() {
		return n.pods["own"]
	}
	n.clear()
	return n.runThree()
}

// exclusive is how many CPUs a container has to itself.
func (n *node) exclusive(p *pod, name string) int {
	n.Helper()
	h := n.held(p.containers[name])
	if !h.Exclusive {
		return 0
	}
	return len(n.set(h.CPUs))
}

// wholeMachine is what a cpuset without bounds has in force.
func (n *node) wholeMachine() (cpus, mems string) {
	n.Helper()
	return n.read("/sys/devices/system/cpu/online"), n.read("/sys/devices/system/node/has_memory")
}

// checkAllHaveTheMachine insists that each container of a pod may use all CPUs and NUMA nodes, as without numafitd,
// once the runtime has set what it was answered.
func (n *node) checkAllHaveTheMachine() {
	n.Helper()
	cpus, mems := n.wholeMachine()
	for _, p := range n.pods {
		for name, id := range p.containers {
			dir := cpusetCgroup(n.pid(id))
			n.await(name+" to have the machine", func() bool {
				return n.read(dir+"/cpuset.cpus.effective") == cpus && n.read(dir+"/cpuset.mems.effective") == mems
			})
			n.checkInForce(held{Container: p.name + "/" + name, ID: id, CPUs: cpus, Mems: mems})
		}
	}
}

func sortedKeys(s set) []int { return slices.Sorted(maps.Keys(s)) }

// asList is a set as a kernel list.
func asList(s set) (text string) {
	for i := range s {
		if text != "" {
			text += ","
		}
		text += strconv.Itoa(i)
	}
	return text
}
