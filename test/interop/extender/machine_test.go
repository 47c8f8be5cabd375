package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/OneOfOne/xxhash"
	"github.com/k8stopologyawareschedwg/podfingerprint"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A machine plays a node's part as far as the API server sees it: the Node, what numafitd reports of
// it, and what becomes of the pods that are bound there.

const (
	hintKey    = "numafit.io/numa-hint"
	gi         = int64(1) << 30
	local      = 10 // SLIT distances
	neighbour  = 12
	far        = 32
	perSocket  = 4 // NUMA nodes
	maxNUMA    = 8
	never      = time.Duration(-1)
	podsOfNode = 2000
)

var epoch = time.Now().Add(-time.Hour)

// amounts by resource: whole CPUs, bytes, devices.
type amounts map[string]int64

func (a amounts) fit(asked amounts) bool {
	for name, n := range asked {
		if n > a[name] {
			return false
		}
	}
	return true
}

func (a amounts) add(b amounts, sign int64) {
	for name, n := range b {
		a[name] += sign * n
	}
}

type zone struct{ all, free amounts }

// held is what one pod has of each zone.
type held struct {
	pod  *v1.Pod
	of   map[int]amounts
	said bool // in a report
}

type machine struct {
	rig           *rig
	name          string
	uid           types.UID
	zones         []*zone
	policy, scope string
	delay         time.Duration // from a binding to the report that contains it
	refuses       func(p *v1.Pod) bool
	ignores       func(p *v1.Pod) bool // they never start
	generation    int64
	pods          map[types.UID]*held
	refused       []string // pods that did not fit
	repaired      []string // those that did, but not where their hints said
	reports       int
}

// zonesOf are n zones alike.
func zonesOf(n int, of amounts) (list []*zone) {
	for range n {
		list = append(list, &zone{all: maps.Clone(of)})
	}
	return list
}

// machine makes a node and its first report. edit may change it before.
func (r *rig) machine(name string, zones []*zone, edit func(m *machine)) *machine {
	r.Helper()
	m := &machine{rig: r, name: r.prefix + name, zones: zones, policy: "single-numa-node", scope: "container",
		generation: 1, pods: map[types.UID]*held{}}
	for _, z := range m.zones {
		z.free = maps.Clone(z.all)
	}
	if edit != nil {
		edit(m)
	}
	m.makeNode()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.machines[m.name] = m
	m.report()
	return m
}

func (m *machine) makeNode() {
	m.rig.Helper()
	all := v1.ResourceList{"pods": *resource.NewQuantity(podsOfNode, resource.DecimalSI)}
	for _, z := range m.zones {
		for name, n := range z.all {
			sum := all[v1.ResourceName(name)]
			sum.Add(*resource.NewQuantity(n, resource.DecimalSI))
			all[v1.ResourceName(name)] = sum
		}
	}
	nodes := m.rig.kube.CoreV1().Nodes()
	object, err := nodes.Create(background, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}, metav1.CreateOptions{})
	if err == nil {
		m.uid = object.UID
		object.Spec.Taints = nil // not-ready: nobody else takes it away
		object, err = nodes.Update(background, object, metav1.UpdateOptions{})
	}
	if err == nil {
		object.Status = v1.NodeStatus{Capacity: all, Allocatable: all,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "Rig"}}}
		_, err = nodes.UpdateStatus(background, object, metav1.UpdateOptions{})
	}
	if err != nil {
		m.rig.Fatal(err)
	}
}

// hint is what we look at of the annotation.
type hint struct {
	Node, UID, Pfp, Mode, Scope string
	Gen, At, TTL                int64
	Containers                  map[string]struct {
		Numa string
		Dist int
		Res  []struct {
			Node      int
			Resources map[string]resource.Quantity
		}
	}
}

func hintOf(p *v1.Pod) (*hint, error) {
	text := p.Annotations[hintKey]
	if text == "" {
		return nil, nil
	}
	h := &hint{}
	return h, json.Unmarshal([]byte(text), h)
}

// isExclusive is whether a report accounts for the pod: it is Guaranteed, or has devices.
func isExclusive(p *v1.Pod) bool {
	if p.Status.QOSClass == v1.PodQOSGuaranteed {
		return true
	}
	for _, c := range p.Spec.Containers {
		if len(devices(asked(c))) > 0 {
			return true
		}
	}
	return false
}

func asked(c v1.Container) amounts {
	a := amounts{}
	for name, q := range c.Resources.Requests {
		a[string(name)] = q.Value()
	}
	return a
}

