package e2e

import (
	"syscall"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Once it has started again CRI-O reports each container as it was created, whatever was changed
// since: what runs is not what it says. On containerd the same must hold.

// An order in which the two sides go and come back; away is called in between.
type order struct {
	name string
	do   func(n *node, away func())
}

func (n *node) killRuntime() { n.server.kill() }
func (n *node) stopRuntime() { n.server.stop(n.T) }
func (n *node) stopDaemon()  { n.daemon.stop(n.T); n.daemon = nil }
func (n *node) restartRuntimeBeside(away func(), end func()) {
	end()
	away()
	n.startRuntime()
	n.waitConnected()
}

var orders = []order{
	{"the runtime restarts", func(n *node, away func()) { n.restartRuntimeBeside(away, n.stopRuntime) }},
	{"the runtime is killed", func(n *node, away func()) { n.restartRuntimeBeside(away, n.killRuntime) }},
	{"the daemon restarts", func(n *node, away func()) {
		n.stopDaemon()
		away()
		n.startDaemon()
	}},
	{"the daemon is killed", func(n *node, away func()) {
		n.killDaemon()
		away()
		n.startDaemon()
	}},
	{"the runtime goes first and comes first", func(n *node, away func()) {
		n.killRuntime()
		n.killDaemon()
		away()
		n.startRuntime()
		n.startDaemon()
	}},
	{"the runtime goes first and comes last", func(n *node, away func()) {
		n.stopRuntime()
		n.stopDaemon()
		away()
		n.launchDaemon()
		n.startRuntime()
		n.waitConnected()
	}},
	{"the daemon goes first and comes first", func(n *node, away func()) {
		n.killDaemon()
		n.killRuntime()
		away()
		n.launchDaemon()
		n.startRuntime()
		n.waitConnected()
	}},
	{"the daemon goes first and comes last", func(n *node, away func()) {
		n.stopDaemon()
		n.stopRuntime()
		away()
		n.startRuntime()
		n.startDaemon()
	}},
}

func nothing() {}

// inEveryOrder does it in each of them, one after the other.
func (n *node) inEveryOrder(step func(do func(away func()))) {
	n.Helper()
	for _, o := range orders {
		n.Logf("%s", o.name)
		step(func(away func()) { o.do(n, away) })
	}
}

// killProcess ends the only process of that pod, whose pid is known, as if it had crashed. A runtime that
// runs has noticed it then: it reports that to plugins first, and one that comes just after gets no report. So
// it is with a runtime that comes back before the process has ended, which takes a while on a busy machine.
func (n *node) killProcess(p *pod, pid int) {
	n.Helper()
	n.must(syscall.Kill(pid, syscall.SIGKILL))
	n.await("the process to end", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	for _, id := range p.containers {
		n.await("the runtime to notice", func() bool { return !n.server.runs() || n.hasExited(id) })
	}
	clear(p.containers)
}

func (n *node) hasExited(id string) bool {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	s, err := n.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
	n.must(err)
	return s.Status.State == cri.ContainerState_CONTAINER_EXITED
}

// CPUs that a container got with a resize are still its own.
func TestAResizedContainerKeepsItsCPUs(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, _, _ := n.threePods()
	for _, milli := range []int64{6000, 2000} { // larger than at its creation, and smaller
		n.must(n.resize(dbPod, want{name: "db", milli: milli, memory: 96 * mi}))
		before := picture(exclusive(n.check()))
		n.inEveryOrder(func(do func(away func())) {
			do(nothing)
			more := n.startPod("more", guaranteed, db...)
			n.settle() // no CPU belongs to both
			n.removePod(more)
			if now := picture(exclusive(n.settle())); now != before {
				t.Fatalf("before:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}

// A container that has become one that shares CPUs gets no CPUs of its own back, and the reverse.
func TestAResizedContainerStaysShared(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, _, _ := n.threePods()
	id := dbPod.containers["db"]
	for _, milli := range []int64{1500, 4000, 1500} {
		n.must(n.resize(dbPod, want{name: "db", milli: milli, memory: 64 * mi}))
		before := picture(n.check())
		n.inEveryOrder(func(do func(away func())) {
			do(nothing)
			n.checkUnmoved(before)
			if h := n.held(id); h.Exclusive != (milli == 4000) {
				t.Fatalf("resized to %d: %+v", milli, h)
			}
		})
	}
}

// Containers that share CPUs follow the pool when it grows, whoever was away then.
func TestReleasedWhileOneIsAway(t *testing.T) {
	n := newNode(t, onEight("sharedPoolStep=0"))
	n.startPod("batch", burstable, batch...)
	all := n.check().Pool
	n.inEveryOrder(func(do func(away func())) {
		big := n.startPod("big", guaranteed, want{name: "big", milli: 14000, memory: 64 * mi})
		pid := n.pid(big.containers["big"])
		if n.check().Pool == all {
			t.Fatalf("the pool is %s as before", all)
		}
		do(func() { n.killProcess(big, pid) })
		if s := n.settle(); s.Pool != all {
			t.Fatalf("the pool was %s, and has become %s", all, s.Pool)
		}
		n.removePod(big)
	})
}

func (n *node) own(milli int64) want { return want{name: "own", milli: milli, memory: 64 * mi} }

// The same with the kernel's cpusets of this machine, of which only one CPU can be held.
func TestInForceWhoeverIsAway(t *testing.T) {
	n := newNode(t, options{machine: this, settings: []string{"reservedSystemCPUs=0", "sharedPoolStep=0"}})
	n.startPod("batch", burstable, batch...)
	all := n.check()
	n.inEveryOrder(func(do func(away func())) {
		p := n.startPod("own", guaranteed, n.own(1000))
		pid := n.pid(p.containers["own"])
		do(func() { n.killProcess(p, pid) }) // released
		if s := n.settle(); s.Pool != all.Pool {
			t.Fatalf("the pool was %s, and has become %s", all.Pool, s.Pool)
		}
		n.removePod(p)
	})
	resized := n.startPod("resized", guaranteed, n.own(1000))
	for _, milli := range []int64{500, 1000, 500} {
		n.must(n.resize(resized, n.own(milli)))
		before := picture(n.check())
		n.inEveryOrder(func(do func(away func())) {
			do(nothing)
			n.checkUnmoved(before)
		})
	}
	n.startPod("next", guaranteed, n.own(1000)) // on the CPU that the other one had
	n.check()
}

// What was resized while the daemon was away is found in its cgroup, also when the runtime has
// forgotten it, and when the journal is lost.
func TestResizedWhileTheDaemonIsAway(t *testing.T) {
	n := newNode(t, options{machine: this, settings: []string{"reservedSystemCPUs=0", "sharedPoolStep=0"}})
	n.startPod("batch", burstable, batch...)
	p := n.startPod("own", guaranteed, n.own(1000))
	for i, milli := range []int64{500, 1000, 500, 1000, 500} {
		n.killDaemon()
		n.must(n.resize(p, n.own(milli)))
		n.killRuntime()
		n.startRuntime()
		if i > 2 {
			n.run("rm", "-r", n.path("run"))
		}
		n.startDaemon()
		n.settle()
		if h := n.held(p.containers["own"]); h.Exclusive != (milli == 1000) {
			t.Fatalf("resized to %d: %+v", milli, h)
		}
	}
}
