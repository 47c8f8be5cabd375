package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the extender knows beyond the last report: pods on their way, victims, refusals.

// storm creates so many pods at once, and waits until as many as fit are bound.
func (r *rig) storm(pods, fit int, cpus int64) (list []*v1.Pod) {
	r.Helper()
	return r.stormOf("storm", pods, fit, cpus)
}

func (r *rig) stormOf(name string, pods, fit int, cpus int64) (list []*v1.Pod) {
	r.Helper()
	for i := range pods {
		list = append(list, r.create(guaranteed(fmt.Sprint(name, "-", i), cpus)))
	}
	r.await(fmt.Sprint(fit, " of them are bound"), func() bool { return r.countBound(list) >= fit })
	return list
}

// countBound needs r.lock.
func (r *rig) countBound(list []*v1.Pod) (nr int) {
	for _, p := range list {
		if now := r.pods[p.UID]; now != nil && now.Spec.NodeName != "" {
			nr++
		}
	}
	return nr
}

// settles insists that no more of them are bound than that, when every one has been asked about.
func (r *rig) settles(list []*v1.Pod, fit int) {
	r.Helper()
	r.await("the others cannot be placed", func() bool {
		waiting := 0
		for _, p := range list {
			now := r.pods[p.UID]
			if now != nil && now.Spec.NodeName == "" && len(now.Status.Conditions) > 0 {
				waiting++
			}
		}
		return waiting == len(list)-fit
	})
	r.lock.Lock()
	defer r.lock.Unlock()
	if nr := r.countBound(list); nr != fit {
		r.Errorf("%d pods are bound, %d fit", nr, fit)
	}
}

func TestBoundPodsCountUntilTheReportContainsThem(t *testing.T) {
	const nodes, zones, cpus, asks, pods = 2, 4, 5, 2, 30 // two pods in each zone, one CPU is left
	const fit = nodes * zones * (cpus / asks)
	for _, c := range []struct {
		name  string
		delay time.Duration
	}{{"never", never}, {"late", 2 * time.Second}, {"at-once", 0}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.withExtender(strategy("LeastAllocated"), nil)
			for i := range nodes {
				r.machine(fmt.Sprint("n", i), zonesOf(zones, amounts{"cpu": cpus, "memory": 64 * gi}), func(m *machine) { m.delay = c.delay })
			}
			list := r.storm(pods, fit, asks)
			r.settles(list, fit)
			r.nothingWasRefused()
			gone := 0
			for _, p := range list {
				if now := r.now(p); gone < 3 && now.Spec.NodeName != "" {
					r.delete(now)
					gone++
				}
			}
			r.await("others are bound in their place", func() bool { return r.countBound(list) == fit })
			r.nothingWasRefused()
		})
	}
}

func TestAnExtenderThatComesLaterCountsThemToo(t *testing.T) {
	const zones, fit = 4, 8
	r := newRig(t)
	x := r.withExtender(strategy("LeastAllocated"), nil)
	r.machine("n", zonesOf(zones, amounts{"cpu": 5, "memory": 64 * gi}), func(m *machine) { m.delay = never })
	first := r.storm(5, 5, 2)
	x.stop()
	x.start()
	x.waitReady()
	var second []*v1.Pod
	for i := range 10 {
		second = append(second, r.create(guaranteed(fmt.Sprint("later-", i), 2)))
	}
	r.await("the rest of the room is taken", func() bool { return r.countBound(second) >= fit-len(first) })
	r.settles(second, fit-len(first))
	r.nothingWasRefused()
}

func TestPreemptionMakesRoomOnANUMANodeAndNotElsewhere(t *testing.T) {
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), nil)
	high := &scheduling.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if _, err := r.kube.SchedulingV1().PriorityClasses().Create(background, high, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer r.kube.SchedulingV1().PriorityClasses().Delete(background, high.Name, metav1.DeleteOptions{})
	// no zone of the first one is ever large enough, all of it together is
	small := r.machine("small", zonesOf(4, amounts{"cpu": 3, "memory": 8 * gi}), nil)
	large := r.machine("large", zonesOf(2, amounts{"cpu": 6, "memory": 8 * gi}), nil)
	for i := range 8 { // one after the other, as who came last is to go first
		p := r.bound(r.create(guaranteed(fmt.Sprint("low-", i), 3)))
		r.said(p)
		r.await("it has been started", func() bool { return r.pods[p.UID].Status.StartTime != nil })
	}
	p := guaranteed("vip", 5)
	p.Spec.PriorityClassName = high.Name
	if p = r.bound(r.create(p)); p.Spec.NodeName != large.name {
		t.Errorf("it is on %s", p.Spec.NodeName)
	}
	r.lock.Lock()
	if nr := len(small.pods); nr != 4 {
		t.Errorf("%d of 4 pods are left where it helped nobody", nr)
	}
	r.lock.Unlock()
	r.nothingWasRefused()
}

