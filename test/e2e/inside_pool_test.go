package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A case of a node in a virtual machine: the shared pool is what the kubelet's cgroups are bounded to.

// Containers of the pool leave CPUs without an update of their own, before another container starts on
// them; what another program writes into these cgroups does not last; and all comes back.
func TestInsidePoolIsBounded(t *testing.T) {
	n := inside(t)
	before := n.status()
	if by := before.SharedPool.Enforced; by != "cgroup" {
		t.Fatalf("the pool is enforced by %s", by)
	}
	n.putPod("busy", burstable, nil, []want{{name: "busy", milli: 100, memory: 32 * mi,
		args: []string{"for i in 1 2 3; do while :; do sleep 0.05; done & done; " + untilTold}}})
	n.putPod("best", bestEffort, nil, []want{{name: "best"}})
	n.awaitStatic("busy")
	n.awaitStatic("best")
	n.putPod("own", guaranteed, nil, []want{{name: "two", milli: 2000, memory: 32 * mi}})
	seen := n.watchTasks("busy", "best")
	n.awaitStatic("own")
	s := n.checkAll()
	if seen() == 0 {
		t.Error("no look at the tasks was taken while the container was there")
	}
	if nr := s.Counters.Updates - before.Counters.Updates; nr != 0 {
		t.Errorf("%d containers were updated", nr)
	}
	classes := classes()
	for _, dir := range classes {
		if is := n.read(dir + "/cpuset.cpus"); is != s.Pool {
			t.Errorf("%s has %s, the pool is %s", dir, is, s.Pool)
		}
	}

	for _, text := range []string{allCPUs, "1"} { // another program
		n.must(os.WriteFile(classes[0]+"/cpuset.cpus", []byte(text), 0o644))
		n.await("the set to be written again", func() bool { return n.read(classes[0]+"/cpuset.cpus") == s.Pool })
	}
	if hasSystemd() {
		n.run("systemctl", "set-property", "--runtime", filepath.Base(classes[0]), "CPUWeight=50")
		n.run("systemctl", "daemon-reload")
		n.await("the set to outlast systemd", func() bool { return n.read(classes[0]+"/cpuset.cpus") == s.Pool })
	}
	n.checkAll()

	n.dropStatic("own")
	s = n.checkAll()
	if s.Pool != allCPUs || n.read(classes[0]+"/cpuset.cpus") != allCPUs {
		t.Errorf("the pool is %s, %s has %s", s.Pool, classes[0], n.read(classes[0]+"/cpuset.cpus"))
	}
}

// Each task of the shared pool goes from the old pool to the new one, with nothing between, when containers
// with CPUs of their own come and go, in a pod of their own and beside others.
func TestInsideTasksFollowThePool(t *testing.T) {
	n := inside(t)
	n.putPod("batch", burstable, nil, []want{{name: "batch", milli: 100, args: []string{"sleep 1000000 & " + untilTold}}})
	n.putPod("best", bestEffort, nil, []want{{name: "best"}})
	n.runStatic("part", guaranteed, nil, []want{{name: "part", milli: 300, memory: 32 * mi}})
	n.awaitStatic("batch")
	n.awaitStatic("best")
	mixed := []want{{name: "one", milli: 1000, memory: 32 * mi}, {name: "part", milli: 200, memory: 32 * mi}}
	for _, step := range []struct {
		what string
		cpus int // that the pool has then
		do   func()
	}{
		{"a container with CPUs of its own comes", 6, func() { n.runStatic("own", guaranteed, nil, []want{{name: "two", milli: 2000, memory: 32 * mi}}) }},
		{"a pod with both comes", 5, func() { n.runStatic("both", guaranteed, nil, mixed) }},
		{"the first goes", 7, func() { n.dropStatic("own") }},
		{"the pod with both goes", 8, func() { n.dropStatic("both") }},
	} {
		before := n.checkAll()
		masks := watchMasks(n.sharedTasks(before))
		step.do()
		after := n.checkAll()
		if nr := len(n.set(after.Pool)); nr != step.cpus {
			t.Errorf("when %s the pool has %d CPUs", step.what, nr)
		}
		stayed := 0
		for task, seen := range masks() {
			if last := seen[len(seen)-1]; last == "" { // it has ended, with its pod
				seen = seen[:len(seen)-1]
			} else {
				stayed++
				if last != after.Pool {
					t.Errorf("when %s task %s ends on %s, and the pool is %s", step.what, task, last, after.Pool)
				}
			}
			for _, mask := range seen {
				if mask != before.Pool && mask != after.Pool {
					t.Errorf("when %s task %s was on %v, and the pool is %s, before %s", step.what, task, seen, after.Pool, before.Pool)
				}
			}
		}
		if stayed < 7 {
			t.Errorf("when %s only %d tasks were looked at", step.what, stayed)
		}
	}
}

