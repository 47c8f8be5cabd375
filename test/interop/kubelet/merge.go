package main

import (
	"fmt"
	"strconv"

	cadvisor "github.com/google/cadvisor/info/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

type hint struct {
	Mask      []int `json:"mask"` // nil: no preference
	Preferred bool  `json:"preferred"`
}

type mergeQuestion struct {
	Name      string              `json:"name"`
	Nodes     []int               `json:"nodes"`
	Distances map[string][]uint64 `json:"distances,omitempty"`
	Policy    string              `json:"policy"`
	Options   map[string]any      `json:"options"`
	Providers []map[string][]hint `json:"providers"`
}

type mergeAnswer struct {
	Affinity  []int `json:"affinity"`
	Preferred bool  `json:"preferred"`
	Admit     bool  `json:"admit"`
}

var mergeForm = formOf("merge", "providers", randomMerge, upstreamMerge,
	func(q *mergeQuestion, upstream, ours value) string { return "" },
	describeMerge, "providers", "providers.*", "providers.*.*")

// distancesById gives node id its row. Upstream looks distances up by id, also in a machine whose
// ids have gaps, where the kernel's rows are shorter: it would die there. Give it rows that bear
// that.
func distancesById(nodes []int, rows map[string][]uint64, id int) []uint64 {
	row := rows[strconv.Itoa(id)]
	if row == nil {
		return nil
	}
	byID := make([]uint64, bitsOfMask)
	for i, distance := range row {
		byID[nodes[i]] = distance
	}
	return byID
}

const bitsOfMask = 64

func (q *mergeQuestion) newPolicy() (topologymanager.Policy, error) {
	var nodes []cadvisor.Node
	for _, id := range q.Nodes {
		nodes = append(nodes, cadvisor.Node{Id: id, Distances: distancesById(q.Nodes, q.Distances, id)})
	}
	options := map[string]string{}
	for name, v := range q.Options {
		options[name] = fmt.Sprint(v)
	}
	manager, err := topologymanager.NewManager(nodes, q.Policy, topologymanager.ContainerTopologyScope, options)
	if err != nil {
		return nil, err
	}
	return manager.GetPolicy(), nil
}

func upstreamMerge(q *mergeQuestion) any {
	policy, err := q.newPolicy()
	if err != nil {
		return refusal{err.Error()}
	}
	best, admit := policy.Merge(klog.Background(), upstreamHints(q.Providers))
	return mergeAnswer{bitsOf(best), best.Preferred, admit}
}

func upstreamHints(providers []map[string][]hint) (all []map[string][]topologymanager.TopologyHint) {
	for _, provider := range providers {
		var lists map[string][]topologymanager.TopologyHint
		if provider != nil {
			lists = map[string][]topologymanager.TopologyHint{}
		}
		for resource, hints := range provider {
			var list []topologymanager.TopologyHint
			if hints != nil {
				list = []topologymanager.TopologyHint{}
			}
			for _, h := range hints {
				list = append(list, topologymanager.TopologyHint{NUMANodeAffinity: maskOf(h.Mask), Preferred: h.Preferred})
			}
			lists[resource] = list
		}
		all = append(all, lists)
	}
	return all
}

func maskOf(ids []int) bitmask.BitMask {
	if ids == nil {
		return nil
	}
	mask, err := bitmask.NewBitMask(ids...)
	if err != nil {
		panic(err)
	}
	return mask
}

func bitsOf(h topologymanager.TopologyHint) []int {
	if h.NUMANodeAffinity == nil {
		return nil
	}
	return append([]int{}, h.NUMANodeAffinity.GetBits()...)
}

// Upstream looks at each combination of one hint from every list, some million a second: few of the
// cases are large.
const permutationsMax, permutationsOften = 100000, 500

func randomMerge(r *random) *mergeQuestion {
	nodes := randomNodes(r, r.between(1, 8))
	q := &mergeQuestion{
		Nodes:   nodes,
		Policy:  policyOf(r),
		Options: map[string]any{},
	}
	if r.chance(50) {
		q.Options["prefer-closest-numa-nodes"] = r.chance(85)
	}
	if r.chance(5) {
		q.Options["max-allowable-numa-nodes"] = r.between(8, 16)
	}
	if q.Options["prefer-closest-numa-nodes"] != nil || r.chance(30) {
		q.Distances = randomDistances(r, nodes)
	}
	left := permutationsOften
	if r.chance(1) {
		left = permutationsMax
	}
	for i := r.IntN(5); i >= 0; i-- {
		q.Providers = append(q.Providers, randomProvider(r, nodes, &left))
	}
	return q
}

func policyOf(r *random) string {
	if r.chance(3) {
		return "none"
	}
	return pick(r, "best-effort", "best-effort", "restricted", "restricted", "single-numa-node")
}

func randomProvider(r *random, nodes []int, left *int) map[string][]hint {
	if r.chance(8) {
		return nil
	}
	lists := map[string][]hint{}
	shape := r.IntN(3)
	for i := r.IntN(3); i > 0 || len(lists) == 0 && !r.chance(5); i-- {
		list := randomList(r, nodes, shape, min(*left, 255))
		*left /= max(1, len(list))
		lists[fmt.Sprintf("r%d", len(lists))] = list
	}
	return lists
}

func randomList(r *random, nodes []int, shape, most int) []hint {
	switch {
	case r.chance(4):
		return nil
	case r.chance(3):
		return []hint{}
	case shape == 0:
		return anyHints(r, nodes, min(most, r.between(1, 12)))
	default:
		return capacityHints(r, nodes, most)
	}
}

// anyHints are what no provider of the kubelet's would say, but a merge has to bear.
func anyHints(r *random, nodes []int, count int) (list []hint) {
	preferred := pick(r, 5, 50, 95)
	for range count {
		var mask []int
		switch {
		case r.chance(4): // nil
		case r.chance(3):
			mask = []int{}
		case r.chance(3):
			mask = append(some(r, nodes, r.IntN(len(nodes))), r.IntN(bitsOfMask))
		default:
			mask = some(r, nodes, r.between(1, len(nodes)))
		}
		list = append(list, hint{mask, r.chance(preferred)})
	}
	return list
}

// capacityHints are what a provider with something on each node says: the masks that have enough,
// those of the smallest size that could ever have enough preferred.
func capacityHints(r *random, nodes []int, most int) []hint {
	free, capacity, total := map[int]int{}, map[int]int{}, 0
	for _, node := range nodes {
		capacity[node] = r.between(0, 8)
		free[node] = r.between(0, capacity[node])
		total += free[node]
	}
	if r.chance(50) { // as on a fresh machine
		free = capacity
	}
	want, smallest := r.between(1, max(1, total)), len(nodes)
	if r.chance(70) {
		want = r.between(1, 4)
	}
	list := []hint{}
	for set := 1; set < 1<<len(nodes); set++ {
		var mask []int
		has, could := 0, 0
		for i, node := range nodes {
			if set&(1<<i) != 0 {
				mask = append(mask, node)
				has += free[node]
				could += capacity[node]
			}
		}
		if could >= want {
			smallest = min(smallest, len(mask))
		}
		if has >= want {
			list = append(list, hint{Mask: mask})
		}
	}
	if len(list) > most {
		list = some(r, list, most)
	}
	for i := range list {
		list[i].Preferred = len(list[i].Mask) == smallest
	}
	return list
}

func describeMerge(q *mergeQuestion, upstream value, count func(axis, class string)) {
	lists := 0
	for _, provider := range q.Providers {
		lists += max(1, len(provider))
	}
	count("n", strconv.Itoa(len(q.Nodes)))
	count("lists", strconv.Itoa(lists))
	count("policy", q.Policy)
	count("closest", fmt.Sprint(q.Options["prefer-closest-numa-nodes"] == true))
	if member(upstream, "error") != nil {
		count("result", "error")
		return
	}
	count("result", fmt.Sprintf("preferred %v", member(upstream, "preferred")))
	count("result", fmt.Sprintf("admit %v", member(upstream, "admit")))
}
