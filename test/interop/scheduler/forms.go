package main

import (
	"fmt"
	"maps"
	"slices"
)

// Plugins, and strategies of theirs.
const (
	match       = "NodeResourceTopologyMatch"
	fit         = "NodeResourcesFit"
	balanced    = "NodeResourcesBalancedAllocation"
	allocatable = "NodeResourcesAllocatable"
	generic     = "GenericNodeResources"

	leastAllocated           = "LeastAllocated"
	mostAllocated            = "MostAllocated"
	balancedAllocation       = "BalancedAllocation"
	leastNUMANodes           = "LeastNUMANodes"
	requestedToCapacityRatio = "RequestedToCapacityRatio"
)

// Versions of upstream's, each a program of its own.
const (
	inPlugins = "plugins" // sigs.k8s.io/scheduler-plugins, and the Kubernetes below it
	inKube    = "kube"    // k8s.io/kubernetes
)

// reference is who knows the right answer, and how they are asked: about the same nodes and the same
// pod.
type reference struct {
	program string
	plugin  string
	args    any
}

type asked struct {
	question
	reference
	strategy string // of match, "" elsewhere
}

// A form of question.
type form struct {
	name     string
	number   int
	count    int // of questions, unless told otherwise
	generate func(r *random) asked
}

var forms = []*form{
	{"match", 1, 6000, func(r *random) asked {
		return r.matchQuestion(pick(r, leastAllocated, mostAllocated, balancedAllocation))
	}},
	{"leastnuma", 2, 4000, func(r *random) asked { return r.matchQuestion(leastNUMANodes) }},
	{"fit", 3, 2500, func(r *random) asked { return r.resourcesQuestion(fit, inKube, r.fitArgs()) }},
	{"balanced", 4, 1000, func(r *random) asked {
		return r.resourcesQuestion(balanced, inKube, r.balancedArgs())
	}},
	{"allocatable", 5, 1000, func(r *random) asked {
		return r.resourcesQuestion(allocatable, inPlugins, r.allocatableArgs())
	}},
	{"generic", 6, 2000, (*random).genericQuestion},
}

const wrongArgsPercent = 6

func (r *random) matchQuestion(strategy string) asked {
	q := question{Plugin: match, Compat: r.chance(70)}
	args := r.matchArgs(strategy)
	if r.chance(wrongArgsPercent) {
		r.spoil(args)
	}
	q.Args = args
	wanted := scale{}
	for i := range r.between(1, 5) {
		m, name := r.machine(), fmt.Sprint("n", i)
		c := candidate{Node: m.node(r, name)}
		if r.chance(93) {
			c.Topology = m.topology(r, name, strategy)
		}
		if r.chance(30) {
			c.Pods = r.pods(name+"-a", m.reach(r), r.between(1, 3))
		}
		if i == 0 || r.chance(30) {
			wanted = m.reach(r)
		}
		q.Nodes = append(q.Nodes, c)
	}
	if strategy == leastNUMANodes && r.chance(60) {
		wanted = wanted.times(r.between64(2, 4))
	}
	q.Pod = r.pod("p", wanted)
	return asked{q, reference{inPlugins, match, q.Args}, strategy}
}

// reach is what a pod for this machine is measured against.
func (m *machine) reach(r *random) scale {
	reach := maps.Clone(m.zone)
	for name := range reach {
		if unitOf(name) != unitPieces && len(m.ids) > 1 && pages[name] == 0 {
			reach[name] = reach[name] * 2 / 3
		}
	}
	if reach["memory"] == 0 {
		reach["memory"] = m.outside["memory"] / 4
	}
	if r.chance(30) {
		for name, n := range m.outside {
			if name != "pods" && reach[name] == 0 {
				reach[name] = n / 4
			}
		}
	}
	return reach
}

// resourcesQuestion asks about nodes that are just amounts, with pods on them.
func (r *random) resourcesQuestion(plugin, program string, args object) asked {
	q := question{Plugin: plugin, Args: args}
	if r.chance(wrongArgsPercent) {
		r.spoil(args)
	}
	r.nodesAndPod(&q)
	return asked{q, reference{program, plugin, args}, ""}
}

func (r *random) nodesAndPod(q *question) {
	all := r.wholeNode()
	for i := range r.between(1, 5) {
		if r.chance(70) {
			all = r.wholeNode()
		}
		name, each := fmt.Sprint("n", i), all.part(8)
		c := candidate{Node: node{Metadata: metadata{Name: name}}, Pods: r.pods(name+"-a", each, r.between(0, 4))}
		c.Node.Status.Allocatable = r.amounts(all)
		if r.chance(30) {
			c.Node.Status.Capacity = c.Node.Status.Allocatable
		}
		q.Nodes = append(q.Nodes, c)
	}
	q.Pod = r.pod("p", all.part(pick[int64](r, 1, 2, 4, 4, 8)))
}

