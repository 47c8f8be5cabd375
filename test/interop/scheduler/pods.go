package main

import (
	"fmt"
	"maps"
	"slices"
)

// scale is what a pod is measured against: amounts of a node, or of a zone.
type scale map[string]int64

var (
	devices = []string{"example.com/gpu", "amd.com/gpu", "vendor.com/nic1", "vendor/nic2", "intel.com/qat"}
	pages   = map[string]int64{hugePages + "2Mi": 2 * mebi, hugePages + "1Gi": gibi}
	// Names that the API knows, but hardly anybody asks for.
	oddities = []string{"storage", "attachable-volumes-aws-ebs", "example.kubernetes.io/thing",
		"requests.example.com/gpu", "plain", "kubernetes.io/batch-cpu"}
)

const (
	guaranteed = "Guaranteed"
	burstable  = "Burstable"
	bestEffort = "BestEffort"
)

// request is how much of what the scale has, now and then more, a container wants.
func (r *random) request(s scale, name string) int64 {
	all := max(s[name], 1)
	if r.chance(1) {
		return 0
	}
	share := pick(r, all/8, all/4, all/4, all/4, all/2, all/2, all, all*2)
	if unitOf(name) == unitPieces {
		return r.between64(1, max(1, share))
	}
	n := r.between64(1, max(1, share))
	if size := pages[name]; size > 0 {
		return max(1, n/size) * size
	}
	if name == "cpu" {
		if r.chance(75) {
			return max(1, (n+kilo/2)/kilo) * kilo
		}
		return pick(r, n, max(1, n/50)*50, kilo/4, kilo/2, kilo*3/2)
	}
	if r.chance(85) {
		return max(1, n/mebi) * mebi
	}
	return pick(r, n, max(1, n/mega)*mega)
}

// resourcesOf a container of a pod of that class.
func (r *random) resourcesOf(class string, s scale) *resources {
	var out resources
	out.Requests, out.Limits = amounts{}, amounts{}
	ask := func(name string, limited bool) {
		n := r.request(s, name)
		out.Requests[name] = r.amountOf(name, n)
		if limited {
			out.Limits[name] = r.amountOf(name, n)
		} else if r.chance(30) {
			out.Limits[name] = r.amountOf(name, n*2)
		}
	}
	for _, name := range []string{"cpu", "memory"} {
		if class == guaranteed || class == burstable && r.chance(60) {
			ask(name, class == guaranteed)
		} else if class == burstable && r.chance(10) {
			out.Limits[name] = r.amountOf(name, r.request(s, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains([]string{"cpu", "memory", "pods"}, name) && r.chance(14) {
			ask(name, r.chance(80))
		}
	}
	if r.chance(2) {
		ask(pick(r, devices...), true)
	}
	if r.chance(1) {
		ask(pick(r, oddities...), true)
	}
	if len(out.Requests)+len(out.Limits) == 0 && r.chance(80) {
		return nil
	}
	return &out
}

func (r *random) containers(prefix, class string, s scale, count int) (list []container) {
	for i := range count {
		list = append(list, container{Name: fmt.Sprint(prefix, i), Resources: r.resourcesOf(class, s)})
	}
	return list
}

func (r *random) pod(name string, s scale) (p pod) {
	class := guaranteed
	if r.chance(25) {
		class = pick(r, burstable, burstable, burstable, bestEffort)
	}
	p.Metadata = metadata{Name: name, Namespace: "default", UID: "uid-" + name}
	p.Spec.Containers = r.containers("c", class, s, pick(r, 1, 1, 1, 2, 2, 3, 4))
	if r.chance(35) {
		p.Spec.InitContainers = r.containers("i", class, s, r.between(1, 3))
		for i := range p.Spec.InitContainers {
			if r.chance(35) {
				p.Spec.InitContainers[i].RestartPolicy = "Always"
			}
		}
	}
	if r.chance(15) {
		p.Spec.Overhead = amounts{"cpu": "250m", "memory": "120Mi"}
	}
	if r.chance(4) {
		p.Spec.Resources = r.resourcesOf(pick(r, guaranteed, burstable), s)
	}
	if r.chance(4) {
		p.Status = &podStatus{QOSClass: pick(r, guaranteed, guaranteed, burstable, bestEffort, class, "")}
	}
	return p
}

func (r *random) pods(prefix string, s scale, count int) (list []pod) {
	for i := range count {
		list = append(list, r.pod(fmt.Sprint(prefix, i), s))
	}
	return list
}
