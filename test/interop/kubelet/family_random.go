package main

import (
	"fmt"
	"slices"
)

// maker makes families for one merge: at most one of them prefers a number of sockets.
type maker struct {
	*random
	nodes        []int
	narrow       bool // ask for so much that few sets of nodes have it
	about        bool // for about half of what there is of CPUs, memory or by a rule
	sockets      bool // there is one that prefers sockets
	permutations int  // there may yet be so many times as many
}

// How often, of 20 families: less what is above.
const aCPU, aMemory, aDevice, aRule = 4, 9, 13, 18

func (m *maker) family() *family {
	kind := m.IntN(20)
	if m.about {
		kind = pick(m.random, aCPU, aMemory, aRule, aRule)
	}
	switch {
	case kind <= aCPU:
		return &family{m.cpu()}
	case kind <= aMemory:
		return &family{m.memory()}
	case kind <= aDevice:
		return &family{m.devices()}
	case kind <= aRule:
		return &family{m.rule()}
	default:
		return &family{&plainFamily{pick(m.random, "any", "none")}}
	}
}

// some nodes, one at least.
func (m *maker) someNodes() []int { return some(m.random, m.nodes, m.between(1, len(m.nodes))) }

// want is an amount of which there is so much in all.
func (m *maker) want(all int) int {
	switch {
	case m.about:
		return m.between(max(1, all*3/10), max(1, all*8/10))
	case m.narrow:
		return m.between(max(1, all*2/3), all+1)
	case m.chance(70):
		return m.between(1, 4)
	}
	return m.between(1, max(1, all))
}

// perNode is up to so much on each node.
func (m *maker) perNode(nodes []int, least, most int) map[int]int {
	amounts := map[int]int{}
	for _, node := range nodes {
		amounts[node] = m.between(least, most)
	}
	return amounts
}

// leftOf is what may be left of the amounts.
func (m *maker) leftOf(amounts map[int]int) map[int]int {
	left, fresh := map[int]int{}, m.chance(40)
	for _, node := range sortedKeys(amounts) {
		left[node] = amounts[node]
		if !fresh {
			left[node] = m.between(0, amounts[node])
		}
	}
	return left
}

func (m *maker) socketsOf(nodes []int) sockets {
	of, count, mixed, cross := sockets{}, m.between(1, 4), m.chance(20), m.chance(30)
	for i, node := range nodes {
		socket := i * count / len(nodes)
		if mixed {
			socket = m.IntN(count)
		}
		of[node] = []int{socket}
		if other := m.IntN(count); cross && other != socket && m.chance(50) {
			of[node] = []int{min(socket, other), max(socket, other)}
		}
	}
	m.sockets = true
	return of
}

func (m *maker) cpu() *cpuFamily {
	nodes := m.nodes
	if m.chance(20) {
		nodes = m.someNodes()
	}
	f := &cpuFamily{Kind: "cpu", Cap: m.perNode(nodes, pick(m.random, 1, 8), 8)}
	f.Avail = m.leftOf(f.Cap)
	if m.chance(25) {
		f.Reusable = map[int]int{}
		for _, node := range some(m.random, nodes, m.between(1, min(2, len(nodes)))) {
			if busy := f.Cap[node] - f.Avail[node]; busy > 0 {
				f.Reusable[node] = m.between(1, busy)
			}
		}
		if len(f.Reusable) == 0 {
			f.Reusable = nil
		}
	}
	f.Request = m.want(sum(f.Avail) + sum(f.Reusable))
	if m.chance(2) {
		f.Request = 0
	}
	if !m.sockets && m.chance(35) {
		f.Sockets = m.socketsOf(nodes)
	}
	return f
}

func (m *maker) memory() *memoryFamily {
	f := &memoryFamily{Kind: "mem", State: map[int]memoryCell{}, Request: map[string]int{}}
	types := some(m.random, []string{"hugepages-1Gi", "hugepages-2Mi", "memory"}, pick(m.random, 1, 1, 1, 2, 3))
	alloc, free := map[string]map[int]int{}, map[string]map[int]int{}
	for _, name := range types {
		alloc[name] = m.perNode(m.nodes, pick(m.random, 0, 4, 8), 8)
		free[name] = m.leftOf(alloc[name])
		f.Request[name] = m.want(sum(free[name]))
	}
	for _, node := range m.nodes {
		f.State[node] = memoryCell{Cells: []int{node}, Alloc: amountsOn(node, alloc), Free: amountsOn(node, free)}
	}
	if m.chance(50) {
		m.group(f)
	}
	if m.chance(20) {
		for range m.between(1, 2) {
			m.reuse(f, types)
		}
	}
	if m.chance(2) {
		f.Request = map[string]int{}
	}
	return f
}

