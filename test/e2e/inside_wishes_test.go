package e2e

import (
	"encoding/json"
	"testing"
)

// A case of a node in a virtual machine: what pods' authors wish for, of what is allowed where nobody has
// chosen, is where their tasks run and their pages lie.

// putAnnotated gives the kubelet the file of a pod with one container, and waits until it runs.
func (n *node) putAnnotated(name, qos string, annotations notes, w want) held {
	n.Helper()
	var pod map[string]any
	n.must(json.Unmarshal(manifest(name, qos, nil, []want{w}), &pod))
	pod["metadata"].(map[string]any)["annotations"] = annotations
	n.putManifest(name, toJSON(pod))
	return n.held(n.awaitStatic(name).containers[w.name])
}

func TestInsideWishes(t *testing.T) {
	n := inside(t)
	nodes := n.numactl()
	main := want{name: "main", milli: 1000, memory: 32 * mi}
	there := n.putAnnotated("there", guaranteed, notes{"numafit.io/numa-nodes": "2"}, main)
	if !there.Exclusive || there.Mems != "2" || !n.within(there.CPUs, asList(nodes[2])) {
		t.Errorf("wished for node 2: %+v", there)
	}
	shared := n.putAnnotated("shared", guaranteed, notes{"numafit.io/cpus": "shared"}, main)
	if shared.Exclusive || len(n.set(shared.Mems)) != 1 {
		t.Errorf("wished for shared CPUs: %+v", shared)
	}
	main.milli = 100
	near := n.putAnnotated("near", burstable, notes{"numafit.io/spread": "one-node,strict-memory"}, main)
	mems := n.set(near.Mems)
	for node := range mems {
		if len(mems) != 1 || !n.within(near.CPUs, asList(nodes[node])) {
			t.Errorf("wished for one NUMA node: %+v; numactl -H says %v", near, nodes)
		}
	}
	n.checkAll() // each task runs, and each page lies, where numafitd says
	n.runStatic("own", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
	n.checkAll()
	for _, name := range []string{"own", "near", "shared", "there"} {
		n.dropStatic(name)
	}
}