func devices(a amounts) amounts {
	b := maps.Clone(a)
	delete(b, "cpu")
	delete(b, "memory")
	return b
}

// arrive is a pod that is bound here. As numafitd does, the machine gives what the hint says, or
// something as good.
func (m *machine) arrive(p *v1.Pod) {
	if m.pods[p.UID] != nil || (m.ignores != nil && m.ignores(p)) {
		return
	}
	h := &held{pod: p, of: map[int]amounts{}}
	if m.refuses != nil && m.refuses(p) {
		go m.refuse(p)
		return
	}
	if isExclusive(p) && !m.take(h) {
		m.refused = append(m.refused, fmt.Sprintf("%s/%s %s", m.name, p.Name, p.Annotations[hintKey]))
		go m.refuse(p)
		return
	}
	m.pods[p.UID] = h
	m.rig.started++
	go m.run(p, m.rig.started)
	if m.delay != never {
		time.AfterFunc(m.delay, func() { m.account(h) })
	}
}

// account has the pod in the next report.
func (m *machine) account(h *held) {
	m.rig.lock.Lock()
	defer m.rig.lock.Unlock()
	h.said = true
	m.generation++
	m.report()
}

func (m *machine) take(h *held) bool {
	said, err := hintOf(h.pod)
	if err != nil {
		return false
	}
	if said != nil && m.follow(h, said) {
		return true
	}
	for _, c := range h.pod.Spec.Containers {
		if !m.takeAlone(h, asked(c)) {
			return false
		}
	}
	if said != nil {
		m.repaired = append(m.repaired, fmt.Sprintf("%s/%s %s", m.name, h.pod.Name, h.pod.Annotations[hintKey]))
	}
	return true
}

func (m *machine) follow(h *held, said *hint) bool {
	for _, c := range said.Containers {
		for _, r := range c.Res {
			of := amounts{}
			for name, q := range r.Resources {
				of[name] = q.Value()
			}
			if r.Node >= len(m.zones) || !m.zones[r.Node].free.fit(of) {
				m.give(h)
				return false
			}
			m.hold(h, r.Node, of)
		}
	}
	return true
}

// takeAlone is for containers without a hint, or whose hint does not fit: the first zone that has it all, or what there is from the first on.
func (m *machine) takeAlone(h *held, want amounts) bool {
	for i, z := range m.zones {
		if z.free.fit(want) {
			m.hold(h, i, want)
			return true
		}
	}
	if m.policy == "single-numa-node" {
		m.give(h)
		return false
	}
	for i, z := range m.zones {
		part := amounts{}
		for name, n := range want {
			part[name] = min(n, z.free[name])
		}
		m.hold(h, i, part)
		want = maps.Clone(want)
		want.add(part, -1)
	}
	if !(amounts{}).fit(want) {
		m.give(h)
		return false
	}
	return true
}

func (m *machine) hold(h *held, zone int, of amounts) {
	if h.of[zone] == nil {
		h.of[zone] = amounts{}
	}
	h.of[zone].add(of, 1)
	m.zones[zone].free.add(of, -1)
}

func (m *machine) give(h *held) {
	for i, of := range h.of {
		m.zones[i].free.add(of, 1)
	}
	h.of = map[int]amounts{}
}

// leave is a pod that is gone, or has ended.
func (m *machine) leave(uid types.UID) {
	h := m.pods[uid]
	if h == nil {
		return
	}
	m.give(h)
	delete(m.pods, uid)
	m.generation++
	m.report()
}

// patchStatus is what the kubelet says of the pod.
func (m *machine) patchStatus(p *v1.Pod, status string) {
	_, err := m.rig.kube.CoreV1().Pods(p.Namespace).Patch(background, p.Name, types.StrategicMergePatchType,
		[]byte(status), metav1.PatchOptions{}, "status")
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end) && m.rig.serverIsAway(err); {
		time.Sleep(50 * time.Millisecond)
		_, err = m.rig.kube.CoreV1().Pods(p.Namespace).Patch(background, p.Name, types.StrategicMergePatchType,
			[]byte(status), metav1.PatchOptions{}, "status")
	}
}

// run says when it was started: who came last is preempted first, and times have seconds.
func (m *machine) run(p *v1.Pod, number int) {
	start := metav1.NewTime(epoch.Add(time.Duration(number) * time.Second))
	m.patchStatus(p, `{"status": {"phase": "Running", "startTime": `+asJSON(start)+`}}`)
}

