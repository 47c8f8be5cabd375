package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

type memoryNode struct {
	ID        int               `json:"id"`
	Memory    uint64            `json:"memory"`
	HugePages map[string]uint64 `json:"hugepages,omitempty"` // type -> pages
}

type nodeReserve struct {
	NUMANode int               `json:"numaNode"`
	Limits   map[string]string `json:"limits"`
}

type memoryStep struct {
	Op         string          `json:"op"`
	Pod        *pod            `json:"pod,omitempty"`
	Scope      string          `json:"scope,omitempty"`
	Affinities map[string]hint `json:"affinities,omitempty"`
	UID        string          `json:"uid,omitempty"`
	Containers []string        `json:"containers,omitempty"`
}

type memoryQuestion struct {
	Name              string            `json:"name"`
	KubernetesVersion string            `json:"kubernetesVersion"`
	Nodes             []memoryNode      `json:"nodes"`
	ReservedMemory    []nodeReserve     `json:"reserved_memory"`
	NodeReservation   map[string]uint64 `json:"node_reservation"`
	Steps             []memoryStep      `json:"steps"`
}

type memoryAnswer struct {
	Initial map[int]map[string]memoryTotal `json:"initial"`
	Steps   []any                          `json:"steps"`
}

type memoryTotal struct {
	Total          uint64 `json:"total"`
	SystemReserved uint64 `json:"system_reserved"`
	Allocatable    uint64 `json:"allocatable"`
}

type memoryStepAnswer struct {
	Containers []memoryContainerAnswer `json:"containers,omitempty"`
	After      memoryPools             `json:"after"`
}

// In scope pod: without hints null, which differs from an empty map.
type memoryPodStepAnswer struct {
	memoryStepAnswer
	PodHints map[string][]hint `json:"pod_hints"`
}

type memoryContainerAnswer struct {
	Name   string            `json:"name"`
	Hints  map[string][]hint `json:"hints"`
	Error  string            `json:"error,omitempty"`
	Blocks []memoryBlock     `json:"blocks"`
}

type memoryBlock struct {
	Type  string `json:"type"`
	Nodes []int  `json:"nodes"`
	Size  uint64 `json:"size"`
}

type memoryPools map[int]memoryPool

type memoryPool struct {
	Assignments int               `json:"assignments"`
	Cells       []int             `json:"cells"`
	Free        map[string]uint64 `json:"free"`
	Reserved    map[string]uint64 `json:"reserved"`
}

var memoryForm = formOf("memory", "node_reservation", randomMemory, upstreamMemory,
	func(q *memoryQuestion, upstream, ours value) string { return "" },
	describeMemory, "steps", "steps.*.pod.spec.initContainers", "steps.*.pod.spec.containers")

var pageBytes = map[string]uint64{"hugepages-2Mi": 2 << 20, "hugepages-1Gi": 1 << 30}

