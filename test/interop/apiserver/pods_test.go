package interop

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pods of the API server, and what becomes of them there.

// A kubelet takes longer from a pod's admission to its sandbox; nobody tells the test what numafitd
// has read of it meanwhile.
const admitted = 150 * time.Millisecond

// ask is one container of a pod's spec. Its requests are its limits.
type ask struct {
	name string
	init bool
	cpus int64
}

// pod makes one in the API server, bound to the node. edit may change it before.
func (r *rig) pod(name string, edit func(p *v1.Pod), asks ...ask) *v1.Pod {
	r.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + r.name, Namespace: "default"},
		Spec: v1.PodSpec{NodeName: r.name}}
	for _, a := range asks {
		list := v1.ResourceList{"cpu": *resource.NewQuantity(a.cpus, resource.DecimalSI), "memory": resource.MustParse("1Gi")}
		c := v1.Container{Name: a.name, Image: "none", Resources: v1.ResourceRequirements{Limits: list, Requests: list}}
		if a.init {
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		} else {
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	if edit != nil {
		edit(p)
	}
	made, err := r.kube.CoreV1().Pods("default").Create(background, p, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return made
}

// uidOf is the uid that the runtime is told: of a static pod that is not the one of its mirror here.
func uidOf(p *v1.Pod) string {
	if hash := p.Annotations[v1.MirrorPodAnnotationKey]; hash != "" {
		return hash
	}
	return string(p.UID)
}

// runSandbox starts the pod's sandbox, unless it runs.
func (r *rig) runSandbox(p *v1.Pod) error {
	sandbox, _ := r.container(p.Name, want{notes: p.Annotations})
	sandbox.Uid = uidOf(p)
	if r.pods[sandbox.Id] != nil {
		return nil
	}
	if err := r.runtime.RunPodSandbox(background, &nri.RunPodSandboxRequest{Pod: sandbox}); err != nil {
		return err
	}
	r.pods[sandbox.Id] = sandbox
	return nil
}

// create does for the pod's container what the runtime does.
func (r *rig) createOf(p *v1.Pod, name string) error {
	if err := r.runSandbox(p); err != nil {
		return err
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if c.Name == name {
			sandbox, made := r.container(p.Name, want{pod: p.Name, id: "ctr-" + p.Name + "-" + name,
				milli: c.Resources.Requests.Cpu().MilliValue(), memory: c.Resources.Requests.Memory().Value()})
			made.Name = name
			return r.ask(background, sandbox, made)
		}
	}
	return fmt.Errorf("no container %s", name)
}

// refuses is whether the pod's sandbox may not run. If it may, it does not stay.
func (r *rig) refuses(p *v1.Pod) bool {
	r.Helper()
	if r.runSandbox(p) != nil {
		return true
	}
	sandbox := r.pods["sb-"+p.Name]
	delete(r.pods, sandbox.Id)
	if err := r.runtime.RemovePodSandbox(background, &nri.RemovePodSandboxRequest{Pod: sandbox}); err != nil {
		r.Fatal(err)
	}
	return false
}

func TestAPodIsDecidedAsAWholeBeforeItsSandboxRuns(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true")
	r.waitLog(1, "pods-watch-synced")
	before := r.agrees()
	p := r.pod("whole", nil, ask{"first", true, 6}, ask{"web", false, 2}, ask{"db", false, 3})
	time.Sleep(admitted)
	if err := r.runSandbox(p); err != nil {
		t.Fatal(err)
	}
	r.await("has what the pod will need", func(o *topology.NodeResourceTopology) bool {
		return o != nil && sum(available(before, "cpu"))-sum(available(o, "cpu")) == 6
	})
	for _, name := range []string{"first", "web", "db"} {
		if err := r.createOf(p, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range r.status().Containers {
		if c.Pod == p.Name && c.Source != "held" {
			t.Errorf("%s is %s", c.Container, c.Source)
		}
	}
	r.agrees()
	large := r.pod("large", nil, ask{"first", true, perNode + 1}, ask{"web", false, 2})
	time.Sleep(admitted)
	if err := r.runSandbox(large); err == nil || !strings.Contains(err.Error(), "TopologyAffinityError") {
		t.Errorf("a pod whose init container can never run: %v", err)
	}
}

// events are those of a pod, and how often each was told.
func (r *rig) events(p *v1.Pod) (list []v1.Event, told int) {
	r.Helper()
	found, err := r.kube.CoreV1().Events(p.Namespace).List(background, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(p.UID)})
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range found.Items {
		told += int(max(1, e.Count))
		if e.Series != nil {
			told += int(e.Series.Count)
		}
	}
	return found.Items, told
}

// waitEvent waits for an event of the pod, of that type and with these words.
func (r *rig) waitEvent(p *v1.Pod, kind, words string) (found v1.Event) {
	r.Helper()
	var all []v1.Event
	r.eventually("an event of "+p.Name+" with "+words, func() bool {
		all, _ = r.events(p)
		for _, e := range all {
			if e.Type == kind && strings.Contains(e.Message, words) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

func TestARefusalIsAnEventOfThePod(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true", "events.enabled=true")
	r.waitLog(1, "pods-watch-synced")
	p := r.pod("large", nil, ask{"web", false, perNode + 1})
	time.Sleep(admitted)
	if !r.refuses(p) {
		t.Fatal("it is not refused")
	}
	e := r.waitEvent(p, v1.EventTypeWarning, "TopologyAffinityError")
	if e.Reason != "TopologyAffinityError" || e.InvolvedObject.Kind != "Pod" || e.InvolvedObject.Name != p.Name ||
		e.Source.Host+e.ReportingInstance == "" || !strings.HasPrefix(e.Source.Component+e.ReportingController, "numafit") {
		t.Errorf("the event is %s", asJSON(e))
	}
	explained := regexp.MustCompile(`^numafit: cannot place container web \(\d+ CPUs, .*\): .* Fits with (\d+) CPUs\. ` +
		`\(TopologyAffinityError; numafit explain ` + p.Namespace + `/` + p.Name + `\)$`).FindStringSubmatch(e.Message)
	if explained == nil {
		t.Fatalf("the event says %q", e.Message)
	}
	cpus, _ := strconv.ParseInt(explained[1], 10, 64)
	smaller := r.pod("smaller", nil, ask{"web", false, cpus})
	time.Sleep(admitted)
	if r.refuses(smaller) {
		t.Errorf("it does not fit with %d CPUs, as %q says", cpus, e.Message)
	}
}

func TestARefusalWithoutThePodsFactsIsAnEventToo(t *testing.T) {
	r := newRig(t, "events.enabled=true") // no watch: what the runtime says is all there is
	p := r.pod("large", nil, ask{"web", false, perNode + 1})
	if r.createOf(p, "web") == nil {
		t.Fatal("it is not refused")
	}
	if e := r.waitEvent(p, v1.EventTypeWarning, "TopologyAffinityError"); e.InvolvedObject.FieldPath != "spec.containers{web}" {
		t.Errorf("the event is of %q", e.InvolvedObject.FieldPath)
	}
}

func TestWhatBecameOfAHintIsAnEventUnlessItWasFollowed(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true", "events.enabled=true", "topologyManagerPolicy=restricted")
	r.waitLog(1, "pods-watch-synced")
	hinted := func(name, nodes string) *v1.Pod {
		p := r.pod(name, nil, ask{"web", false, 2})
		p.Annotations = map[string]string{"numafit.io/numa-hint": fmt.Sprintf(`{"v": 1, "node": %q, "uid": %q, "at": %d,
			"ttl": 60, "mode": "prefer", "containers": {"*": {"numa": %q}}}`, r.name, p.UID, time.Now().UnixMilli(), nodes)}
		time.Sleep(admitted)
		if err := r.createOf(p, "web"); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := hinted("good", "5")
	repaired := r.waitEvent(hinted("wide", "6-7"), v1.EventTypeNormal, "")
	rejected := r.waitEvent(hinted("none", "99"), v1.EventTypeWarning, "")
	t.Logf("repaired: %s: %s; rejected: %s: %s", repaired.Reason, repaired.Message, rejected.Reason, rejected.Message)
	if list, _ := r.events(good); len(list) != 0 {
		t.Errorf("a hint that was followed is an event: %s", asJSON(list))
	}
}

func TestManyRefusalsAreFewEvents(t *testing.T) {
	const refusals, most = 300, 40
	r := newRig(t, "podsWatch.enabled=true", "events.enabled=true", "nodeResourceTopology.enabled=false")
	r.waitLog(1, "pods-watch-synced")
	one := r.pod("again", nil, ask{"web", false, perNode + 1})
	time.Sleep(admitted)
	for range refusals {
		if !r.refuses(one) {
			t.Fatal("it is not refused")
		}
	}
	for i := range refusals {
		other := *one
		other.Name, other.UID = fmt.Sprint("other-", i), one.UID
		if r.createOf(&other, "web") == nil {
			t.Fatal("it is not refused")
		}
	}
	r.waitEvent(one, v1.EventTypeWarning, "TopologyAffinityError")
	time.Sleep(time.Second) // whether more come cannot be awaited
	told := r.proxy.requests(func(q request) bool {
		return strings.HasSuffix(q.path, "/events") || strings.Contains(q.path, "/events/")
	})
	if len(told) > most {
		t.Errorf("%d refusals: the API server was told %d times", 2*refusals, len(told))
	}
	t.Logf("%d refusals: the API server was told %d times", 2*refusals, len(told))
}

// Eviction

func ownedBy(kind string) func(p *v1.Pod) {
	yes := true
	return func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "uid-owner", Controller: &yes}}
		p.Labels = map[string]string{"app": p.Name}
	}
}

var evicted = []string{"podsWatch.enabled=true", "refusalAction=evict", "nodeResourceTopology.enabled=false"}

func isEviction(q request) bool { return strings.HasSuffix(q.path, "/eviction") }

func (r *rig) isLeaving(p *v1.Pod) bool {
	got, err := r.kube.CoreV1().Pods(p.Namespace).Get(background, p.Name, metav1.GetOptions{})
	return err != nil || got.DeletionTimestamp != nil
}

func TestARefusedPodIsEvictedWhenAnotherOneComesElsewhere(t *testing.T) {
	r := newRig(t, evicted...)
	r.waitLog(1, "pods-watch-synced")
	for _, c := range []struct {
		name string
		edit func(p *v1.Pod)
		goes bool
	}{
		{"alone", nil, false},
		{"daemonset", ownedBy("DaemonSet"), false},
		{"static", func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "uid-of-its-file"} }, false},
		{"replicaset", ownedBy("ReplicaSet"), true},
		{"job", ownedBy("Job"), true},
	} {
		before := len(r.proxy.requests(isEviction))
		p := r.pod(c.name, c.edit, ask{"web", false, perNode + 1})
		time.Sleep(admitted)
		if !r.refuses(p) {
			t.Fatal("it is not refused")
		}
		if c.goes {
			r.eventually(c.name+" is evicted", func() bool { return r.isLeaving(p) })
			continue
		}
		time.Sleep(200 * time.Millisecond) // that nothing comes cannot be awaited
		if asked := len(r.proxy.requests(isEviction)) - before; asked != 0 || r.isLeaving(p) {
			t.Errorf("%s: eviction was asked for %d times", c.name, asked)
		}
	}
}

func TestAnEvictionWaitsForTheBudget(t *testing.T) {
	r := newRig(t, evicted...)
	r.waitLog(1, "pods-watch-synced")
	p := r.pod("guarded", ownedBy("ReplicaSet"), ask{"web", false, perNode + 1}, ask{"other", false, 1})
	p.Status.Phase = v1.PodRunning // a budget guards no pod that has not run
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	if _, err := r.kube.CoreV1().Pods("default").UpdateStatus(background, p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	all := intstr.FromString("100%")
	budgets := r.kube.PolicyV1().PodDisruptionBudgets("default")
	budget, err := budgets.Create(background, &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: r.name},
		Spec: policy.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: p.Labels}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer budgets.Delete(background, budget.Name, metav1.DeleteOptions{})
	allow := func(nr int32) {
		budget.Status = policy.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: nr,
			CurrentHealthy: 1 + nr, DesiredHealthy: 1, ExpectedPods: 1 + nr}
		if budget, err = budgets.UpdateStatus(background, budget, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	allow(0)
	time.Sleep(admitted)
	if !r.refuses(p) {
		t.Fatal("it is not refused")
	}
	if first := r.proxy.waitRequests(t, 1, isEviction)[0]; first.status != http.StatusTooManyRequests {
		t.Fatalf("with a budget of none: %d", first.status)
	}
	if r.isLeaving(p) {
		t.Fatal("it goes")
	}
	allow(1)
	r.eventually("the pod is evicted", func() bool { return r.isLeaving(p) })
}
