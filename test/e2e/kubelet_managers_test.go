package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Beside a kubelet that has no device plugin: it leaves CPUs and memory to numafitd, or numafitd looks
// over the shoulders of its own static managers.

func besideKubelet(policy string, settings ...string) options {
	return options{machine: this, kubelet: &kubeletOptions{policy: policy},
		settings: append(settings, "topologyManagerPolicy="+policy, "reservedSystemCPUs=0,64", "reservedMemory.0.numaNode=0",
			fmt.Sprintf("reservedMemory.0.limits.memory=%dMi", reservedMi),
			"sweepInterval=0")} // the kernel's cpusets are those of the machine that is there
}

const gi = 1 << 30

func TestKubeletsPodsRunWhereNumafitdDecides(t *testing.T) {
	n := newNode(t, besideKubelet("none"))
	n.runStatic("db", guaranteed, nil, db)
	n.runStatic("web", guaranteed, nil, web)
	n.runStatic("batch", burstable, nil, batch)
	s := n.settle()
	for _, h := range s.Containers {
		n.checkCreated(h.ID)
		if h.Exclusive {
			n.checkNear(h)
		}
	}
	n.dropPod("web")
	if left := n.settle(); len(left.Containers) != 2 {
		t.Errorf("held still: %+v", left.Containers)
	}
}

// checkNear insists that the container's CPUs are on its memory's NUMA nodes.
func (n *node) checkNear(h held) {
	n.Helper()
	mems := n.set(h.Mems)
	for cpu := range n.set(h.CPUs) {
		if !mems[nodeOf(cpu)] {
			n.Errorf("%s has CPU %d of node %d, and memory of %s", h.Container, cpu, nodeOf(cpu), h.Mems)
		}
	}
}

func TestKubeletsStaticManagersAndShadowAgreeUnderRestricted(t *testing.T) {
	shadowAgrees(t, besideKubelet("restricted"), nil)
}

func TestKubeletsStaticManagersAndShadowAgreeUnderSingleNumaNode(t *testing.T) {
	shadowAgrees(t, besideKubelet("single-numa-node"), nil)
}

// Init containers' CPUs and memory are used again by those that come after them, sidecars' are not:
// that is known from the Pods API.
func TestKubeletsStaticManagersAndShadowAgreeOnInitContainersAndSidecars(t *testing.T) {
	shadowAgrees(t, withPodsAPI(besideKubelet("restricted", "podsAPI.enabled=true")), randomInit)
}

func TestKubeletsStaticManagersAndShadowAgreeOnWholePods(t *testing.T) {
	o := withPodsAPI(besideKubelet("restricted", "podsAPI.enabled=true", "topologyManagerScope=pod",
		"topologyManagerPolicyOptions.prefer-closest-numa-nodes=true"))
	o.kubelet.pods = true
	shadowAgrees(t, o, randomInit)
}

func withPodsAPI(o options) options {
	o.kubelet.gates = map[string]bool{"PodsAPI": true}
	return o
}

// shadowAgrees compares the kubelet's placements of random pods with those that numafitd makes
// without looking at them. init makes the pods' init containers.
func shadowAgrees(t *testing.T, o options, init func(*rand.Rand) []want) {
	const nrPods, atMost = 16, 8 // that run at a time
	o.settings = append(o.settings, "mode=shadow")
	o.kubelet.static = true
	n := newNode(t, o)
	if init != nil {
		n.await("the kubelet's pods", func() bool { return n.status().Kubelet.PodsAPI == "up" })
	}
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = 6 // with it the pods need what the Pods API tells
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(o.kubelet.policy))))
	var names []string
	compared, refused := 0, 0
	for i := range nrPods {
		if len(names) == atMost {
			nr := random.IntN(len(names))
			n.dropPod(names[nr])
			names = slices.Delete(names, nr, nr+1)
		}
		name, containers, before := fmt.Sprintf("pod%d", i), randomContainers(random), []want(nil)
		if init != nil {
			before = init(random)
		}
		n.putPod(name, guaranteed, before, containers)
		if n.refusedOrRuns(name) != "" {
			refused++
			continue
		}
		names = append(names, name)
		compared += len(before) + len(containers)
		if c := n.status().Counters; c.Disagreed > 0 || c.Compared != compared {
			t.Fatalf("%s %+v %+v: of %d placements %d were compared, %d disagree\n%s", name, before, containers, compared,
				c.Compared, c.Disagreed, n.grep("numafitd.log", "verdict=disagrees"))
		}
	}
	if refused == 0 || refused == nrPods {
		t.Errorf("%d of %d pods refused: the node has too much room, or too little", refused, nrPods)
	}
	t.Logf("%d containers of %d pods are placed the same, %d pods refused", compared, nrPods, refused)
}

// randomContainers ask for whole CPUs, the first one in any case: by it the kubelet's book is seen to
// let go of the pod.
func randomContainers(random *rand.Rand) (all []want) {
	for i := range 1 + random.IntN(5) {
		w := want{name: fmt.Sprintf("c%d", i), milli: int64(1+random.IntN(6)) * 1000, memory: int64(1+random.IntN(24)) * gi}
		switch {
		case i > 0 && random.IntN(4) == 0:
			w.milli = 500
		case random.IntN(5) == 0:
			w.milli = int64(8+random.IntN(16)) * 1000
		}
		all = append(all, w)
	}
	return all
}

func randomInit(random *rand.Rand) (all []want) {
	for i := range random.IntN(4) {
		w := want{name: fmt.Sprintf("i%d", i), milli: int64(1+random.IntN(8)) * 1000, memory: int64(1+random.IntN(16)) * gi,
			sidecar: random.IntN(2) == 0}
		if !w.sidecar {
			w.args = []string{"true"}
		}
		all = append(all, w)
	}
	return all
}
