package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// What the kubelet's own Topology Manager makes of the tokens.

const (
	topologyError  = "TopologyAffinityError"
	admissionError = "UnexpectedAdmissionError"
)

// fill gives all CPUs of these nodes to pods with tokens.
func (r *rig) fill(nodes ...int) {
	r.Helper()
	left := map[int]bool{}
	for _, node := range nodes {
		left[node] = true
	}
	for i := 0; len(left) > 0; i++ { // the lowest node comes first
		p := tokenPod(fmt.Sprint("fill", i), perNode)
		on := r.onlyNode(r.cpusOn(r.mustRun(p)))
		if !left[on] {
			r.Fatalf("filled node %d", on)
		}
		delete(left, on)
	}
}

func TestTokensAreAdmittedUnderEachPolicy(t *testing.T) {
	closest := map[string]string{"prefer-closest-numa-nodes": "true"}
	for _, one := range []struct {
		policy  string
		options map[string]string
		full    []int // nodes
		asked   int64
		nodes   []int // that it shall be on
		reason  string
	}{
		{policy: "none", asked: 16, nodes: []int{0}},
		{policy: "none", asked: 12, full: []int{0}, nodes: []int{1}},
		{policy: "none", asked: 24, full: []int{0, 1, 2}, nodes: []int{4, 5}}, // our preference
		{policy: "none", asked: 129, reason: admissionError},
		{policy: "best-effort", asked: 16, nodes: []int{0}},
		{policy: "best-effort", asked: 12, full: []int{0}, nodes: []int{1}},
		{policy: "best-effort", asked: 24, full: []int{0, 1, 2}, nodes: []int{3, 4}},
		{policy: "best-effort", options: closest, asked: 24, full: []int{0, 1, 2}, nodes: []int{4, 5}},
		{policy: "best-effort", asked: 129, reason: admissionError},
		{policy: "restricted", asked: 16, nodes: []int{0}},
		{policy: "restricted", asked: 12, full: []int{0}, nodes: []int{1}},
		{policy: "restricted", asked: 24, full: []int{0, 1, 2}, nodes: []int{3, 4}},
		{policy: "restricted", options: closest, asked: 24, full: []int{0, 1, 2}, nodes: []int{4, 5}},
		{policy: "restricted", asked: 129, reason: topologyError},
		{policy: "single-numa-node", asked: 16, nodes: []int{0}},
		{policy: "single-numa-node", asked: 12, full: []int{0}, nodes: []int{1}},
		{policy: "single-numa-node", asked: 24, reason: topologyError},
		{policy: "single-numa-node", asked: 129, reason: topologyError},
	} {
		name := fmt.Sprintf("%s %v, %d tokens with nodes %v full", one.policy, one.options, one.asked, one.full)
		t.Run(name, func(t *testing.T) {
			r := newRigWith(t, one.policy, one.options, services...)
			r.fill(one.full...)
			p := tokenPod("one", one.asked)
			if err := r.kubelet.admit(p); err != nil || one.reason != "" {
				if err == nil || !strings.HasPrefix(err.Error(), one.reason) || one.reason == "" {
					t.Errorf("admission: %v, want %q", err, one.reason)
				}
				return
			}
			var nodes []int
			for node, nr := range r.tokensOn(p, "main") {
				if nr > 0 {
					nodes = append(nodes, node)
				}
			}
			hint := affinityOf(r.kubelet.topology, string(p.UID), "main")
			if !slices.Equal(nodes, one.nodes) {
				t.Errorf("tokens on nodes %v", nodes)
			}
			if one.policy != "none" && (!hint.Preferred || !slices.Equal(hint.NUMANodeAffinity.GetBits(), one.nodes)) {
				t.Errorf("the Topology Manager's choice is %v", hint)
			}
			r.followsTokens(p, r.mustCreate(p, "main"))
		})
	}
}