// sharedTasks are those of all containers that run on the shared pool.
func (n *node) sharedTasks(s status) (tasks []string) {
	n.Helper()
	for _, h := range s.running() {
		if !h.Exclusive {
			tasks = append(tasks, strings.Fields(n.read(cpusetCgroup(n.pid(h.ID))+"/cgroup.threads"))...)
		}
	}
	return tasks
}

// watchMasks looks over and over at what CPUs these tasks may run on. What it returns ends that, and has for
// each task all that was seen in order, "" once it has ended.
func watchMasks(tasks []string) func() map[string][]string {
	end, all := make(chan bool), make(chan map[string][]string)
	go func() {
		seen := map[string][]string{}
		look := func() {
			for _, task := range tasks {
				before := seen[task]
				if mask := allowed(task); len(before) == 0 || before[len(before)-1] != mask {
					seen[task] = append(before, mask)
				}
			}
		}
		for {
			look()
			select {
			case <-end:
				look()
				all <- seen
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() map[string][]string { end <- true; return <-all }
}

// watchTasks looks at the tasks of these pods' containers as soon as a container with CPUs of its own is
// made. What it returns ends that, insists that none could run on these, and is how often it looked.
func (n *node) watchTasks(others ...string) func() int {
	n.Helper()
	var tasks []string
	for _, name := range others {
		for _, id := range n.pods[name].containers {
			for _, pid := range strings.Fields(n.read(cpusetCgroup(n.pid(id)) + "/cgroup.procs")) {
				tasks = append(tasks, pid)
			}
		}
	}
	type look struct{ task, allowed, own string }
	end, all := make(chan bool), make(chan []look)
	go func() {
		var looks []look
		for {
			select {
			case <-end:
				all <- looks
				return
			case <-time.After(20 * time.Millisecond):
			}
			own := n.ownCPUs()
			if own == "" {
				continue
			}
			for _, task := range tasks {
				if mask := allowed(task); mask != "" {
					looks = append(looks, look{task, mask, own})
				}
			}
		}
	}()
	return func() int {
		n.Helper()
		end <- true
		looks := <-all
		for _, l := range looks {
			if n.intersect(l.allowed, l.own) {
				n.Errorf("task %s could run on %s, of which %s are another container's own", l.task, l.allowed, l.own)
			}
		}
		return len(looks)
	}
}

// ownCPUs are those of the only container that has a set in a Guaranteed pod; "": there is none with a process.
func (n *node) ownCPUs() string {
	found, _ := filepath.Glob("/sys/fs/cgroup/kubepods*/*pod*/*")
	for _, dir := range found {
		set, err := os.ReadFile(dir + "/cpuset.cpus")
		procs, _ := os.ReadFile(dir + "/cgroup.procs")
		if text := strings.TrimSpace(string(set)); err == nil && len(procs) > 0 && text != "" {
			return text
		}
	}
	return ""
}

func (n *node) intersect(a, b string) bool {
	in := n.set(b)
	for cpu := range n.set(a) {
		if in[cpu] {
			return true
		}
	}
	return false
}