func cadvisorNode(n memoryNode) numaNode {
	node := numaNode{Id: n.ID, Memory: n.Memory}
	for _, name := range sortedKeys(n.HugePages) {
		node.HugePages = append(node.HugePages,
			hugePages{PageSize: pageBytes[name] >> 10, NumPages: n.HugePages[name]})
	}
	return node
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func kubeletReserve(reserve []nodeReserve) (all []kubeletconfig.MemoryReservation) {
	for _, node := range reserve {
		limits := v1.ResourceList{}
		for name, amount := range node.Limits {
			limits[v1.ResourceName(name)] = bytesOf(amount)
		}
		all = append(all, kubeletconfig.MemoryReservation{NumaNode: int32(node.NUMANode), Limits: limits})
	}
	return all
}

// bytesOf is an amount that messages print as 303Mi, however it was written.
func bytesOf(amount string) resource.Quantity {
	q := resource.MustParse(amount)
	q.Format = resource.BinarySI
	return q
}

// startMemory is the manager after its Start(), but for the file that it keeps its state in.
func startMemory(policy string, machine *machineInfo, reservation v1.ResourceList,
	reserve []nodeReserve, store topologymanager.Store, active *activePods) (memorymanager.Manager, error) {
	m, err := memorymanager.NewManager(klog.Background(), policy, machine, reservation,
		kubeletReserve(reserve), "", store)
	if err != nil {
		return nil, err
	}
	s := state.NewMemoryState(klog.Background())
	*field[state.State](m, "state") = s
	*field[memorymanager.ActivePodsFunc](m, "activePods") = active.list
	*field[containermap.ContainerMap](m, "containerMap") = containermap.NewContainerMap()
	return m, (*field[memorymanager.Policy](m, "policy")).Start(klog.Background(), s)
}

// hintsOfStep are what a topology manager hands out.
type hintsOfStep struct{ step *memoryStep }

func (h *hintsOfStep) affinity(_, name string) topologymanager.TopologyHint {
	given := h.step.Affinities[name]
	return topologymanager.TopologyHint{NUMANodeAffinity: maskOf(given.Mask), Preferred: given.Preferred}
}

func upstreamMemory(q *memoryQuestion) any {
	machine := &machineInfo{}
	for _, node := range q.Nodes {
		machine.Topology = append(machine.Topology, cadvisorNode(node))
	}
	reservation := v1.ResourceList{}
	for name, amount := range q.NodeReservation {
		reservation[v1.ResourceName(name)] = *resource.NewQuantity(int64(amount), resource.BinarySI)
	}
	active, store := &activePods{}, &hintsOfStep{}
	m, err := startMemory("Static", machine, reservation, q.ReservedMemory,
		&hintStore{affinity: store.affinity}, active)
	if err != nil {
		return refusal{err.Error()}
	}
	answer := memoryAnswer{Initial: map[int]map[string]memoryTotal{}, Steps: []any{}}
	for id, node := range m.State().GetMachineState() {
		answer.Initial[id] = map[string]memoryTotal{}
		for name, t := range node.MemoryMap {
			answer.Initial[id][string(name)] = memoryTotal{t.TotalMemSize, t.SystemReserved, t.Allocatable}
		}
	}
	for i := range q.Steps {
		store.step = &q.Steps[i]
		answer.Steps = append(answer.Steps, upstreamMemoryStep(m, active, store.step))
	}
	return answer
}

func upstreamMemoryStep(m memorymanager.Manager, active *activePods, step *memoryStep) any {
	var answer memoryStepAnswer
	switch step.Op {
	case "add":
		return upstreamMemoryAdd(m, active, step)
	case "start":
		if p := active.get(step.UID); p != nil {
			startContainers(p, step.Containers, func(c *v1.Container, id string) {
				m.AddContainer(klog.Background(), p, c, id)
			})
		}
	case "remove":
		active.remove(step.UID)
	}
	answer.After = pools(m)
	return answer
}

func startContainers(p *v1.Pod, names []string, start func(c *v1.Container, id string)) {
	for _, c := range containers(p) {
		if slices.Contains(names, c.Name) {
			start(c, fmt.Sprintf("%s-%s", p.UID, c.Name))
		}
	}
}

func upstreamMemoryAdd(m memorymanager.Manager, active *activePods, step *memoryStep) any {
	var answer memoryStepAnswer
	p := step.Pod.kubernetes()
	active.add(p)
	podHints := map[string][]hint(nil)
	if step.Scope == topologymanager.PodTopologyScope {
		podHints = hintMap(hintsForPod(m, p))
	}
	for _, c := range containers(p) {
		one := memoryContainerAnswer{Name: c.Name}
		if step.Scope == topologymanager.ContainerTopologyScope {
			one.Hints = hintMap(hintsFor(m, p, c))
		}
		err := allocate(m, p, c)
		if err != nil {
			one.Error = err.Error()
			active.remove(string(p.UID))
		} else {
			one.Blocks = blocks(m, p, c)
		}
		answer.Containers = append(answer.Containers, one)
		if err != nil {
			break
		}
	}
	answer.After = pools(m)
	if step.Scope == topologymanager.PodTopologyScope {
		return memoryPodStepAnswer{answer, podHints}
	}
	return answer
}

func hintMap(hints map[string][]topologymanager.TopologyHint) map[string][]hint {
	if hints == nil {
		return nil
	}
	all := map[string][]hint{}
	for name, list := range hints {
		all[name] = hintsOf(list)
	}
	return all
}

// Upstream lists a container's blocks in any order.
func blocks(m memorymanager.Manager, p *v1.Pod, c *v1.Container) []memoryBlock {
	return blocksOf(memoryOf(m, p, c))
}

func blocksOf(list []state.Block) (all []memoryBlock) {
	for _, b := range list {
		all = append(all, memoryBlock{string(b.Type), b.NUMAAffinity, b.Size})
	}
	slices.SortFunc(all, func(a, b memoryBlock) int { return cmp.Compare(a.Type, b.Type) })
	return all
}

// pools tells what is where once the containers of inactive pods are collected.
func pools(m memorymanager.Manager) memoryPools {
	collect(m)
	all := memoryPools{}
	for id, node := range m.State().GetMachineState() {
		pool := memoryPool{node.NumberOfAssignments, node.Cells, map[string]uint64{}, map[string]uint64{}}
		for name, t := range node.MemoryMap {
			pool.Free[string(name)], pool.Reserved[string(name)] = t.Free, t.Reserved
		}
		all[id] = pool
	}
	return all
}

// randomMemoryNodes have about the same memory each, as the kernel shows it, some of it in huge
// pages of the same types everywhere: the released code dies of a type that one node lacks.
func randomMemoryNodes(r *random, ids []int) (nodes []memoryNode) {
	size := uint64(pick(r, 4, 8, 16, 64)) << 30
	var types []string
	for _, name := range sortedKeys(pageBytes) {
		if r.chance(35) {
			types = append(types, name)
		}
	}
	for _, id := range ids {
		n := memoryNode{ID: id, Memory: size - uint64(r.IntN(128))*mebi}
		if r.chance(10) {
			n.Memory *= 2
		}
		for _, name := range types {
			if n.HugePages == nil {
				n.HugePages = map[string]uint64{}
			}
			n.HugePages[name] = size / pageBytes[name] / uint64(pick(r, 4, 8, 16))
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// randomReserve is the reservation of nodes and its sums; they rarely do not agree, which the
// kubelet refuses.
func randomReserve(r *random, nodes []memoryNode) (reserve []nodeReserve, sums map[string]uint64) {
	reserve, sums = []nodeReserve{}, map[string]uint64{}
	all := r.chance(50)
	for i, node := range nodes {
		if i > 0 && !all {
			continue
		}
		amount := uint64(r.between(100, 1000)) * mebi
		limits := map[string]string{"memory": strconv.FormatUint(amount, 10)}
		sums["memory"] += amount
		for _, name := range sortedKeys(node.HugePages) {
			if r.chance(10) && node.HugePages[name] >= 2 {
				limits[name] = strconv.FormatUint(2*pageBytes[name], 10)
				sums[name] += 2 * pageBytes[name]
			}
		}
		reserve = append(reserve, nodeReserve{node.ID, limits})
	}
	switch {
	case r.chance(1):
		sums["memory"] += mebi
	case r.chance(1):
		return []nodeReserve{}, map[string]uint64{}
	}
	return reserve, sums
}

func demandOf(nodes []memoryNode) demand {
	d := demand{nodes: len(nodes), pages: map[string]uint64{}, podLevels: 3}
	for _, node := range nodes {
		d.memory = max(d.memory, node.Memory)
		for name := range node.HugePages {
			d.pages[name] = pageBytes[name]
		}
	}
	return d
}

func randomMemory(r *random) *memoryQuestion {
	ids := randomNodes(r, r.between(1, 8))
	q := &memoryQuestion{Nodes: randomMemoryNodes(r, ids)}
	q.ReservedMemory, q.NodeReservation = randomReserve(r, q.Nodes)
	d := demandOf(q.Nodes)
	d.cpus = 4
	var pods []*pod
	for range r.between(2, 12) {
		switch {
		case len(pods) > 0 && r.chance(20):
			q.Steps = append(q.Steps, memoryStep{Op: "remove", UID: pick(r, pods...).Metadata.UID})
		case len(pods) > 0 && r.chance(20):
			p := pick(r, pods...)
			q.Steps = append(q.Steps, memoryStep{Op: "start", UID: p.Metadata.UID, Containers: startedOf(r, p)})
		default:
			p := d.pod(r, len(pods))
			pods = append(pods, p)
			q.Steps = append(q.Steps, memoryStep{Op: "add", Pod: p,
				Scope: pick(r, "container", "pod"), Affinities: randomAffinities(r, ids, p)})
		}
	}
	return q
}

// startedOf are the first of the pod's containers: they start in order.
func startedOf(r *random, p *pod) (names []string) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		names = append(names, c.Name)
	}
	return names[:r.between(1, len(names))]
}

func randomAffinities(r *random, ids []int, p *pod) map[string]hint {
	all := map[string]hint{}
	same := hint{pick(r, nil, some(r, ids, 1), some(r, ids, r.between(1, len(ids))), ids), r.chance(60)}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		all[c.Name] = same
		if r.chance(40) {
			all[c.Name] = hint{pick(r, nil, some(r, ids, 1), some(r, ids, r.between(1, len(ids)))), r.chance(60)}
		}
	}
	return all
}

func describeMemory(q *memoryQuestion, upstream value, count func(axis, class string)) {
	count("n", strconv.Itoa(len(q.Nodes)))
	if why, refused := member(upstream, "error").(string); refused {
		why, _, _ = strings.Cut(why, `"`)
		count("result", "no start: "+why)
		return
	}
	steps, _ := member(upstream, "steps").([]any)
	for i, step := range steps {
		count("op", q.Steps[i].Op)
		if q.Steps[i].Scope != "" {
			count("scope", q.Steps[i].Scope)
		}
		containers, _ := member(step, "containers").([]any)
		for _, c := range containers {
			if why, failed := member(c, "error").(string); failed {
				count("result", why)
			} else {
				count("result", "blocks")
			}
		}
	}
}
