package e2e

import (
	"fmt"
	"maps"
	"strconv"
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
	for node, wanted := range []string{"10 11 20 32", "11 10 32 20", "20 32 10 11", "32 20 11 10"} {
		if is := n.read(fmt.Sprintf("/sys/devices/system/node/node%d/distance", node)); is != wanted {
			t.Fatalf("NUMA node %d has the distances %s, not %s", node, is, wanted)
		}
	}
	two := []want{{name: "two", milli: 2000, memory: 32 * mi}}
	n.runStatic("first", guaranteed, nil, two)
	n.checkAll()
	fmt.Println("figure: the first pinned pod runs") // the time is added outside
	n.dropStatic("first")
	own := n.runThree()
	n.runStatic("second", guaranteed, nil, two)
	n.checkAll()
	for i, p := range []*pod{own, n.pods["second"]} { // node 0 has one CPU that is not reserved
		h, node := n.held(p.containers["two"]), i+1
		if !h.Exclusive || h.Mems != strconv.Itoa(node) || !maps.Equal(n.set(h.CPUs), nodes[node]) {
			t.Errorf("%s/%s has cpus %s mems %s and not NUMA node %d; numactl -H says %v", h.Pod, h.Container, h.CPUs, h.Mems, node, nodes)
		}
	}
	n.dropStatic("second")
	// CPUs on two nodes beside memory on one: restricted has that nowhere
	n.putPod("split", guaranteed, nil, []want{{name: "three", milli: 3000, memory: 32 * mi}})
	n.await("split to be refused", func() bool { return strings.Contains(n.refusal("split"), "TopologyAffinityError") })
	n.dropStatic("split")
	// More memory than a node has. Nodes 0 and 2 are the first with three CPUs, 2 and 3 those closest to each other.
	n.runStatic("wide", guaranteed, nil, []want{{name: "three", milli: 3000, memory: 700 * mi}})
	n.checkAll()
	if h := n.held(n.pods["wide"].containers["three"]); len(n.set(h.CPUs)) != 3 || h.Mems != "2-3" {
		t.Errorf("three CPUs are %s on nodes %s, not on 2-3", h.CPUs, h.Mems)
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
	allowed := n.logOf("web", "init") // which has ended
	cpus, mems := n.set(line(allowed, "Cpus_allowed_list:")), line(allowed, "Mems_allowed_list:")
	if node, err := strconv.Atoi(mems); err != nil || !maps.Equal(cpus, n.numactl()[node]) {
		t.Errorf("the init container asked for two CPUs of its own, and printed\n%s", allowed)
	}
	before := n.held(p.containers["side"])
	n.killContainer(p, "side")
	n.awaitAgain("web", "side")
	n.checkAll()
	after := n.held(n.pods["web"].containers["side"])
	if before.ID = after.ID; after != before {
		t.Errorf("the sidecar was\n%+v, and once the kubelet has started it again it is\n%+v", before, after)
	}
}