// refusal is how a node says so.
func TestANodeThatRefusedAWorkloadIsAvoidedForIt(t *testing.T) {
	r := newRig(t)
	x := r.withExtender(strategy("MostAllocated"), nil)
	best := r.machine("best", zonesOf(2, amounts{"cpu": 4, "memory": 8 * gi}), func(m *machine) {
		m.refuses = func(*v1.Pod) bool { return true }
	})
	other := r.machine("other", zonesOf(2, amounts{"cpu": 16, "memory": 64 * gi}), nil)
	isController := true
	owned := func(name, owner string) *v1.Pod {
		p := guaranteed(name, 2)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner,
			UID: types.UID("owner-" + owner), Controller: &isController}}
		return p
	}
	first := r.bound(r.create(owned("a-1", "a")))
	if first.Spec.NodeName != best.name {
		t.Fatalf("it is on %s", first.Spec.NodeName)
	}
	r.await("it is refused", func() bool { return r.pods[first.UID].Status.Phase == v1.PodFailed })
	r.eventually("the extender knows", func() bool {
		_, text, err := x.get("/metrics")
		return err == nil && avoided(text)
	})
	if p := r.bound(r.create(owned("a-2", "a"))); p.Spec.NodeName != other.name {
		t.Errorf("the next pod of the workload is on %s", p.Spec.NodeName)
	}
	if p := r.bound(r.create(owned("b-1", "b"))); p.Spec.NodeName != best.name {
		t.Errorf("another workload's is on %s", p.Spec.NodeName)
	}
}

// avoided is whether the metrics tell of a node that is avoided.
func avoided(metrics string) bool {
	for _, line := range strings.Split(metrics, "\n") {
		if strings.Contains(line, "avoided") && !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0") {
			return true
		}
	}
	return false
}

func TestWithoutTheKindNothingIsHeldBack(t *testing.T) {
	r := newRig(t)
	if _, err := kubectl("", "delete", "-f", crdFile(topologyCRD)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.installCRD(topologyCRD); err != nil {
			t.Fatal(err)
		}
	}()
	x := r.withExtender(strategy("LeastAllocated"), nil)
	r.noReports = true
	r.machine("n", zonesOf(2, amounts{"cpu": 4, "memory": 8 * gi}), nil)
	if p := r.bound(r.create(guaranteed("p", 2))); p.Annotations[hintKey] != "" {
		t.Errorf("it has %s", p.Annotations[hintKey])
	}
	if nr := strings.Count(x.logged(), "resource-absent"); nr != 1 {
		t.Errorf("it is said %d times that the kind is missing:\n%s", nr, x.logged())
	}
}

// askedAgain is how soon the extender asks for a kind again that is not there.
const askedAgain = 30 * time.Second

func TestTheKindMayComeLater(t *testing.T) {
	r := newRig(t)
	if _, err := kubectl("", "delete", "-f", crdFile(topologyCRD)); err != nil {
		t.Fatal(err)
	}
	x := r.extender(strategy("LeastAllocated"))
	if err := r.installCRD(topologyCRD); err != nil {
		t.Fatal(err)
	}
	r.scheduler(x.url(), nil)
	r.machine("n", zonesOf(2, amounts{"cpu": 4, "memory": 8 * gi}), nil)
	before := patience
	patience += askedAgain
	defer func() { patience = before }()
	r.eventually("pods have hints", func() bool {
		p := r.bound(r.create(guaranteed(fmt.Sprint("p", time.Now().UnixNano()), 1)))
		defer r.delete(p)
		time.Sleep(500 * time.Millisecond)
		return p.Annotations[hintKey] != ""
	})
}

