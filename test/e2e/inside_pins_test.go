package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Cases of a node in a virtual machine: what is decided for static pods is in force, by the kernel's own
// account, and what they leave behind.

func TestInsidePinsAreInForce(t *testing.T) {
	n := inside(t)
	nodes := n.numactl()
	if len(nodes) != 4 {
		t.Fatalf("numactl -H shows %d nodes", len(nodes))
	}
	n.runStatic("first", guaranteed, nil, []want{{name: "two", milli: 2000, memory: 32 * mi}})
	n.checkAll()
	fmt.Println("figure: the first pinned pod runs") // the time is added outside
	own := n.runThree()
	n.checkAll()
	first := n.pods["first"]
	for _, h := range []held{n.held(own.containers["two"]), n.held(first.containers["two"])} {
		mems := slices.Sorted(maps.Keys(n.set(h.Mems)))
		if !h.Exclusive || len(mems) != 1 || !maps.Equal(n.set(h.CPUs), nodes[mems[0]]) {
			t.Errorf("%s/%s has cpus %s mems %s; numactl -H says %v", h.Pod, h.Container, h.CPUs, h.Mems, nodes)
		}
	}
	n.dropStatic("first")
	// CPUs on two nodes beside memory on one: restricted has that nowhere
	n.putPod("split", guaranteed, nil, []want{{name: "three", milli: 3000, memory: 32 * mi}})
	n.await("split to be refused", func() bool { return strings.Contains(n.refusal("split"), "TopologyAffinityError") })
	n.dropStatic("split")
	n.runStatic("wide", guaranteed, nil, []want{{name: "three", milli: 3000, memory: 700 * mi}}) // more than a node has
	n.checkAll()
	if h := n.held(n.pods["wide"].containers["three"]); len(n.set(h.CPUs)) != 3 || len(n.set(h.Mems)) != 2 {
		t.Errorf("three CPUs are %s on nodes %s", h.CPUs, h.Mems)
	}
	n.dropStatic("wide")
}

// A resize, as a kubelet has the runtime do it: a container's CPUs become fewer, and more.
func TestInsideResize(t *testing.T) {
	n := insideAsLeft(t)
	p := n.haveThree()
	before := n.checkAll()
	for _, cpus := range []int{3, 1, 2} {
		n.must(n.resize(p, want{name: "two", milli: int64(cpus) * 1000, memory: 32 * mi}))
		s := n.checkAll()
		if nr := n.exclusive(p, "two"); nr != cpus {
			t.Errorf("resized to %d CPUs it has %d", cpus, nr)
		}
		if cpus == 2 && s.Pool != before.Pool {
			t.Errorf("the pool was %s and is %s", before.Pool, s.Pool)
		}
	}
}

// refusal is what numafitd says of a pod that it has refused with its sandbox, of which the kubelet's status
// has no word; "": nothing.
func (n *node) refusal(pod string) string {
	n.Helper()
	for _, l := range strings.Split(n.said("numafitd", 60), "\n") {
		if strings.Contains(l, "event=pod-refused") && strings.Contains(l, pod+"-"+nodeName) {
			return l
		}
	}
	return ""
}

func TestInsideInitContainersAndSidecars(t *testing.T) {
	n := inside(t)
	n.putPod("web", guaranteed, []want{
		{name: "side", milli: 1000, memory: 32 * mi, sidecar: true},
		{name: "init", milli: 2000, memory: 32 * mi, args: []string{"grep '_allowed_list' /proc/self/status; sleep 2"}},
	}, []want{{name: "main", milli: 2000, memory: 32 * mi}})
	p := n.awaitStatic("web")
	n.checkAll()
	if n.exclusive(p, "side") != 1 || n.exclusive(p, "main") != 2 || len(n.status().running()) != 2 {
		t.Errorf("the sidecar and the main container: %+v", n.status().Containers)
	}
	before := picture(n.status())
	n.killContainer(p, "side") // the kubelet starts it anew, and it comes back to its CPUs
	n.awaitAgain("web", "side")
	n.checkAll()
	t.Logf("before:\n%s\nafter:\n%s", before, picture(n.status()))
}
