package e2e

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// What TestClusterVM has looked at in its node. Pods come and go by the cluster, and numafitd is one of them.

func insideCluster(t *testing.T) *node {
	t.Helper()
	n := insideAny(t)
	n.look()
	t.Cleanup(func() {
		if n.Failed() {
			n.report()
		}
	})
	return n
}

// It also gets numafit's image.
func TestInClusterBeginsEmpty(t *testing.T) {
	n := insideCluster(t)
	if len(n.pods) != 0 || len(podCgroups()) != 0 {
		t.Errorf("these pods run: %v", n.pods)
	}
	n.checkCgroupsAreAsFound()
	n.run("ctr", "-n", "k8s.io", "images", "import", deployed+"/numafit.tar")
}

func TestInClusterAllIsPinned(t *testing.T) {
	n := insideCluster(t)
	s := n.checkAll()
	for _, h := range s.Containers {
		if h.Exclusive {
			t.Errorf("nobody has asked for CPUs of its own: %+v", h)
		}
	}
	if n.pods["early"] == nil || len(n.set(s.Pool)) != nrAllCPUs {
		t.Errorf("the shared pool is %s, and these pods run: %v", s.Pool, n.pods)
	}
}

func TestInClusterOwnHasItsCPUs(t *testing.T) {
	n := insideCluster(t)
	s := n.checkAll()
	own := n.pods["own"]
	if n.pods["batch"] == nil || n.pods["best"] == nil || own == nil {
		t.Fatalf("these pods run: %v", n.pods)
	}
	nodes, h := n.numactl(), n.held(own.containers["two"])
	mems := sortedKeys(n.set(h.Mems))
	if n.exclusive(own, "two") != 2 || len(mems) != 1 || len(nodes[mems[0]]) != 2 || !maps.Equal(nodes[mems[0]], n.set(h.CPUs)) {
		t.Errorf("two has cpus %s mems %s; numactl -H says %v", h.CPUs, h.Mems, nodes)
	}
	if n.exclusive(own, "part") != 0 || len(n.set(s.Pool)) != nrAllCPUs-2 {
		t.Errorf("the shared pool is %s:\n%s", s.Pool, picture(s))
	}
}

// All that runs, and what has been placed while it ran, has what it would have had without numafitd. The rest
// of the node's folder is removed as well.
func TestInClusterAllHaveTheMachine(t *testing.T) {
	n := insideCluster(t)
	for _, name := range []string{"early", "own", "batch", "best"} {
		if n.pods[name] == nil {
			t.Fatalf("these pods run: %v", n.pods)
		}
	}
	for _, p := range n.pods {
		if strings.HasPrefix(p.name, "numafitd") {
			t.Errorf("%s runs still", p)
		}
	}
	n.checkAllHaveTheMachine()
	n.must(os.RemoveAll("/run/numafit"))
}

func TestInClusterCgroupsAreAsFound(t *testing.T) {
	n := insideCluster(t)
	n.await("all cgroups of pods to go", func() bool { return len(podCgroups()) == 0 })
	n.checkCgroupsAreAsFound()
}
