package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// In a virtual machine of eight NUMA nodes of two CPUs: what the kernel makes of a decision. The
// daemon finds out about the machine by itself.

func TestInForceInAVirtualMachine(t *testing.T) {
	patience = 3 * time.Minute // of a busy host's clock
	n := newNode(t, options{machine: this, timeout: "30s", settings: []string{"reservedSystemCPUs=0",
		"topologyManagerPolicy=restricted", "topologyManagerPolicyOptions.prefer-closest-numa-nodes=true"}})
	nodes := n.numactl()
	if len(nodes) != 8 {
		t.Fatalf("numactl -H shows %d nodes", len(nodes))
	}
	shared := n.startPod("batch", burstable, batch...).containers["batch"]
	p := n.startPod("own", guaranteed, want{name: "two", milli: 2000, memory: 32 * mi},
		want{name: "four", milli: 4000, memory: 200 * mi}) // more than a node has
	n.check()
	for name, nrNodes := range map[string]int{"two": 1, "four": 2} {
		h := n.held(p.containers[name])
		mems := slices.Sorted(maps.Keys(n.set(h.Mems)))
		t.Logf("%s: cpus %s mems %s", name, h.CPUs, h.Mems)
		if !h.Exclusive || len(mems) != nrNodes {
			t.Errorf("%s: %+v", name, h)
		}
		if nrNodes == 2 && mems[0]^mems[1] != 1 { // the neighbours, at distance 11
			t.Errorf("%s is on nodes %v, which are not next to each other", name, mems)
		}
		cpus := set{}
		for _, m := range mems {
			maps.Copy(cpus, nodes[m])
		}
		if !maps.Equal(cpus, n.set(h.CPUs)) { // all of two nodes are four CPUs
			t.Errorf("%s has CPUs %s; numactl -H says that its nodes %v have %v", name, h.CPUs, mems, nodes)
		}
		n.checkInside(h)
	}
	n.checkInside(n.held(shared))
}

// numactl are the CPUs of each node, as `numactl -H` tells them.
func (n *node) numactl() map[int]set {
	n.Helper()
	nodes := map[int]set{}
	for _, l := range strings.Split(n.run("numactl", "-H"), "\n") {
		var node int
		if head, cpus, ok := strings.Cut(l, " cpus: "); ok {
			if _, err := fmt.Sscanf(head, "node %d", &node); err != nil {
				n.Fatalf("numactl -H says %q", l)
			}
			nodes[node] = n.set(strings.Join(strings.Fields(cpus), ","))
		}
	}
	return nodes
}

// checkInside looks from the container's side, and where the pages are that it writes.
func (n *node) checkInside(h held) {
	n.Helper()
	const written = 8 * mi
	self := n.inside(h.ID, "/bin/sh", "-c", fmt.Sprintf(
		"cat /proc/self/status; dd if=/dev/zero of=/dev/shm/%s bs=1048576 count=%d", h.Container, written/mi))
	if cpus, mems := line(self, "Cpus_allowed_list:"), line(self, "Mems_allowed_list:"); cpus != h.CPUs || mems != h.Mems {
		n.Errorf("%s: decided cpus %s mems %s, inside it is %s and %s", h.Container, h.CPUs, h.Mems, cpus, mems)
	}
	stat := line(n.read(filepath.Join(cpusetCgroup(n.pid(h.ID)), "memory.numa_stat")), "shmem ")
	total, mems := 0, n.set(h.Mems)
	for _, field := range strings.Fields(stat) {
		var node, bytes int
		if _, err := fmt.Sscanf(field, "N%d=%d", &node, &bytes); err != nil {
			n.Fatalf("memory.numa_stat: %q", stat)
		}
		if bytes > 0 && !mems[node] {
			n.Errorf("%s has pages on node %d, and is to have them on %s: %s", h.Container, node, h.Mems, stat)
		}
		total += bytes
	}
	if total != written {
		n.Errorf("%s wrote %d bytes, its nodes hold %s", h.Container, written, stat)
	}
}
