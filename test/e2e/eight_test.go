package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A machine of eight NUMA nodes, as far as containerd and runc are concerned.

func onEight(settings ...string) options {
	return options{machine: eight, settings: append(settings, "reservedSystemCPUs=0,64")}
}

var (
	db  = []want{{name: "db", milli: 4000, memory: 64 * mi}}
	web = []want{{name: "nginx", milli: 2000, memory: 64 * mi}, {name: "php", milli: 3000, memory: 64 * mi},
		{name: "log", milli: 500, memory: 32 * mi}}
	batch = []want{{name: "batch", milli: 500}}
)

// threePods are one container with CPUs of its own, three of one pod, and one that shares.
func (n *node) threePods() (dbPod, webPod, batchPod *pod) {
	n.Helper()
	dbPod = n.startPod("db", guaranteed, db...)
	webPod = n.startPod("web", guaranteed, web...)
	batchPod = n.startPod("batch", burstable, batch...)
	n.check()
	return dbPod, webPod, batchPod
}

// picture is who is placed where, to compare.
func picture(s status) string {
	var lines []string
	for _, h := range s.Containers {
		lines = append(lines, fmt.Sprintf("%s/%s %.12s cpus %s mems %s", h.Pod, h.Container, h.ID, h.CPUs, h.Mems))
	}
	return strings.Join(lines, "\n")
}

func (n *node) checkUnmoved(before string) {
	n.Helper()
	if now := picture(n.settle()); now != before {
		n.Fatalf("before:\n%s\nnow:\n%s", before, now)
	}
}

// nrUpdates is how often runc was asked to change a container.
func (n *node) nrUpdates() (nr int) {
	n.Helper()
	for _, p := range n.pods {
		for _, id := range p.containers {
			nr += len(n.askedFor(id)) - 1
		}
	}
	return nr
}

