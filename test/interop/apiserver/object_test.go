package interop

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"github.com/k8stopologyawareschedwg/podfingerprint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The node's NodeResourceTopology in a real API server.

func TestTheObjectBelongsToTheNodeAndSaysWhatStatusDoes(t *testing.T) {
	r := newRig(t)
	o := r.agrees()
	if want := (metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: r.name, UID: r.object.UID}); len(o.OwnerReferences) != 1 ||
		o.OwnerReferences[0].UID != want.UID || o.OwnerReferences[0].Kind != want.Kind ||
		o.OwnerReferences[0].Name != want.Name || o.OwnerReferences[0].APIVersion != want.APIVersion {
		t.Errorf("its owners are %s, not %s", asJSON(o.OwnerReferences), asJSON(want))
	}
	if len(o.ManagedFields) != 1 || o.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply ||
		!strings.HasPrefix(o.ManagedFields[0].Manager, "numafit") {
		t.Errorf("its writers are %s", asJSON(o.ManagedFields))
	}
	for name, want := range map[string]string{"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "container"} {
		if got := attribute(o.Attributes, name); got != want {
			t.Errorf("attribute %s is %q, not %q", name, got, want)
		}
	}
	if len(o.Zones) != nrNodes || len(o.TopologyPolicies) != 0 {
		t.Errorf("%d zones, policies %q", len(o.Zones), o.TopologyPolicies)
	}
	for i, z := range o.Zones { // SLIT distances: near ones are nearer
		costs := map[string]int64{}
		for _, c := range z.Costs {
			costs[c.Name] = c.Value
		}
		if costs[z.Name] != 10 || costs[fmt.Sprint("node-", i^1)] != 11 || costs[fmt.Sprint("node-", i^4)] != 30 {
			t.Errorf("costs of %s: %s", z.Name, asJSON(z.Costs))
		}
	}
}

func TestItFollowsCreatesAndStops(t *testing.T) {
	r := newRig(t)
	before := r.agrees()
	first, second := r.mustCreate("one", guaranteed(4)), r.mustCreate("two", guaranteed(2))
	r.mustCreate("three", shared)
	o := r.agrees()
	if sum(available(before, "cpu"))-sum(available(o, "cpu")) != 6 ||
		sum(available(before, "memory"))-sum(available(o, "memory")) != 2*gi {
		t.Errorf("after two containers of 4 and 2 CPUs and 1 Gi each: cpu %v, memory %v; before: %v, %v", available(o, "cpu"),
			available(o, "memory"), available(before, "cpu"), available(before, "memory"))
	}
	r.fingerprintIs(o, "one", "two")
	r.stop(first)
	r.fingerprintIs(r.agrees(), "two")
	r.stop(second)
	if o = r.agrees(); !slices.Equal(available(o, "cpu"), available(before, "cpu")) {
		t.Errorf("when all is over: cpu %v, before: %v", available(o, "cpu"), available(before, "cpu"))
	}
	r.fingerprintIs(o)
}

// The machine has 8 NUMA nodes of 16 CPUs, of which numafitd may not give out 2 of the first one.
func TestFreeCPUsThatLieApartAreReportedAnew(t *testing.T) {
	r := newRig(t)
	r.fragmentationIs("0", "126", "16")
	var there []*nri.Container
	for i := range nrNodes {
		there = append(there, r.mustCreate(fmt.Sprint("apart-", i), guaranteed(12)))
	}
	r.fragmentationIs("0.75", "30", "4")
	for _, c := range there {
		r.stop(c)
	}
	r.fragmentationIs("0", "126", "16")
}

// fragmentationIs insists that the object comes to say so.
func (r *rig) fragmentationIs(ratio, free, largest string) {
	r.Helper()
	r.agrees()
	r.await("is as fragmented as "+ratio, func(o *topology.NodeResourceTopology) bool {
		return o != nil && attribute(o.Attributes, "numafit.io/fragmentation") == ratio &&
			attribute(o.Attributes, "numafit.io/free-cpus") == free &&
			attribute(o.Attributes, "numafit.io/largest-free-cpus") == largest
	})
}

var shared = want{qos: "burstable", milli: 500}

func sum(list []int64) (n int64) {
	for _, i := range list {
		n += i
	}
	return n
}

// fingerprintIs insists that the object says it accounts for these pods, by the schedulers' own code.
func (r *rig) fingerprintIs(o *topology.NodeResourceTopology, pods ...string) {
	r.Helper()
	f := podfingerprint.NewFingerprint(len(pods))
	for _, p := range pods {
		f.Add("default", p)
	}
	said := attribute(o.Attributes, podfingerprint.Attribute)
	if err := f.Check(said); err != nil {
		r.Errorf("fingerprint %q is not that of %q, %q: %v", said, pods, f.Sign(), err)
	}
	if method := attribute(o.Attributes, podfingerprint.AttributeMethod); method != podfingerprint.MethodWithExclusiveResources {
		r.Errorf("the fingerprint's method is %q", method)
	}
}

func TestAllPodsCanBeInTheFingerprint(t *testing.T) {
	r := newRig(t, "nodeResourceTopology.podsFingerprint=all")
	r.mustCreate("one", guaranteed(4))
	r.mustCreate("three", shared)
	f := podfingerprint.NewFingerprint(2)
	f.Add("default", "one")
	f.Add("default", "three")
	r.await("is of both pods", func(o *topology.NodeResourceTopology) bool {
		return o != nil && attribute(o.Attributes, podfingerprint.Attribute) == f.Sign() &&
			attribute(o.Attributes, podfingerprint.AttributeMethod) == podfingerprint.MethodAll
	})
}

