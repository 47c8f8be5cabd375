package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Pods with resources of their own (spec.resources, KEP-5526): a kubelet shows the runtime a container
// without limits with those of its pod.

var (
	ownOfTeam = want{milli: 6000, memory: 4 * gi}
	team      = []want{
		{name: "alone", milli: 2000, memory: gi},
		{name: "shares"},
		{name: "shares-too"},
	}
)

func withGate(on bool, scope string) options {
	return withPodsAPI(besideKubelet("restricted", "podsAPI.enabled=true", "topologyManagerScope="+scope,
		fmt.Sprintf("featureGates.PodLevelResourceManagers=%t", on)))
}

// runTeam is a node with that pod, and what its containers have.
func runTeam(t *testing.T, o options) (n *node, of map[string]held) {
	n = newNode(t, o)
	n.await("the kubelet's pods", func() bool { return n.status().Kubelet.PodsAPI == "up" })
	n.putManifest("team", manifestWith("team", guaranteed, &ownOfTeam, nil, team))
	n.awaitStatic("team")
	of = map[string]held{}
	for _, h := range n.settle().Containers {
		of[h.Container] = h
		n.checkCreated(h.ID)
	}
	return n, of
}

func (n *node) countCPUs(h held) int { return len(n.set(h.CPUs)) }

func TestKubeletsPodSharesItsOwnResourcesOut(t *testing.T) {
	n, of := runTeam(t, withGate(true, "pod"))
	if h := of["alone"]; !h.Exclusive || n.countCPUs(h) != 2 {
		t.Errorf("alone: %+v", h)
	}
	if a, b := of["shares"], of["shares-too"]; !a.SharesInPod || a.CPUs != b.CPUs || n.countCPUs(a) != 4 {
		t.Errorf("they do not share four CPUs: %+v %+v", a, b)
	}
	n.killDaemon()
	n.startDaemon()
	n.settle()
	for name, before := range of {
		if now := n.held(before.ID); now.CPUs != before.CPUs {
			t.Errorf("%s has %s after a restart, and had %s", name, now.CPUs, before.CPUs)
		}
	}
	n.dropPod("team")
	if s := n.settle(); len(s.Containers) != 0 || strings.Contains(fmt.Sprint(s.Nodes), "Held:6") {
		t.Errorf("held still: %+v", s)
	}
}

func TestKubeletsPodWithResourcesOfItsOwnInContainerScope(t *testing.T) {
	n, of := runTeam(t, withGate(true, "container"))
	if h := of["alone"]; !h.Exclusive || n.countCPUs(h) != 2 {
		t.Errorf("alone: %+v", h)
	}
	for _, name := range []string{"shares", "shares-too"} {
		if h := of[name]; h.Exclusive || h.SharesInPod {
			t.Errorf("%s does not share the node's CPUs: %+v", name, h)
		}
	}
}

func TestKubeletsPodWithResourcesOfItsOwnHasNoCPUsWithoutTheGate(t *testing.T) {
	for _, scope := range []string{"pod", "container"} {
		t.Run(scope, func(t *testing.T) {
			_, of := runTeam(t, withGate(false, scope))
			for name, h := range of {
				if h.Exclusive || h.SharesInPod {
					t.Errorf("%s has CPUs of its own: %+v", name, h)
				}
			}
		})
	}
}