func amountsOn(node int, of map[string]map[int]int) map[string]int {
	all := map[string]int{}
	for name, amounts := range of {
		all[name] = amounts[node]
	}
	return all
}

// group has nodes serve containers, alone or together. A node that served with others may serve
// alone since.
func (m *maker) group(f *memoryFamily) {
	left := m.Perm(len(m.nodes))
	for len(left) > 0 && m.chance(75) {
		size := m.between(1, min(3, len(left)))
		var together []int
		for _, i := range left[:size] {
			together = append(together, m.nodes[i])
		}
		left = left[size:]
		slices.Sort(together)
		for i, node := range together {
			cell := f.State[node]
			cell.Assign, cell.Cells = m.between(1, 3), together
			if i == 0 && m.chance(10) {
				cell.Cells = []int{node}
			}
			f.State[node] = cell
		}
	}
}

// reuse leaves amounts of an init container on nodes of which nothing is left yet.
func (m *maker) reuse(f *memoryFamily, types []string) {
	r := memoryReuse{m.someNodes(), map[string]int{}}
	if m.chance(50) {
		r.Nodes = f.State[pick(m.random, m.nodes...)].Cells
	}
	for _, name := range types {
		r.Bytes[name] = m.between(1, 8)
	}
	if !slices.ContainsFunc(f.Reusable, func(o memoryReuse) bool { return slices.Equal(o.Nodes, r.Nodes) }) {
		f.Reusable = append(f.Reusable, r)
	}
}

func (m *maker) devices() *deviceFamily {
	const notThere = 61
	f := &deviceFamily{Kind: "device", All: map[string][]int{}, Avail: []string{}}
	home := some(m.random, m.nodes, m.between(1, min(len(m.nodes), pick(m.random, 2, 4, 8))))
	var held []string
	for i := range m.between(1, 10) {
		id := fmt.Sprintf("d%d", i)
		switch {
		case m.chance(3):
			f.All[id] = nil
		case m.chance(1):
			f.All[id] = []int{}
		case m.chance(1) && !slices.Contains(m.nodes, notThere):
			f.All[id] = []int{notThere}
		default:
			f.All[id] = some(m.random, home, min(len(home), pick(m.random, 1, 1, 1, 2, 3)))
		}
		if m.chance(70) {
			f.Avail = append(f.Avail, id)
		} else {
			held = append(held, id)
		}
	}
	if len(held) > 0 && m.chance(30) {
		f.Reusable = some(m.random, held, m.between(1, min(3, len(held))))
	}
	f.Request = m.want(len(f.Avail) + len(f.Reusable))
	if m.chance(1) {
		f.Request = 0
	}
	return f
}

func (m *maker) rule() *anyRule {
	f := &anyRule{Kind: "rule", Ground: m.nodes, PreferredSize: m.between(0, len(m.nodes))}
	if m.chance(40) {
		f.Ground = m.someNodes()
	}
	if m.chance(25) {
		f.Required = some(m.random, f.Ground, m.between(0, min(2, len(f.Ground))))
	}
	for range pick(m.random, 0, 1, 1, 2, 3) + number(m.about) {
		f.Demands = append(f.Demands, m.demand(f.Ground))
	}
	for range pick(m.random, 0, 0, 1, 3) {
		f.Extra = append(f.Extra, m.someNodes())
	}
	if !m.sockets && m.chance(30) {
		f.Sockets = m.socketsOf(m.nodes)
		f.PreferredSockets = m.between(1, 3)
	}
	return f
}

func (m *maker) demand(ground []int) (d ruleDemand) {
	all := 0
	if m.chance(60) {
		d.Weights = m.perNode(ground, 0, 8)
		all = sum(d.Weights)
	} else {
		for range m.between(1, 4) {
			d.Covers = append(d.Covers, ruleCover{m.someNodes(), m.between(1, 3)})
			all += d.Covers[len(d.Covers)-1].Count
		}
	}
	if m.chance(20) {
		d.Base = m.between(1, 3)
	}
	d.Need = m.want(all + d.Base)
	return d
}