// theirs is a topology as another exporter writes it.
var theirs = map[string]any{"zones": []any{map[string]any{"name": "node-0", "type": "Node"}}}

func TestAnotherWriterIsLeftAlone(t *testing.T) {
	r := prepareRig(t)
	if err := r.applyAs("node-feature-discovery", false, theirs); err != nil {
		t.Fatal(err)
	}
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.waitLog(1, "apply-conflict")
	r.mustCreate("one", guaranteed(4))
	r.proxy.waitRequests(t, 2, r.writes) // with heartbeats only
	if !strings.Contains(line(r.logged(), "apply-conflict"), "node-feature-discovery") {
		t.Errorf("it does not say who has it: %s", line(r.logged(), "apply-conflict"))
	}
	if o := r.topology(); len(o.Zones) != 1 || len(o.Attributes) != 0 || len(o.ManagedFields) != 1 {
		t.Errorf("it was written to: %s", asJSON(o))
	}
	if err := r.topologies().Delete(background, r.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.agrees() // nobody else's any more
}

func TestAnotherWriterIsReplacedWhenToldTo(t *testing.T) {
	r := prepareRig(t, "nodeResourceTopology.takeOver=true")
	if err := r.applyAs("node-feature-discovery", false, theirs); err != nil {
		t.Fatal(err)
	}
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.agrees()
	if err := r.applyAs("node-feature-discovery", true, theirs); err != nil {
		t.Fatal(err)
	}
	r.agrees()
}

// writes are those of the node's topology.
func (r *rig) writes(q request) bool {
	return q.method == http.MethodPatch && strings.HasSuffix(q.path, "/noderesourcetopologies/"+r.name)
}

// line is the first one that has these words.
func line(text, words string) string {
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, words) {
			return l
		}
	}
	return ""
}

func TestItComesBackWhenItIsDeleted(t *testing.T) {
	r := newRig(t)
	r.agrees()
	for range 2 {
		if err := r.topologies().Delete(background, r.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r.agrees()
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("it came back after %v, with a heartbeat of 1 s", took)
		}
	}
}

func TestItWaitsForItsKind(t *testing.T) {
	r := prepareRig(t)
	remove := func() {
		if _, err := kubectl("", "delete", "-f", crdFile(topologyCRD)); err != nil {
			t.Fatal(err)
		}
	}
	install := func() {
		t.Helper()
		if err := r.installCRD(topologyCRD); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	defer r.installCRD(topologyCRD)
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.waitLog(1, "apply-refused")
	r.mustCreate("one", guaranteed(4))
	install()
	r.agrees()
	remove()
	r.waitLog(2, "apply-refused")
	install()
	r.agrees()
}

func TestAHeartbeatMovesTheObject(t *testing.T) {
	r := newRig(t)
	seen := map[string]bool{}
	start := time.Now()
	r.await("changes four times", func(o *topology.NodeResourceTopology) bool {
		if o != nil {
			seen[o.ResourceVersion] = true
		}
		return len(seen) == 4
	})
	if took := time.Since(start); took < 1800*time.Millisecond {
		t.Errorf("three heartbeats of 1 s took %v", took)
	}
}

func TestWithoutAHeartbeatNothingIsWrittenUnlessItChanges(t *testing.T) {
	r := newRig(t, "nodeResourceTopology.heartbeat=60s")
	r.agrees()
	r.mustCreate("one", guaranteed(4))
	r.agrees()
	nr := len(r.proxy.requests(r.writes))
	time.Sleep(time.Second) // that nothing comes cannot be awaited
	if after := len(r.proxy.requests(r.writes)); after != nr {
		t.Errorf("%d writes became %d, and nothing happened", nr, after)
	}
}

func TestABurstOfCreatesIsWrittenAtMostOnceIn200ms(t *testing.T) {
	const (
		creates  = 1000
		interval = 200 * time.Millisecond
		jitter   = 20 * time.Millisecond // of the way to the proxy
	)
	r := newRig(t, "nodeResourceTopology.heartbeat=60s")
	r.agrees()
	start := time.Now()
	for i := range creates {
		r.away(r.mustAsk(fmt.Sprint("p", i), guaranteed(1+int64(i)%8)))
	}
	took := time.Since(start)
	r.agrees()
	list := r.proxy.requests(r.writes)
	shortest := time.Hour
	for i := 1; i < len(list); i++ {
		shortest = min(shortest, list[i].at.Sub(list[i-1].at))
	}
	fmt.Printf("figure: %d creates and removals in %v: %d writes, %v between two at least\n", creates,
		took.Round(time.Millisecond), len(list), shortest.Round(time.Millisecond))
	if shortest < interval-jitter {
		t.Errorf("two writes %v after each other", shortest)
	}
}

// mustAsk creates a container and does no more.
func (r *rig) mustAsk(name string, w want) *nri.Container {
	r.Helper()
	p, c := r.sandbox(name, w)
	if err := r.ask(context.Background(), p, c); err != nil {
		r.Fatalf("%s is refused: %v", name, err)
	}
	return c
}

// away takes the container away, and its pod.
func (r *rig) away(c *nri.Container) {
	r.Helper()
	p := r.pods[c.PodSandboxId]
	r.remove(c)
	delete(r.pods, p.Id)
	if err := r.runtime.RemovePodSandbox(context.Background(), &nri.RemovePodSandboxRequest{Pod: p}); err != nil {
		r.Fatal(err)
	}
}