func TestPreferredAllocationIsFollowed(t *testing.T) {
	r := newRig(t, "none")
	for _, one := range []struct {
		asked int64
		want  string // lowest ids of one node; then the node with just enough is not looked for
	}{
		{3, "map[node0-0000:0 node0-0001:0 node0-0002:0]"},
		{2, "map[node0-0003:0 node0-0004:0]"},
		{12, "map[node1-0000:1 node1-0001:1 node1-0002:1 node1-0003:1 node1-0004:1 node1-0005:1 " +
			"node1-0006:1 node1-0007:1 node1-0008:1 node1-0009:1 node1-0010:1 node1-0011:1]"},
		{11, "map[node0-0005:0 node0-0006:0 node0-0007:0 node0-0008:0 node0-0009:0 node0-0010:0 " +
			"node0-0011:0 node0-0012:0 node0-0013:0 node0-0014:0 node0-0015:0]"},
	} {
		p := tokenPod(fmt.Sprint("ask", one.asked), one.asked)
		c := r.mustRun(p)
		if got := fmt.Sprint(r.kubelet.held(p, "main", cpuResource)); got != one.want {
			t.Errorf("%d of them: %s", one.asked, got)
		}
		r.followsTokens(p, c)
	}
}

func TestOneNodesTokensArePreferredUnderAHint(t *testing.T) {
	r := newRig(t, "restricted")
	first, second := tokenPod("first", 10), tokenPod("second", 10)
	r.mustRun(first)
	r.mustRun(second)
	a, b := r.kubelet.held(first, "main", cpuResource), r.kubelet.held(second, "main", cpuResource)
	for i := range 10 {
		for node, ids := range []map[string]int{a, b} {
			id := fmt.Sprintf("node%d-%04d", node, i)
			if _, ok := ids[id]; !ok {
				t.Errorf("%s is not among %v", id, ids)
			}
		}
	}
}

func TestUnequalAsksForCPUsAndTokensAreRefused(t *testing.T) {
	r := newRig(t, "none")
	for i, a := range []ask{{name: "main", cpus: 4, tokens: 2}, {name: "main", cpus: 2, tokens: 4},
		{name: "main", milli: 1500, tokens: 2}} {
		p := newPod(fmt.Sprint("odd", i), a)
		r.mustAdmit(p)
		_, err := r.create(p, "main")
		if err == nil || !strings.Contains(err.Error(), cpuResource) {
			t.Errorf("%d CPUs (%d m) and %d tokens: %v", a.cpus, a.milli, a.tokens, err)
		} else {
			t.Logf("refused: %v", err)
		}
		r.end(p)
	}
}

func TestANodesTokensAndTheOtherVendorsDevicesMeet(t *testing.T) {
	r := newRig(t, "single-numa-node")
	gpu := r.startVendor("gpu.example/gpu", 2, "-only", "gpu0=5", "-only", "gpu1=2")
	both := newPod("both", ask{name: "main", cpus: 16, tokens: 16, others: some(gpu.resource, 1)})
	c := r.mustRun(both)
	r.followsTokens(both, c)
	if on := r.onlyNode(r.cpusOn(c)); on != r.onlyNodeOf(both, "main", gpu.resource) {
		t.Errorf("CPUs on node %d, its device elsewhere", on)
	}
	more := newPod("more", ask{name: "main", cpus: 17, tokens: 17, others: some(gpu.resource, 1)})
	if err := r.kubelet.admit(more); err == nil || !strings.HasPrefix(err.Error(), topologyError) {
		t.Errorf("17 CPUs and a device of one node: %v", err)
	}
}

// onlyNodeOf is the one NUMA node of the devices that the container has.
func (r *rig) onlyNodeOf(p *v1.Pod, container, resource string) int {
	r.Helper()
	var on [nrNodes]int
	for _, node := range r.kubelet.held(p, container, resource) {
		on[node]++
	}
	return r.onlyNode(on)
}