// refuse is what the kubelet does with a pod that its topology manager does not admit.
func (m *machine) refuse(p *v1.Pod) {
	m.patchStatus(p, `{"status": {"phase": "Failed", "reason": "TopologyAffinityError",
		"message": "Pod was rejected: Resources cannot be allocated with Topology locality"}}`)
}

func distance(a, b int) int64 {
	switch {
	case a == b:
		return local
	case a/perSocket == b/perSocket:
		return neighbour
	}
	return far
}

func zoneName(n int) string { return "node-" + strconv.Itoa(n) }

// podHash is what numafit.io/pods has of a pod, and what a fingerprint is made of.
func podHash(namespace, name string) uint64 {
	return xxhash.ChecksumString64S(name, xxhash.ChecksumString64(namespace))
}

// report writes the node's NodeResourceTopology as numafitd does: of the pods it tells of.
func (m *machine) report() {
	said := podfingerprint.NewFingerprint(len(m.pods))
	names := []string{}                      // and behind each where it is
	missing := make([]amounts, len(m.zones)) // held by pods that it does not tell of yet
	for _, h := range m.pods {
		if !isExclusive(h.pod) {
			continue
		}
		if h.said {
			said.Add(h.pod.Namespace, h.pod.Name)
			zones := uint64(0)
			for i := range h.of {
				zones |= 1 << i
			}
			names = append(names, fmt.Sprintf("%016x%016x", podHash(h.pod.Namespace, h.pod.Name), zones))
			continue
		}
		for i, of := range h.of {
			if missing[i] == nil {
				missing[i] = amounts{}
			}
			missing[i].add(of, 1)
		}
	}
	slices.Sort(names)
	hashes, places := "", ""
	for _, n := range names {
		hashes, places = hashes+n[:16], places+n[16:]
	}
	attributes := []map[string]string{}
	for _, a := range [][2]string{{"topologyManagerPolicy", m.policy}, {"topologyManagerScope", m.scope},
		{"topologyManagerMaxNUMANodes", strconv.Itoa(max(maxNUMA, len(m.zones)))},
		{"nodeTopologyPodsFingerprint", said.Sign()}, {"nodeTopologyPodsFingerprintMethod", "with-exclusive-resources"},
		{"numafit.io/decider", "numafit"}, {"numafit.io/generation", strconv.FormatInt(m.generation, 10)},
		{"numafit.io/pods", hashes}, {"numafit.io/pod-zones", places}} {
		attributes = append(attributes, map[string]string{"name": a[0], "value": a[1]})
	}
	zones := []map[string]any{}
	for i, z := range m.zones {
		costs, resources := []map[string]any{}, []map[string]string{}
		for to := range m.zones {
			costs = append(costs, map[string]any{"name": zoneName(to), "value": distance(i, to)})
		}
		for _, name := range slices.Sorted(maps.Keys(z.all)) {
			all := strconv.FormatInt(z.all[name], 10)
			resources = append(resources, map[string]string{"name": name, "capacity": all, "allocatable": all,
				"available": strconv.FormatInt(z.free[name]+missing[i][name], 10)})
		}
		zones = append(zones, map[string]any{"name": zoneName(i), "type": "Node", "costs": costs, "resources": resources})
	}
	m.write(map[string]any{"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
		"metadata": map[string]any{"name": m.name}, "attributes": attributes, "zones": zones})
}

func (m *machine) write(object map[string]any) {
	force := true
	if m.rig.noReports || m.rig.over {
		return
	}
	_, err := m.rig.topologies().Patch(background, m.name, types.ApplyPatchType, []byte(asJSON(object)),
		metav1.PatchOptions{FieldManager: "numafitd", Force: &force})
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end) && m.rig.serverIsAway(err); {
		time.Sleep(50 * time.Millisecond)
		_, err = m.rig.topologies().Patch(background, m.name, types.ApplyPatchType, []byte(asJSON(object)),
			metav1.PatchOptions{FieldManager: "numafitd", Force: &force})
	}
	if err != nil {
		m.rig.Errorf("the report of %s: %v", m.name, err)
	}
	m.reports++
}

// free is how much of a resource each zone has left, truly.
func (m *machine) free(name string) (list []int64) {
	m.rig.lock.Lock()
	defer m.rig.lock.Unlock()
	for _, z := range m.zones {
		list = append(list, z.free[name])
	}
	return list
}
