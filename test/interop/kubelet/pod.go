package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// What a question tells of a pod: the part of v1.Pod that decides.
type pod struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		UID       string `json:"uid"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []podContainer `json:"initContainers,omitempty"`
		Containers     []podContainer `json:"containers"`
		Resources      *amounts       `json:"resources,omitempty"`
	} `json:"spec"`
}

type podContainer struct {
	Name          string  `json:"name"`
	Resources     amounts `json:"resources"`
	RestartPolicy string  `json:"restartPolicy,omitempty"`
}

type amounts struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

func (p *pod) kubernetes() *v1.Pod {
	var k v1.Pod
	if err := json.Unmarshal(encode(p), &k); err != nil {
		panic(err)
	}
	return &k
}

// containers in the order in which they are admitted.
func containers(p *v1.Pod) []*v1.Container {
	var all []*v1.Container
	for i := range p.Spec.InitContainers {
		all = append(all, &p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		all = append(all, &p.Spec.Containers[i])
	}
	return all
}

// activePods are the pods that the managers believe to be there.
type activePods struct{ pods []*v1.Pod }

func (a *activePods) list() []*v1.Pod { return a.pods }

func (a *activePods) add(p *v1.Pod) { a.pods = append(a.pods, p) }

func (a *activePods) remove(uid string) {
	a.pods = slices.DeleteFunc(a.pods, func(p *v1.Pod) bool { return string(p.UID) == uid })
}

func (a *activePods) get(uid string) *v1.Pod {
	for _, p := range a.pods {
		if string(p.UID) == uid {
			return p
		}
	}
	return nil
}

// nobody asks for nothing: to make the managers collect what inactive pods hold.
func nobody() *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "nothing"}}}}
}

// demand bounds what random pods ask for.
type demand struct {
	cpus      int               // of the largest node
	memory    uint64            // of the largest node
	nodes     int               // that have memory
	pages     map[string]uint64 // hugepage type -> page size
	devices   map[string]int    // resource -> how many there are
	podLevels int               // percent of pods with pod-level resources
}

const mebi = 1 << 20

func (d *demand) memoryAmount(r *random) string {
	node := d.memory / mebi
	amount := node / uint64(pick(r, 256, 64, 16, 4, 2, 1))
	if r.chance(15) {
		amount = node * uint64(r.between(1, d.nodes+1)) * uint64(pick(r, 3, 4, 5)) / 4
	}
	return strconv.FormatUint((amount+uint64(r.IntN(64))+1)*mebi, 10)
}

func (d *demand) pagesAmount(r *random, page uint64) string {
	most := max(1, int(d.memory/page)/8)
	return strconv.FormatUint(page*uint64(r.between(1, pick(r, 1, most, most*d.nodes))), 10)
}

func (d *demand) cpuAmount(r *random) string {
	switch {
	case r.chance(10):
		return pick(r, "500m", "1500m", "100m")
	case r.chance(15):
		return strconv.Itoa(r.between(1, max(1, d.cpus*2)))
	default:
		return strconv.Itoa(r.between(1, min(6, max(1, d.cpus))))
	}
}

func (d *demand) container(r *random, name string, pages bool) podContainer {
	all := map[string]string{"cpu": d.cpuAmount(r), "memory": d.memoryAmount(r)}
	for _, name := range sortedKeys(d.pages) {
		if pages && r.chance(50) {
			all[name] = d.pagesAmount(r, d.pages[name])
		}
	}
	for _, name := range sortedKeys(d.devices) {
		if r.chance(35) {
			all[name] = strconv.Itoa(r.between(1, max(1, pick(r, 1, 2, d.devices[name]))))
		}
	}
	return podContainer{Name: name, Resources: amounts{all, all}}
}

// burstable makes the containers ask for less CPU than they may have.
func burstable(all []podContainer) {
	for i := range all {
		requests := map[string]string{}
		for name, amount := range all[i].Resources.Requests {
			requests[name] = amount
		}
		requests["cpu"] = "100m"
		all[i].Resources.Requests = requests
	}
}

func (d *demand) pod(r *random, number int) *pod {
	p := &pod{}
	p.Metadata.Name = fmt.Sprintf("p%02d", number)
	p.Metadata.Namespace, p.Metadata.UID = "default", p.Metadata.Name
	pages := len(d.pages) > 0 && r.chance(40)
	if r.chance(35) {
		for i := range r.between(1, 3) {
			c := d.container(r, fmt.Sprintf("i%d", i), pages)
			if r.chance(35) {
				c.RestartPolicy = "Always"
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
	for i := range pick(r, 1, 1, 2, 3) {
		p.Spec.Containers = append(p.Spec.Containers, d.container(r, fmt.Sprintf("c%d", i), pages))
	}
	if r.chance(12) {
		burstable(p.Spec.InitContainers)
		burstable(p.Spec.Containers)
	}
	if r.chance(d.podLevels) {
		all := map[string]string{"cpu": "64", "memory": strconv.FormatUint(d.memory*uint64(d.nodes), 10)}
		p.Spec.Resources = &amounts{all, all}
	}
	return p
}
