package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What pods have of NUMA nodes, on each of them, as KAI Scheduler reads it.

const observedKey = "kai.scheduler/numa-placement-observed"

var observing = []string{"podsWatch.enabled=true", "podResources.enabled=true", "observedPlacement=kai"}

// quiet time after which a patch that was to come has come: numafitd gathers changes for a second.
const settled = 2500 * time.Millisecond

// zonePlacement is KAI's NUMAZonePlacement (pkg/apis/scheduling/v1alpha2/numa_placement_types.go).
type zonePlacement struct {
	Zone   string          `json:"zone"`
	Amount v1.ResourceList `json:"amount"`
}

// isPodPatch is whether a pod was patched, and not one of its subresources.
func isPodPatch(q request) bool {
	return q.method == http.MethodPatch && strings.Contains(q.path, "/pods/")
}

// observedOn is the annotation of the pod, and whether it has one.
func (r *rig) observedOn(p *v1.Pod) (text string, has bool) {
	r.Helper()
	got, err := r.kube.CoreV1().Pods(p.Namespace).Get(background, p.Name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	text, has = got.Annotations[observedKey]
	return text, has
}

// lies is what the runtime has pinned for these containers, in KAI's form: CPUs by NUMA node, and so
// much memory on the only one.
func (r *rig) lies(p *v1.Pod, containers ...string) string {
	r.Helper()
	nodes := map[int]int64{}
	for _, name := range containers {
		for cpu := range own(r.node, r.containers["ctr-"+p.Name+"-"+name]) {
			nodes[cpu%64/8]++
		}
	}
	var list []zonePlacement
	for n := 0; n < 8; n++ {
		if nodes[n] > 0 {
			list = append(list, zonePlacement{fmt.Sprint("node-", n), v1.ResourceList{
				"cpu":    *resource.NewQuantity(nodes[n], resource.DecimalSI),
				"memory": *resource.NewQuantity(int64(len(containers))*gi, resource.DecimalSI)}})
		}
	}
	return asJSON(list)
}

// same is whether two placements are one to KAI.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	var read [2][]zonePlacement
	for i, text := range []string{a, b} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&read[i]); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
	}
	return asJSON(read[0]) == asJSON(read[1])
}

// awaitObserved waits until the pod says where these containers are.
func (r *rig) awaitObserved(p *v1.Pod, containers ...string) {
	r.Helper()
	r.eventually("the pod says where it is", func() bool {
		text, has := r.observedOn(p)
		return has && same(r.T, text, r.lies(p, containers...))
	})
}

func (r *rig) patches(nr int) {
	r.Helper()
	if list := r.proxy.requests(isPodPatch); len(list) != nr {
		r.Errorf("%d patches of pods, not %d: %v", len(list), nr, list)
	}
}

func TestWhatAPodHasIsOnItOnceAndAnewWhenItChanges(t *testing.T) {
	r := newRig(t, observing...)
	r.waitLog(1, "pods-watch-synced")
	p := r.pod("train", nil, ask{"a", false, 3}, ask{"b", false, 2})
	web := r.pod("web", func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("500m")}
	}, ask{"web", false, 1})
	time.Sleep(admitted)
	for _, name := range []string{"a", "b"} {
		if err := r.createOf(p, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.createOf(web, "web"); err != nil {
		t.Fatal(err)
	}
	r.awaitObserved(p, "a", "b")
	if text, has := r.observedOn(web); has {
		t.Errorf("a pod in the shared pool has %q", text)
	}
	r.patches(1)

	r.killDaemon()
	r.startDaemon()
	r.waitConnected()
	r.waitLog(1, "pods-watch-synced")
	time.Sleep(settled)
	r.patches(1)

	c := r.containers["ctr-"+p.Name+"-a"]
	if _, err := r.runtime.UpdateContainer(background, &nri.UpdateContainerRequest{Pod: r.pods[c.PodSandboxId], Container: c,
		LinuxResources: &nri.LinuxResources{Cpu: &nri.LinuxCPU{Shares: nri.UInt64(uint64(5 * 1024)),
			Quota: nri.Int64(500000), Period: nri.UInt64(uint64(100000))}}}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the pod says that it has 7 CPUs", func() bool {
		text, _ := r.observedOn(p)
		return strings.Contains(text, `"cpu":"7"`)
	})
	r.patches(2)
	if text := r.logged(); strings.Contains(text, "observed-placement-") {
		t.Error(line(text, "observed-placement-"))
	}
}

