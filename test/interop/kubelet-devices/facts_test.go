package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// What the kubelet knows of pods and of other vendors' devices, and the runtime does not.

func TestCPUsAreBesideTheOtherVendorsDevice(t *testing.T) {
	for _, policy := range []string{"best-effort", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t, "none", "topologyManagerPolicy="+policy)
			gpu := r.startVendor("gpu.example/gpu", 1, "-only", "gpu0=5")
			p := newPod("train", ask{name: "main", cpus: 2, others: some(gpu.resource, 1)})
			if on := r.onlyNode(r.cpusOn(r.mustRun(p))); on != 5 {
				t.Errorf("CPUs on node %d", on)
			}
			if told := r.explain("train"); !strings.Contains(told, gpu.resource) {
				t.Errorf("its device is not in: %s", told)
			}
			q := newPod("web", ask{name: "main", cpus: 2})
			if on := r.onlyNode(r.cpusOn(r.mustRun(q))); on != 0 {
				t.Errorf("without a device it is on node %d", on)
			}
		})
	}
}

func TestContainersOfAPodHaveTheirOwnDevices(t *testing.T) {
	r := newRig(t, "none", "topologyManagerPolicy=single-numa-node")
	gpu := r.startVendor("gpu.example/gpu", 3, "-only", "gpu0=2", "-only", "gpu1=5", "-only", "gpu2=7")
	p := newPod("train", ask{name: "side", kind: "sidecar", cpus: 1, others: some(gpu.resource, 1)},
		ask{name: "first", cpus: 2, others: some(gpu.resource, 1)}, ask{name: "second", cpus: 3},
		ask{name: "third", cpus: 4, others: some(gpu.resource, 1)})
	r.mustAdmit(p)
	for _, name := range []string{"side", "first", "third"} {
		on := r.onlyNode(r.cpusOn(r.mustCreate(p, name)))
		if want := r.onlyNodeOf(p, name, gpu.resource); on != want {
			t.Errorf("%s has CPUs on node %d and a device on node %d", name, on, want)
		}
	}
	r.mustCreate(p, "second")
}

func TestADeviceWhoseNodeHasNoCPULeft(t *testing.T) {
	r := newRig(t, "none", "topologyManagerPolicy=single-numa-node")
	gpu := r.startVendor("gpu.example/gpu", 2, "-only", "gpu0=5", "-only", "gpu1=5")
	r.mustRun(newPod("first", ask{name: "main", cpus: perNode, others: some(gpu.resource, 1)}))
	p := newPod("second", ask{name: "main", cpus: 1, others: some(gpu.resource, 1)})
	r.mustAdmit(p)
	if _, err := r.create(p, "main"); err == nil || !strings.Contains(err.Error(), "Topology") {
		t.Errorf("one CPU beside node 5, which has none: %v", err)
	}
}

// a pod whose containers each are treated in another way by who knows their kinds.
func jobPod() *v1.Pod {
	return newPod("job", ask{name: "log", kind: "sidecar", cpus: 3},
		ask{name: "prepare", kind: "init", cpus: 8}, ask{name: "main", cpus: 8})
}

// intrude starts containers of almost a node's CPUs until there is no node left.
func (r *rig) intrude() (nr int) {
	for ; nr <= nrNodes; nr++ {
		p := newPod(fmt.Sprint("intruder", nr), ask{name: "main", cpus: perNode - 1})
		r.mustAdmit(p)
		if _, err := r.create(p, "main"); err != nil {
			return nr
		}
	}
	return nr
}

func TestPodsAPITellsWhichContainersFollowEachOther(t *testing.T) {
	r := newRig(t, "none", "topologyManagerPolicy=single-numa-node")
	p := jobPod()
	r.mustAdmit(p)
	log, prepare := r.mustCreate(p, "log"), r.mustCreate(p, "prepare")
	before := own(r.node, prepare)
	r.stop(prepare)
	if nr := r.intrude(); nr != nrNodes-1 {
		t.Errorf("%d intruders, each with a node of its own", nr)
	}
	main := r.mustCreate(p, "main")
	if !own(r.node, main).equal(before) || !before.disjoint(own(r.node, log)) || len(own(r.node, log)) != 3 {
		t.Errorf("log on %s, prepare on %v, main on %s", log.Linux.Resources.Cpu.Cpus, before,
			main.Linux.Resources.Cpu.Cpus)
	}
	for name, words := range map[string]string{"log": "sidecar container", "prepare": "init container", "main": "held"} {
		if told := r.explain("job/" + name); !strings.Contains(told, words) || strings.Contains(told, "assumed") {
			t.Errorf("%s: no %q in, or an assumption: %s", name, words, told)
		}
	}
}

