package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The whole loop: kube-scheduler asks numafit-extender, which binds and leaves the hint on the pod;
// the node follows it and reports what is left, by which the next pod is scheduled.

const (
	extenderURL  = "http://127.0.0.1:9467"
	perPod       = 10 // CPUs: one such pod fits into each NUMA node
	hintAccepted = "accepted"
	hintStale    = "accepted-stale" // the node has counted on since, and it can be followed
)

func TestClusterLoopIsClosed(t *testing.T) {
	c := newCluster(t)
	c.policy = "single-numa-node"
	c.installAll()
	c.startExtender()
	c.restartScheduler(map[string]any{"urlPrefix": extenderURL + "/numafit", "filterVerb": "filter", "prioritizeVerb": "prioritize",
		"preemptVerb": "preempt", "bindVerb": "bind", "weight": 5, "nodeCacheCapable": true, "httpTimeout": "5s"})
	for _, step := range []struct {
		name string
		do   func(*cluster)
	}{
		{"each pod comes with a hint, lies where it says and is reported", (*cluster).closesTheLoop},
		{"a storm is refused nothing", (*cluster).stormsWithExtender},
		{"the same storm without the extender", (*cluster).stormsWithout},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.T = t
			step.do(c)
		}) {
			break
		}
	}
	c.T = t
}

// startExtender runs it beside the scheduler, as the service account that deploy/ makes and with the
// settings that are there, but for TLS.
func (c *cluster) startExtender() {
	c.Helper()
	deploy := filepath.Join(os.Getenv("DEPLOY"), "extender")
	c.kubectl("-n", numafit, "apply", "-f", filepath.Join(deploy, "rbac.yaml"))
	token := strings.TrimSpace(c.kubectl("-n", numafit, "create", "token", "numafit-extender"))
	settings := c.read(filepath.Join(deploy, "extender.yaml"))
	head, rest, _ := strings.Cut(settings, "\ntls:\n")
	_, rest, found := strings.Cut(rest, "\nplugins:")
	if !found {
		c.Fatalf("no tls and plugins in these settings:\n%s", settings)
	}
	head = strings.Replace(head, "\nlisten: :", "\nlisten: 127.0.0.1:", 1) // without certificates, nowhere else
	text := fmt.Sprintf("%s\nkubeconfig: %s\nlogLevel: debug\nplugins:%s\n", head, c.kubeconfig("extender", token), rest)
	c.must(os.WriteFile(c.path("extender.yaml"), []byte(text), 0o600))
	c.launch("numafit-extender", "BUILD", "--config", c.path("extender.yaml"))
	c.await("numafit-extender to be ready", func() bool {
		answer, err := http.Get(extenderURL + "/readyz")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

func (c *cluster) restartScheduler(extenders ...any) {
	c.Helper()
	c.kill("kube-scheduler")
	c.startScheduler(extenders...)
}

type hintOfPod struct {
	Node, UID  string
	Containers map[string]struct{ NUMA string }
}

// followed insists that the running pod has a hint with one of these verdicts, and lies where that
// says. It returns the node.
func (c *cluster) followed(name string, verdicts ...string) string {
	c.Helper()
	var h hintOfPod
	var p struct{ Hint, Mems string }
	pod := c.pod(name)
	if err := json.Unmarshal([]byte(pod.Metadata.Annotations[hintKey]), &h); err != nil {
		c.Fatalf("the hint of %s: %v: %v", name, err, pod.Metadata.Annotations)
	}
	id := c.pods[name].containers["main"]
	c.must(json.Unmarshal([]byte(c.askedFor(id)[0].Placement), &p))
	hinted := h.Containers["main"].NUMA
	if h.Node != nodeName || h.UID != pod.Metadata.UID || !slices.Contains(verdicts, p.Hint) || p.Mems != hinted || c.held(id).Mems != hinted {
		c.Errorf("%s: hint %+v, placement %+v, held %+v", name, h, p, c.held(id))
	}
	return hinted
}

// caughtUp waits until the node's report is of its present state: a hint from before is followed, too,
// but is said to be stale.
func (c *cluster) caughtUp() {
	c.Helper()
	c.agrees()
	c.await("a report of the present", func() bool {
		for _, a := range c.topology().Attributes {
			if a.Name == "numafit.io/generation" {
				return a.Value == fmt.Sprint(c.status().Generation)
			}
		}
		return false
	})
}

func (c *cluster) closesTheLoop() {
	ten := want{name: "main", milli: perPod * 1000, memory: 64 * mi}
	taken := map[string]string{}
	for i := range madeNodes {
		name := fmt.Sprint("ten-", i)
		c.runs(name, guaranteed, ten)
		node := c.followed(name, hintAccepted)
		if taken[node] != "" {
			c.Errorf("%s and %s are both on node %s", name, taken[node], node)
		}
		taken[node] = name
		c.caughtUp()
	}
	c.create("one-more", guaranteed, ten) // as many CPUs are free, but no NUMA node has them
	c.await("it to wait", func() bool { return c.event("FailedScheduling", "one-more") != "" })
	if words := c.event("FailedScheduling", "one-more"); !strings.Contains(words, "1 numafit: ") || c.pod("one-more").Spec.NodeName != "" {
		c.Errorf("one too many: %s", words)
	}
	c.delete(taken["5"])
	c.agrees()
	c.awaitRunning("one-more")
	// it may have been placed by the end of a pod before the node has reported that
	if node := c.followed("one-more", hintAccepted, hintStale); node != "5" {
		c.Errorf("node 5 was free, and it is on %s", node)
	}
	c.settled()
	c.agrees()
	c.deleteOwn()
}

func (c *cluster) stormsWithExtender() {
	before := c.status().Counters
	c.fill()
	s := c.storm("hinted", stormPods)
	now := c.status().Counters
	fmt.Printf("figure: with numafit-extender: %s; hints accepted %d, repaired %d, rejected %d\n", s, now.HintsAccepted-before.HintsAccepted,
		now.HintsRepaired-before.HintsRepaired, now.HintsRejected-before.HintsRejected)
	if s.refusals > 0 || now.HintsAccepted-before.HintsAccepted != s.pods+stormFill || now.HintsRepaired+now.HintsRejected > 0 {
		c.Errorf("to be refused nothing: %s; %+v, %+v", s, before, now)
	}
}

func (c *cluster) stormsWithout() {
	c.restartScheduler()
	fmt.Printf("figure: with the scheduler alone: %s\n", c.storm("alone", stormAlone))
}
