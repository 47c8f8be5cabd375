package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// machine is a node before it is an object: what its zones have, and in all.
type machine struct {
	ids      []int
	zone     scale   // what each zone has at most
	has      []scale // each zone's capacity
	free     []scale
	outside  scale // what is in no zone
	distance [][]int64
}

const zoneType = "Node"

func (r *random) machine() *machine {
	n := pick(r, 1, 2, 2, 2, 2, 2, 3, 4, 4, 4, 6, 8)
	m := &machine{ids: r.zoneIDs(n), distance: r.distances(n)}
	m.zone = scale{"cpu": kilo * pick[int64](r, 2, 4, 4, 8, 8, 16, 32),
		"memory": gibi * pick[int64](r, 1, 4, 8, 8, 16, 64)}
	if r.chance(10) { // the memory manager is off
		delete(m.zone, "memory")
	}
	for _, name := range some(r, devices, r.between(0, 3)) {
		m.zone[name] = int64(r.between(1, 8))
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if r.chance(12) {
			m.zone[name] = pages[name] * int64(r.between(1, 16))
		}
	}
	for range n {
		m.addZone(r)
	}
	m.outside = scale{"pods": 110, "ephemeral-storage": gibi * int64(r.between(1, 500))}
	if r.chance(20) {
		m.outside[pick(r, devices...)] = int64(r.between(1, 8))
	}
	if m.zone["memory"] == 0 {
		m.outside["memory"] = gibi * int64(r.between(1, 64))
	}
	return m
}

func (m *machine) addZone(r *random) {
	has, free := scale{}, scale{}
	for _, name := range slices.Sorted(maps.Keys(m.zone)) {
		if r.chance(4) { // this zone has none of it
			if r.chance(50) {
				has[name], free[name] = 0, 0
			}
			continue
		}
		has[name] = m.zone[name]
		if unitOf(name) == unitPieces && r.chance(40) {
			has[name] = r.between64(0, m.zone[name])
		}
		free[name] = r.left(name, has[name])
	}
	m.has, m.free = append(m.has, has), append(m.free, free)
}

// left of what is used in part.
func (r *random) left(name string, n int64) int64 {
	if n == 0 || r.chance(50) {
		return n
	}
	left := r.between64(0, n)
	switch {
	case name == "cpu" && r.chance(80):
		return left / kilo * kilo
	case pages[name] > 0:
		return left / pages[name] * pages[name]
	case unitOf(name) == unitBytes && r.chance(80):
		return left / mebi * mebi
	}
	return left
}

// zoneIDs are mostly 0 to n-1 in that order, but neither must be.
func (r *random) zoneIDs(n int) (ids []int) {
	for id := range n {
		ids = append(ids, id)
	}
	switch r.IntN(30) {
	case 0, 1, 2, 3:
		r.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	case 4, 5:
		for i := range ids {
			ids[i] += i + r.IntN(2)
		}
	case 6:
		ids[r.IntN(n)] += r.between(1, 70)
	case 7:
		ids[n-1] = pick(r, 63, 64, 65, 0)
	}
	return ids
}

func (r *random) distances(n int) [][]int64 {
	near, far := pick[int64](r, 11, 12, 16, 20), pick[int64](r, 20, 21, 28, 32)
	group := pick(r, 1, 2, 2, 4)
	uneven := r.chance(40)
	rows := make([][]int64, n)
	for i := range rows {
		for j := range n {
			d := far
			if i == j {
				d = 10
			} else if i/group == j/group {
				d = near
			}
			if uneven && i != j {
				d += int64(r.IntN(5))
			}
			rows[i] = append(rows[i], d)
		}
	}
	return rows
}

func (m *machine) total() scale {
	sum := maps.Clone(m.outside)
	for _, has := range m.has {
		for name, n := range has {
			sum[name] += n
		}
	}
	return sum
}

func (r *random) amounts(s scale) amounts {
	a := amounts{}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		a[name] = r.amountOf(name, s[name])
	}
	return a
}

func (m *machine) node(r *random, name string) (n node) {
	n.Metadata.Name = name
	total := m.total()
	if r.chance(5) {
		delete(total, pick(r, slices.Sorted(maps.Keys(total))...))
	}
	if r.chance(3) {
		total[pick(r, oddities...)] = int64(r.between(0, 1000))
	}
	n.Status.Allocatable = r.amounts(total)
	if r.chance(30) {
		n.Status.Capacity = n.Status.Allocatable
	}
	return n
}