func TestPodsAPILetsAPodBeRefusedBeforeItsSandboxRuns(t *testing.T) {
	r := newRig(t, "none", "topologyManagerPolicy=single-numa-node", "topologyManagerScope=pod")
	wide := newPod("wide", ask{name: "first", cpus: 10}, ask{name: "second", cpus: 10})
	r.mustAdmit(wide)
	if err := r.runSandbox(wide); err == nil || !strings.Contains(err.Error(), "Topology") {
		t.Errorf("20 CPUs on one node of 16: %v", err)
	}
	narrow := newPod("narrow", ask{name: "prepare", kind: "init", cpus: 10}, ask{name: "main", cpus: 10})
	r.mustAdmit(narrow)
	r.stop(r.mustCreate(narrow, "prepare"))
	r.mustCreate(narrow, "main")
}

func TestPodsAPIMayGoAndComeBack(t *testing.T) {
	r := newRig(t, "none", "topologyManagerPolicy=single-numa-node")
	p := jobPod()
	r.mustAdmit(p)
	r.mustCreate(p, "log")
	r.restartKubelet()
	r.waitLog(2, "pods-api-synced")
	r.mustCreate(p, "prepare")
	q := newPod("late", ask{name: "prepare", kind: "init", cpus: 2}, ask{name: "main", cpus: 4})
	r.mustAdmit(q)
	r.stop(r.mustCreate(q, "prepare"))
	r.mustCreate(q, "main")
	if told := r.explain("late/prepare"); !strings.Contains(told, "init container") {
		t.Errorf("late/prepare: %s", told)
	}
}

// TestAutoTakesThePodsAPIWhereItIsServed: nothing in the settings asks for it.
func TestAutoTakesThePodsAPIWhereItIsServed(t *testing.T) {
	r := newRigWith(t, "none", nil, append(services[:3:3], "topologyManagerPolicy=single-numa-node")...)
	r.waitLog(1, "event=pod-facts source=kubelet")
	p := jobPod()
	r.mustAdmit(p)
	r.mustCreate(p, "log")
	r.stop(r.mustCreate(p, "prepare"))
	if nr := r.intrude(); nr != nrNodes-1 {
		t.Errorf("%d intruders, each with a node of its own", nr)
	}
	r.mustCreate(p, "main")
}

// TestAKubeletWithoutThatServiceIsLoggedOnce: there is no such socket, or one with other services.
// After each restart it is asked again.
func TestAKubeletWithoutThatServiceIsLoggedOnce(t *testing.T) {
	r := newRigWith(t, "none", nil, append(services[:3:3], "topologyManagerPolicy=single-numa-node")...)
	r.waitLog(1, "event=pod-facts source=sandbox")
	r.restartKubelet()
	r.mustRun(newPod("web", ask{name: "main", cpus: 2}))
	r.kubelet.waitHealthy(cpuResource, int64(r.tokens()-2))
	r.kubelet.foreign = true
	for range 2 {
		before := r.kubelet.unknown.Load()
		r.restartKubelet()
		r.kubelet.await("the Pods API to be asked for", func() any { return r.kubelet.unknown.Load() > before }, true)
	}
	r.mustRun(newPod("db", ask{name: "main", cpus: 2}))
	text, err := os.ReadFile(filepath.Join(r.dir, "log"))
	for _, words := range []string{"event=pod-facts", "event=pods-api-waiting"} {
		if nr := strings.Count(string(text), words); err != nil || nr != 1 {
			t.Errorf("%q is logged %d times: %v", words, nr, err)
		}
	}
}

func TestWithoutFactsTheDecisionNamesItsAssumption(t *testing.T) {
	r := newRigWith(t, "none", nil, append(services[:3:3], "podsAPI.enabled=false", "topologyManagerPolicy=single-numa-node",
		"topologyManagerScope=pod")...)
	p := jobPod()
	r.mustAdmit(p)
	r.mustCreate(p, "log")
	r.stop(r.mustCreate(p, "prepare"))
	if told := r.explain("job/prepare", "--all"); !strings.Contains(told, "assumed") && !strings.Contains(told, "aligned") {
		t.Errorf("no assumption in: %s", told)
	}
	if told := r.explain("job/log"); !strings.Contains(told, "assumed") {
		t.Errorf("no assumption in: %s", told)
	}
	if nr := r.intrude(); nr != nrNodes-1 {
		t.Errorf("%d intruders beside log", nr)
	}
	// nobody has kept what prepare left: a smaller intruder gets it, and the app does not
	r.mustRun(newPod("small", ask{name: "main", cpus: 13}))
	if _, err := r.create(p, "main"); err == nil {
		t.Error("the app got 8 CPUs where none were left")
	}
}