func (r *random) wholeNode() scale {
	s := scale{"pods": pick[int64](r, 110, 110, 110, 3, 1, 0)}
	s["cpu"] = kilo * pick[int64](r, 2, 4, 8, 16, 32, 64, 256)
	s["memory"] = gibi * pick[int64](r, 4, 16, 64, 256, 1024)
	if r.chance(25) { // what the system keeps for itself
		s["cpu"] -= r.between64(0, kilo)
		s["memory"] -= r.between64(0, gibi)
	}
	if r.chance(70) {
		s["ephemeral-storage"] = gibi * r.between64(1, 500)
	}
	for _, name := range some(r, devices, r.between(0, 4)) {
		s[name] = r.between64(0, 16)
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if r.chance(20) {
			s[name] = pages[name] * r.between64(0, 1000)
		}
	}
	if r.chance(3) {
		s[pick(r, oddities...)] = r.between64(0, 1000)
	}
	if r.chance(3) {
		delete(s, pick(r, "cpu", "memory", "pods"))
	}
	if r.chance(2) {
		s[pick(r, "cpu", "memory")] = 0
	}
	return s
}

func (s scale) times(n int64) scale {
	more := scale{}
	for name := range s {
		more[name] = n * s[name]
	}
	return more
}

func (s scale) part(of int64) scale {
	part := scale{}
	for name, n := range s {
		part[name] = max(1, n/of)
	}
	delete(part, "pods")
	return part
}

// genericQuestion asks for what one of the plugins computes that GenericNodeResources replaces.
func (r *random) genericQuestion() asked {
	q := question{Plugin: generic}
	weights := r.weights(pick(r, one, r.upTo(100)))
	part, ref := r.replaced(weights)
	spelled := any(weights)
	if r.chance(50) {
		byName := object{}
		for _, w := range weights {
			byName[w.(object)["name"].(string)] = w.(object)["weight"]
		}
		spelled = byName
	}
	for _, p := range part {
		p.(object)["resources"] = spelled
	}
	q.Args, q.Reproduces = part, ref.plugin
	r.nodesAndPod(&q)
	for i := range q.Nodes { // the old plugins' filters and gates are not their scores
		q.Nodes[i].Node.Status.Allocatable["pods"] = 110
	}
	q.Pod.Spec.Resources = nil
	if ref.plugin == balanced {
		q.asksForAll(r)
	}
	return asked{q, ref, ""}
}

// replaced gives a part of GenericNodeResources and whom it replaces.
func (r *random) replaced(weights list) (part object, ref reference) {
	of := func(portion, values, prefer string) object {
		return object{portion: object{"values": values, "prefer": prefer}}
	}
	strategy := func(name string) (object, object) {
		s := object{"type": name, "resources": weights}
		return s, object{"scoringStrategy": s}
	}
	const ratio, absolute = "RatioToAllocatable", "AbsoluteValue"
	switch r.IntN(6) {
	case 0:
		_, args := strategy(leastAllocated)
		return of("left", ratio, "Most"), reference{inKube, fit, args}
	case 1:
		_, args := strategy(mostAllocated)
		return of("allocated", ratio, "Most"), reference{inKube, fit, args}
	case 2:
		s, args := strategy(requestedToCapacityRatio)
		shape := r.shape()
		s["requestedToCapacityRatio"] = object{"shape": shape}
		part = of("allocated", ratio, "Most")
		part["allocated"].(object)["shape"] = shape
		return part, reference{inKube, fit, args}
	case 3:
		weights[0].(object)["name"] = "cpu" // the pod asks for some of it: it is scored
		unweighted := list{}
		for _, w := range weights {
			unweighted = append(unweighted, object{"name": w.(object)["name"], "weight": 1})
		}
		return of("allocated", ratio, "MostBalanced"),
			reference{inPlugins, balanced, object{"resources": unweighted}}
	}
	mode := pick(r, "Most", "Least")
	return of("allocatable", absolute, mode),
		reference{inPlugins, allocatable, object{"mode": mode, "resources": weights}}
}

// asksForAll has each container ask for some cpu and memory: NodeResourcesBalancedAllocation counts
// nothing for one that does not, the part of GenericNodeResources that replaces it 100m and 200Mi.
func (q *question) asksForAll(r *random) {
	fill := func(list []container) {
		for i := range list {
			c := &list[i]
			if c.Resources == nil {
				c.Resources = &resources{}
			}
			if c.Resources.Requests == nil {
				c.Resources.Requests = amounts{}
			}
			for _, name := range []string{"cpu", "memory"} {
				if c.Resources.Requests[name] == nil {
					c.Resources.Requests[name] = r.amountOf(name, kilo)
				}
			}
		}
	}
	each := func(p *pod) { fill(p.Spec.InitContainers); fill(p.Spec.Containers) }
	each(&q.Pod)
	q.Pod.Spec.Containers[0].Resources.Requests["cpu"] = "1" // and not 0 in all
	for i := range q.Nodes {
		for j := range q.Nodes[i].Pods {
			q.Nodes[i].Pods[j].Spec.Resources = nil
			each(&q.Nodes[i].Pods[j])
		}
	}
}
