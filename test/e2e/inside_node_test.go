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
)

var services = []string{"containerd", "numafitd", "kubelet"}

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
	if _, err := os.Stat(n.path("pods/" + daemonPod + ".json")); err == nil { // of a case that died
		n.unitAgain()
	}
	n.settingsAgain() // of a case that died
	n.awaitInOrder()
	n.look()
	t.Cleanup(func() {
		if t.Failed() || !n.hasThree() {
			n.clear()
		}
	})
	return n
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
	n.connect()
	if _, err := os.Stat(n.path("image.tar")); err != nil {
		n.must(writeImage(n.path("new.tar")))
		n.run("ctr", "-n", "k8s.io", "images", "import", n.path("new.tar"))
		n.must(os.Rename(n.path("new.tar"), n.path("image.tar")))
	}
	return n
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

// report shows what the services said of late, and what is in force.
func (n *node) report() {
	for _, name := range services {
		n.Logf("%s said of late:\n%s", name, n.said(name, 60))
	}
	out, _ := exec.Command("numafit", "status", "--socket", n.path("run/numafitd.sock")).CombinedOutput()
	n.Logf("numafit status:\n%s", out)
}

// said are the last lines of a service's log.
func (n *node) said(name string, lines int) string {
	if !hasSystemd() {
		text := strings.Split(strings.TrimSpace(tail("/var/log/"+name+".log")), "\n")
		return strings.Join(text[max(0, len(text)-lines):], "\n")
	}
	out, _ := exec.Command("journalctl", "--no-pager", "-o", "cat", "-u", name, "-n", strconv.Itoa(lines)).CombinedOutput()
	return string(out)
}

func hasSystemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// mainPID is the process of a service; 0: there is none.
func (n *node) mainPID(name string) int {
	n.Helper()
	text := ""
	if hasSystemd() {
		text = n.run("systemctl", "show", "-p", "MainPID", "--value", name)
	} else if file, err := os.ReadFile("/run/" + name + ".pid"); err == nil {
		text = string(file)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	if syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// signal ends a service's process, and waits until another one has come in its place and all is connected.
func (n *node) signal(name string, s syscall.Signal, meanwhile ...func()) {
	n.Helper()
	before := n.mainPID(name)
	n.must(syscall.Kill(before, s))
	for _, do := range meanwhile {
		do()
	}
	n.awaitAnother(name, before)
}

// awaitAnother waits until a service has another process than that one, and all is connected.
func (n *node) awaitAnother(name string, before int) {
	n.Helper()
	n.await(name+" to start again", func() bool {
		pid := n.mainPID(name)
		return pid != 0 && pid != before
	})
	if name == "containerd" {
		n.connect()
	}
	n.awaitInOrder()
}

// rest ends a service, which is not started again until it is to wake.
func (n *node) rest(name string) {
	n.Helper()
	if hasSystemd() {
		n.run("systemctl", "stop", name)
		return
	}
	n.must(os.WriteFile("/run/held/"+name, nil, 0o600))
	n.must(syscall.Kill(n.mainPID(name), syscall.SIGTERM))
	n.await(name+" to end", func() bool { return n.mainPID(name) == 0 })
}

func (n *node) wake(name string) {
	n.Helper()
	if hasSystemd() {
		n.run("systemctl", "start", name)
	} else {
		os.Remove("/run/held/" + name)
	}
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

func sortedKeys(s set) []int { return slices.Sorted(maps.Keys(s)) }