// Without the component the right is missing; with it, what waits is written.
func TestAMissingRightIsLoggedOnceWithTheComponentsName(t *testing.T) {
	roles := func(components ...string) {
		list, err := rendered(base, components...)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if m.kind != "ClusterRole" {
				continue
			}
			if _, err := kubectl(string(m.text), "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
				t.Fatal(err)
			}
		}
	}
	roles(evicting, volcano)
	defer roles(everything...)
	r := newRig(t, observing...)
	r.waitLog(1, "pods-watch-synced")
	p := r.pod("own", nil, ask{"a", false, 2})
	time.Sleep(admitted)
	if err := r.createOf(p, "a"); err != nil {
		t.Fatal(err)
	}
	r.proxy.waitRequests(t, 2, isPodPatch)
	text := r.logged()
	if found := line(text, "observed-placement-refused"); !strings.Contains(found, "level=warn") ||
		!strings.Contains(found, "deploy/components/observed-placement") || !strings.Contains(found, "cannot patch resource") {
		t.Errorf("the log says %q", found)
	}
	if nr := strings.Count(text, "event=observed-placement-refused"); nr != 1 {
		t.Errorf("it is logged %d times", nr)
	}
	roles(everything...)
	r.awaitObserved(p, "a")
	r.eventually("it is logged that it is written", func() bool { return strings.Contains(r.logged(), "observed-placement-accepted") })
}

// What the component's policy leaves of the right to patch pods.
func TestNothingButTheAnnotationOfOwnPodsCanBeWritten(t *testing.T) {
	r := prepareRig(t, observing...)
	r.admission(observed)
	r.writeNodesToken()
	edit := func(p *v1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		p.Annotations = map[string]string{"example.com/a": "1", observedKey: "[]"}
	}
	p := r.pod("own", edit, ask{"a", false, 2})
	other := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other-" + r.name}}
	foreign := r.pod("foreign", func(p *v1.Pod) { edit(p); p.Spec.NodeName = other.Name }, ask{"a", false, 2})
	unbound := r.pod("unbound", func(p *v1.Pod) { edit(p); p.Spec.NodeName = "" }, ask{"a", false, 2})
	defer func() {
		now := int64(0)
		for _, p := range []*v1.Pod{foreign, unbound} {
			r.kube.CoreV1().Pods("default").Delete(background, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
	}()
	patch := func(p *v1.Pod, body string) (int, string) {
		return asAccount(t, r.token, http.MethodPatch, "/api/v1/namespaces/default/pods/"+p.Name, body)
	}
	nr := 0
	r.eventually("the policy is in force", func() bool {
		nr++
		status, _ := patch(p, fmt.Sprintf(`{"metadata":{"labels":{"app":"%d"}}}`, nr))
		return status == http.StatusForbidden
	})
	containers := slices.Clone(p.Spec.Containers)
	containers[0].Image = "evil"
	evil := asJSON(map[string]any{"spec": map[string]any{"containers": containers}})
	for _, c := range []struct {
		pod    *v1.Pod
		body   string
		status int
	}{
		{p, `{"metadata":{"annotations":{"` + observedKey + `":"[1]"}}}`, http.StatusOK},
		{p, `{"metadata":{"annotations":{"` + observedKey + `":null}}}`, http.StatusOK},
		{p, `{"metadata":{"uid":"another","annotations":{"` + observedKey + `":"[1]"}}}`, http.StatusUnprocessableEntity},
		{p, `{"metadata":{"annotations":{"example.com/a":"2"}}}`, http.StatusForbidden},
		{p, `{"metadata":{"annotations":{"example.com/a":null}}}`, http.StatusForbidden},
		{p, `{"metadata":{"annotations":{"example.com/b":"1","` + observedKey + `":"[1]"}}}`, http.StatusForbidden},
		{p, `{"metadata":{"labels":{"app":null}}}`, http.StatusForbidden},
		{p, `{"metadata":{"labels":{"other":"x"}}}`, http.StatusForbidden},
		{p, `{"metadata":{"finalizers":["example.com/f"]}}`, http.StatusForbidden},
		{p, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`, http.StatusForbidden},
		{p, evil, http.StatusForbidden},
		{p, `{"spec":{"activeDeadlineSeconds":1}}`, http.StatusForbidden},
		{foreign, `{"metadata":{"annotations":{"` + observedKey + `":"[1]"}}}`, http.StatusForbidden},
		{unbound, `{"metadata":{"annotations":{"` + observedKey + `":"[1]"}}}`, http.StatusForbidden},
	} {
		if status, text := patch(c.pod, c.body); status != c.status {
			t.Errorf("%s of %s: %d, not %d: %s", c.body, c.pod.Name, status, c.status, text)
		}
	}
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.waitLog(1, "pods-watch-synced")
	if err := r.createOf(p, "a"); err != nil {
		t.Fatal(err)
	}
	r.awaitObserved(p, "a")
}