// changeHint is what a pod's author may do with the right to patch pods: so many CPUs in each zone.
func (r *rig) changeHint(p *v1.Pod, cpus map[int]int64) {
	r.Helper()
	var shares []map[string]any
	var numa []string
	for node := range cpus {
		shares = append(shares, map[string]any{"node": node,
			"resources": map[string]any{"cpu": cpus[node], "memory": gi}})
		numa = append(numa, fmt.Sprint(node))
	}
	text := asJSON(map[string]any{"v": 1, "node": p.Spec.NodeName, "uid": p.UID, "at": 1, "ttl": 60,
		"containers": map[string]any{"web": map[string]any{"numa": strings.Join(numa, ","), "res": shares}}})
	patch := asJSON(map[string]any{"metadata": map[string]any{"annotations": map[string]any{hintKey: text}}})
	if _, err := r.kube.CoreV1().Pods(p.Namespace).Patch(background, p.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// A pod that has ended, and that its node reports still, claims as many CPUs as it asked for in every zone, or in
// one where it was not.
func TestAChangedHintMakesNoRoom(t *testing.T) {
	const zones, all, asks = 8, 12, 8 // one pod in each zone, four CPUs are left in each
	everywhere := func(int) map[int]int64 {
		claims := map[int]int64{}
		for z := range zones {
			claims[z] = asks
		}
		return claims
	}
	elsewhere := func(zone int) map[int]int64 { return map[int]int64{(zone + 1) % zones: asks} }
	for _, c := range []struct {
		name     string
		claims   func(zone int) map[int]int64
		restarts bool
		fit      int // before the node's next report
	}{
		{"everywhere", everywhere, false, 1},
		{"elsewhere", elsewhere, false, 1},
		{"everywhere-restart", everywhere, true, 0},
		{"elsewhere-restart", elsewhere, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			x := r.withExtender(strategy("LeastAllocated"), nil)
			m := r.machine("n", zonesOf(zones, amounts{"cpu": all, "memory": 64 * gi}), nil)
			full := r.storm(zones, zones, asks)
			for _, p := range full {
				r.said(r.now(p))
			}
			r.await("the node to have placed it by its hint", func() bool { return m.pods[full[0].UID] != nil })
			r.lock.Lock()
			r.noReports = true // it says nothing more for a while
			p, zone := r.pods[full[0].UID], 0
			for z := range m.pods[p.UID].of {
				zone = z
			}
			r.lock.Unlock()
			r.changeHint(p, c.claims(zone))
			if c.restarts {
				x.stop()
				x.start()
				x.waitReady()
			}
			m.patchStatus(p, `{"status": {"phase": "Succeeded"}}`)
			r.await("it has ended", func() bool { return m.pods[p.UID] == nil })
			r.settles(r.stormOf("after", zones, c.fit, asks), c.fit)
			r.nothingWasRefused()
			r.lock.Lock()
			r.noReports = false
			m.report()
			r.lock.Unlock()
			if c.fit == 0 { // the node says so itself by now
				r.eventually("there is room for one", func() bool {
					r.create(guaranteed(fmt.Sprint("later-", time.Now().UnixNano()), asks))
					time.Sleep(300 * time.Millisecond)
					r.lock.Lock()
					defer r.lock.Unlock()
					return len(m.pods) == zones
				})
			}
			r.nothingWasRefused()
		})
	}
}

// A pod that its author has put on a node, with an image that is not there, say.
func TestAPodThatNeverStartsHoldsItsRequestAndNoMore(t *testing.T) {
	const zones, cpus = 2, 8
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), nil)
	m := r.machine("n", zonesOf(zones, amounts{"cpu": cpus, "memory": 64 * gi}), func(m *machine) {
		m.ignores = func(p *v1.Pod) bool { return strings.HasPrefix(p.Name, "never") }
	})
	p := guaranteed("never", 3)
	p.Spec.NodeName = m.name
	p = r.create(p)
	r.await("it is there", func() bool { return r.pods[p.UID] != nil })
	r.bound(r.create(guaranteed("zone", cpus)))
	r.unschedulable(r.create(guaranteed("too-large", cpus-2)))
	r.bound(r.create(guaranteed("beside", cpus-3)))
	r.nothingWasRefused()
}