func TestRuncIsAskedForWhatWasDecided(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, webPod, batchPod := n.threePods()
	for _, p := range []*pod{dbPod, webPod, batchPod} {
		for _, id := range p.containers {
			n.checkCreated(id)
		}
		if a := n.askedFor(p.id); len(a) != 1 || a[0].Kind != "sandbox" || a[0].CPUs+a[0].Mems+a[0].Placement != "" {
			t.Errorf("the sandbox of %s is not left alone: %+v", p, a)
		}
	}
	for name, cpus := range map[string]int{"nginx": 2, "php": 3} {
		h := n.held(webPod.containers[name])
		if !h.Exclusive || len(n.set(h.CPUs)) != cpus || len(n.set(h.Mems)) != 1 {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if h := n.held(dbPod.containers["db"]); !h.Exclusive || len(n.set(h.CPUs)) != 4 || h.Mems != h.Nodes {
		t.Errorf("db: %+v", h)
	}
	if h := n.held(batchPod.containers["batch"]); h.Exclusive {
		t.Errorf("batch: %+v", h)
	}
	n.threeFromOneNode(webPod)
}

// threeFromOneNode: what needs no second NUMA node is not spread over two.
func (n *node) threeFromOneNode(p *pod) {
	n.Helper()
	for _, id := range p.containers {
		if h := n.held(id); h.Exclusive {
			for cpu := range n.set(h.CPUs) {
				if node := fmt.Sprint(cpu % 64 / 8); node != h.Mems {
					n.Errorf("%s has CPU %d of node %s and memory of %s", h.Container, cpu, node, h.Mems)
				}
			}
		}
	}
}

func TestSharedContainersMoveWithThePool(t *testing.T) {
	n := newNode(t, onEight("sharedPoolStep=2"))
	shared := n.startPod("batch", burstable, batch...).containers["batch"]
	before := n.held(shared)
	big := n.startPod("big", guaranteed, want{name: "big", milli: 14000, memory: 64 * mi})
	taken := n.check()
	if after := n.held(shared); after.CPUs == before.CPUs || after.CPUs != taken.Pool {
		t.Fatalf("the pool was %s and is %s; the shared container is on %s", before.CPUs, taken.Pool, after.CPUs)
	}
	if last := n.askedFor(shared); last[len(last)-1].Op != "update" {
		t.Errorf("runc was not told: %+v", last)
	}
	n.removePod(big)
	if s := n.check(); s.Pool == taken.Pool {
		t.Errorf("the pool does not grow back: %s", s.Pool)
	}
}

func TestKilledDaemonMovesNothing(t *testing.T) {
	n := newNode(t, onEight())
	n.threePods()
	before, updates := picture(n.status()), n.nrUpdates()
	for range 3 {
		n.killDaemon()
		n.startDaemon()
		n.checkUnmoved(before)
	}
	if now := n.nrUpdates(); now != updates {
		t.Errorf("%d updates of what ran where it belongs", now-updates)
	}
	n.startPod("more", guaranteed, want{name: "more", milli: 8000, memory: 64 * mi})
	n.check()
}

// What remains are the annotations on the containers. Without them the web pod would go where the
// db pod was.
func TestLostJournalMovesNobodysCPUs(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, _, _ := n.threePods()
	n.removePod(dbPod)
	before := exclusive(n.check())
	n.killDaemon()
	n.run("rm", "-r", n.path("run"))
	n.startDaemon()
	if now := exclusive(n.settle()); picture(now) != picture(before) {
		t.Errorf("before:\n%s\nnow:\n%s", picture(before), picture(now))
	}
}

func exclusive(s status) status {
	s.Containers = slices.DeleteFunc(s.Containers, func(h held) bool { return !h.Exclusive })
	return s
}

func TestRestartedRuntimeIsFoundAgain(t *testing.T) {
	n := newNode(t, onEight())
	n.threePods()
	before := picture(n.status())
	n.server.stop(t)
	n.startRuntime()
	n.waitConnected()
	n.checkUnmoved(before)
	n.startPod("more", guaranteed, want{name: "more", milli: 8000, memory: 64 * mi})
	n.check()
}

func TestKilledRuntimeIsFoundAgain(t *testing.T) {
	n := newNode(t, onEight())
	n.threePods()
	before := picture(n.status())
	n.server.kill()
	n.startRuntime()
	n.waitConnected()
	n.checkUnmoved(before)
}

func TestStartedWhileTheDaemonIsDown(t *testing.T) {
	n := newNode(t, onEight())
	n.startPod("first", guaranteed, db...)
	n.killDaemon()
	late := n.startPod("late", guaranteed, db...).containers["db"]
	shared := n.startPod("batch", burstable, batch...).containers["batch"]
	for _, id := range []string{late, shared} {
		if a := n.askedFor(id); len(a) != 1 || a[0].CPUs != "" {
			t.Fatalf("nobody placed it, and yet: %+v", a)
		}
	}
	n.startDaemon()
	n.settle()
	if h := n.held(late); !h.Exclusive || len(n.set(h.CPUs)) != 4 {
		t.Errorf("late: %+v", h)
	}
}

func TestStoppedWhileTheDaemonIsDown(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, webPod, _ := n.threePods()
	had := n.held(dbPod.containers["db"])
	n.killDaemon()
	n.removePod(dbPod)
	n.removeContainer(webPod, "nginx")
	n.startDaemon()
	n.settle()
	again := n.startPod("again", guaranteed, db...).containers["db"]
	n.check()
	if got := n.held(again); got.CPUs != had.CPUs {
		t.Errorf("%s were given back, and %s are given", had.CPUs, got.CPUs)
	}
}

func TestStoppedContainersAreFree(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, webPod, _ := n.threePods()
	had := n.held(dbPod.containers["db"])
	n.removeContainer(dbPod, "db")
	n.check()
	if got := n.held(n.addContainer(dbPod, db[0])); got.CPUs != had.CPUs || got.Mems != had.Mems {
		t.Errorf("had cpus %s mems %s, gets %s and %s, and nothing else has changed", had.CPUs, had.Mems, got.CPUs, got.Mems)
	}
	n.removePod(dbPod)
	n.removePod(webPod)
	if s := n.check(); len(s.Containers) != 1 {
		t.Errorf("held still: %+v", s.Containers)
	}
}

func TestOthersUpdatesAreAnsweredWithOurs(t *testing.T) {
	n := newNode(t, onEight())
	dbPod, _, batchPod := n.threePods()
	before := picture(n.status())
	for _, id := range []string{dbPod.containers["db"], batchPod.containers["batch"]} {
		lines := len(n.askedFor(id))
		n.setCPUs(id, "100-103", "4")
		if now := n.askedFor(id); len(now) == lines || now[len(now)-1].CPUs == "" {
			t.Errorf("the update did not come to runc: %+v", now)
		}
	}
	n.checkUnmoved(before)
}

func TestResizedInPlace(t *testing.T) {
	n := newNode(t, onEight("topologyManagerPolicy=single-numa-node"))
	dbPod, _, _ := n.threePods()
	small := n.held(dbPod.containers["db"])
	n.must(n.resize(dbPod, want{name: "db", milli: 6000, memory: 96 * mi}))
	n.check()
	large := n.held(small.ID)
	if len(n.set(large.CPUs)) != 6 || large.Mems != small.Mems || !within(n.set(small.CPUs), n.set(large.CPUs)) {
		t.Errorf("from 4 to 6 CPUs: %+v, %+v", small, large)
	}
	err := n.resize(dbPod, want{name: "db", milli: 20000, memory: 96 * mi})
	if err == nil || !strings.Contains(err.Error(), "numafit") {
		t.Errorf("20 CPUs on nodes of 16: %v", err)
	}
	n.check()
	if now := n.held(small.ID); now.CPUs != large.CPUs {
		t.Errorf("%s before a resize that is refused, %s after it", large.CPUs, now.CPUs)
	}
	n.must(n.resize(dbPod, want{name: "db", milli: 2000, memory: 64 * mi}))
	n.check()
	if now := n.held(small.ID); len(n.set(now.CPUs)) != 2 || !within(n.set(now.CPUs), n.set(large.CPUs)) {
		t.Errorf("from 6 to 2 CPUs: %+v, %+v", large, now)
	}
}

func within(small, large set) bool {
	for i := range small {
		if !large[i] {
			return false
		}
	}
	return true
}

func TestRefusalTellsItsReason(t *testing.T) {
	n := newNode(t, onEight("topologyManagerPolicy=single-numa-node"))
	_, err := n.tryPod("huge", guaranteed, want{name: "huge", milli: 20000, memory: 64 * mi})
	if err == nil || !strings.Contains(err.Error(), "TopologyAffinityError") || !strings.Contains(err.Error(), "single-numa-node") {
		t.Errorf("20 CPUs on nodes of 16: %v", err)
	}
	n.check()
	n.startPod("fits", guaranteed, want{name: "fits", milli: 16000, memory: 64 * mi})
	n.check()
}

// containerd has the setting since 2.2. Up to NRI 0.12.3 it sees only with the next event that a
// plugin is gone: the first container that follows in a pod that runs gets by; not so one of a new
// pod, whose sandbox is such an event.
func TestRequiredPluginHoldsContainersBack(t *testing.T) {
	o := onEight()
	o.required = true
	n := newNode(t, o)
	n.startPod("first", guaranteed, db...)
	n.killDaemon()
	p, err := n.tryPod("db", guaranteed, db...)
	if err == nil || !strings.Contains(err.Error(), "numafit") {
		t.Fatalf("created without numafitd: %s %v", p, err)
	}
	n.startDaemon()
	n.addContainer(p, db[0])
	n.check()
}
