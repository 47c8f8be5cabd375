package main

import (
	"fmt"
	"strconv"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

type hint struct {
	Mask      []int `json:"mask"` // nil: no preference
	Preferred bool  `json:"preferred"`
}

// topologyManager is the machine and the configuration of one.
type topologyManager struct {
	Nodes     []int               `json:"nodes"`
	Distances map[string][]uint64 `json:"distances,omitempty"`
	Policy    string              `json:"policy"`
	Options   map[string]any      `json:"options"`
}

// A merge of families of hints: rules for numafit, and for upstream what they stand for, written
// out.
type mergeQuestion struct {
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	topologyManager
	Families []*family `json:"families"`
}

type mergeAnswer struct {
	Affinity  []int `json:"affinity"`
	Preferred bool  `json:"preferred"`
	Admit     bool  `json:"admit"`
}

var mergeForm = formOf("merge", "families", randomMerge, upstreamMerge,
	func(q *mergeQuestion, upstream, ours value) string { return "" },
	describeMerge, "families", "families.*.demands", "families.*.extra", "families.*.reusable",
	"families.*.avail", "options")

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

func (m *topologyManager) newPolicy() (topologymanager.Policy, error) {
	var nodes []numaNode
	for _, id := range m.Nodes {
		nodes = append(nodes, numaNode{Id: id, Distances: distancesById(m.Nodes, m.Distances, id)})
	}
	options := map[string]string{}
	for name, v := range m.Options {
		options[name] = fmt.Sprint(v)
	}
	manager, err := newTopology(nodes, m.Policy, topologymanager.ContainerTopologyScope, options)
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
	best, admit := policy.Merge(klog.Background(), upstreamHints(q.providers()))
	return mergeAnswer{bitsOf(best), best.Preferred, admit}
}

// providers are what each family's provider hands to the Topology Manager.
func (q *mergeQuestion) providers() (all []map[string][]hint) {
	for _, f := range q.Families {
		all = append(all, f.hints(q.Nodes))
	}
	return all
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
const permutationsMax, permutationsOften = 60000, 300

func randomMerge(r *random) *mergeQuestion {
	nodes := randomNodes(r, r.between(1, 8))
	q := &mergeQuestion{Families: []*family{}, topologyManager: topologyManager{
		Nodes:   nodes,
		Policy:  policyOf(r),
		Options: map[string]any{},
	}}
	m := &maker{random: r, nodes: nodes, narrow: r.chance(60), permutations: permutationsOften}
	families := r.between(1, 5)
	switch {
	case len(nodes) > 4 && r.chance(40): // many sets have enough, and which is the closest?
		m.about, families = true, r.between(1, 2)
		q.Policy = pick(r, "best-effort", "restricted")
		q.Options["prefer-closest-numa-nodes"] = true
	case r.chance(50):
		q.Options["prefer-closest-numa-nodes"] = r.chance(85)
	}
	if r.chance(5) {
		q.Options["max-allowable-numa-nodes"] = r.between(8, 16)
	}
	if q.Options["prefer-closest-numa-nodes"] != nil || r.chance(5) {
		q.Distances = randomDistances(r, nodes)
	}
	if r.chance(1) {
		m.permutations = permutationsMax
	}
	for range families {
		if f := m.familyThatFits(); f != nil {
			q.Families = append(q.Families, f)
		}
	}
	return q
}

// familyThatFits is one that does not make too many permutations; nil when none came up.
func (m *maker) familyThatFits() *family {
	sockets := m.sockets
	for range triesToFit {
		f := m.family()
		if product := f.product(m.nodes); product <= m.permutations {
			m.permutations /= product
			return f
		}
		m.sockets, m.narrow = sockets, true
	}
	return nil
}

const triesToFit = 3

func policyOf(r *random) string {
	if r.chance(3) {
		return "none"
	}
	return pick(r, "best-effort", "best-effort", "restricted", "restricted", "single-numa-node")
}

func describeMerge(q *mergeQuestion, upstream value, count func(axis, class string)) {
	for _, f := range q.Families {
		for _, what := range f.with() {
			count("with", what)
		}
	}
	count("n", strconv.Itoa(len(q.Nodes)))
	count("families", strconv.Itoa(len(q.Families)))
	count("policy", q.Policy)
	count("closest", fmt.Sprint(q.Options["prefer-closest-numa-nodes"] == true))
	if member(upstream, "error") != nil {
		count("result", "error")
		return
	}
	count("result", fmt.Sprintf("preferred %v", member(upstream, "preferred")))
	count("result", fmt.Sprintf("admit %v", member(upstream, "admit")))
}