func (m *machine) topology(r *random, name, strategy string) *topology {
	t := &topology{APIVersion: "topology.node.k8s.io/v1alpha2", Kind: "NodeResourceTopology",
		Metadata: metadata{Name: name}}
	r.configure(t, len(m.ids), strategy)
	for i, id := range m.ids {
		t.Zones = append(t.Zones, m.zoneObject(r, i, id))
	}
	if r.chance(8) { // of another kind, or of a name that nobody reads
		extra := m.zoneObject(r, 0, m.ids[0])
		extra.Type = pick(r, "Socket", "numa node", "node", zoneType)
		extra.Name = pick(r, "NUMA node #0", "numa-node-0", "node-x", "node--1", "node-", extra.Name)
		if extra.Type == zoneType && extra.Name == t.Zones[0].Name && r.chance(80) {
			extra.Type = "Socket"
		}
		at := r.IntN(len(t.Zones) + 1)
		t.Zones = slices.Insert(t.Zones, at, extra)
	}
	return t
}

func (m *machine) zoneObject(r *random, i, id int) (z zone) {
	z = zone{Name: fmt.Sprint("node-", id), Type: zoneType}
	if r.chance(2) {
		z.Name = fmt.Sprint("node-", pick(r, "0", "+"), id)
	}
	costs := r.chance(90)
	for j, other := range m.ids {
		if costs && !r.chance(1) {
			z.Costs = append(z.Costs, cost{fmt.Sprint("node-", other), m.distance[i][j]})
		}
	}
	if costs && r.chance(2) {
		z.Costs = append(z.Costs, cost{pick(r, "node-99", "somewhere", "node-0"), int64(r.IntN(300))})
	}
	for _, name := range slices.Sorted(maps.Keys(m.has[i])) {
		has, free := m.has[i][name], m.free[i][name]
		z.Resources = append(z.Resources, zoneResource{name, r.amountOf(name, has),
			r.amountOf(name, has), r.amountOf(name, free)})
	}
	if r.chance(10) {
		r.Shuffle(len(z.Resources), func(a, b int) {
			z.Resources[a], z.Resources[b] = z.Resources[b], z.Resources[a]
		})
	}
	if len(z.Resources) > 0 && r.chance(1) {
		again := z.Resources[0]
		again.Available = r.amountOf(again.Name, r.left(again.Name, m.has[i][again.Name]))
		z.Resources = append(z.Resources, again)
	}
	return z
}

// Attributes of a topology.
const (
	attributePolicy  = "topologyManagerPolicy"
	attributeScope   = "topologyManagerScope"
	attributeMax     = "topologyManagerMaxNUMANodes"
	attributeClosest = "topologyManagerOptionPreferClosestNumaNodes"
)

func (r *random) configure(t *topology, zones int, strategy string) {
	add := func(percent int, name string, values ...string) {
		if r.chance(percent) {
			t.Attributes = append(t.Attributes, attribute{name, pick(r, values...)})
		}
	}
	policy := []string{"single-numa-node", "restricted", "best-effort", "none"}
	if strategy != leastNUMANodes { // the others score nothing else
		policy = append(policy, slices.Repeat(policy[:1], 8)...)
	}
	scope := []string{"container", "container", "pod"}
	add(95, attributePolicy, policy...)
	add(90, attributeScope, scope...)
	add(40, attributeMax, fmt.Sprint(zones), fmt.Sprint(max(2, zones)), "2", "8", "16", "64", "101",
		"200", "5000", "1", "0", "-3", "+4", "many", "")
	add(55, attributeClosest, "true", "true", "false", "True", "")
	add(4, attributePolicy, strings.ToUpper(policy[0]), "Single-NUMA-Node", "", "none", policy[0])
	add(4, attributeScope, "Pod", "pod", "container", "")
	add(2, attributeMax, "2", "16", "x")
	add(2, attributeClosest, "true", "false")
	add(10, "nodeTopologyPodsFingerprint", "pfp0v001ef46db3751d8e999")
	if r.chance(10) {
		r.Shuffle(len(t.Attributes), func(i, j int) {
			t.Attributes[i], t.Attributes[j] = t.Attributes[j], t.Attributes[i]
		})
	}
	old := []string{"SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel", "BestEffortPodLevel",
		"BestEffortContainerLevel", "RestrictedPodLevel", "RestrictedContainerLevel", "Restricted",
		"SingleNUMANode", "None"}
	if r.chance(10) {
		t.TopologyPolicies = some(r, old, r.between(1, 2))
		if r.chance(40) {
			t.Attributes = nil
		}
	}
}
