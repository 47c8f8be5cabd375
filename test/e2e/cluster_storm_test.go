package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"
)

// A storm of pods that come, run for a moment and go, more at a time than there is room for.

const (
	stormFill   = 2 // NUMA nodes that others have for themselves
	stormPods   = 200
	stormAlone  = 40 // of them, without numafit-extender
	stormAtOnce = 32 // that have not ended
	stormRunFor = "1"
	stormTurn   = 250 * time.Millisecond
)

// stormSizes are CPUs: no NUMA node has more than 16, most sizes leave a rest on it.
var stormSizes = []int64{3, 5, 6, 7, 9, 10, 11, 12}

// What became of a storm.
type stormed struct {
	pods, refused int // those that numafitd refused at least once
	refusals      int
	took          time.Duration
}

func (s stormed) String() string {
	return fmt.Sprintf("%d pods in %.0f s, %d of them refused by the node, %d refusals", s.pods, s.took.Seconds(), s.refused, s.refusals)
}

// stormPod says in the file /storm/lives when it begins and when it ends.
func stormPod(name string, cpus int64, folder string) []byte {
	w := want{name: "main", milli: cpus * 1000, memory: 16 * mi,
		args: []string{fmt.Sprintf("echo +%s >>/storm/lives; sleep %s; echo -%[1]s >>/storm/lives", name, stormRunFor)}}
	var p map[string]any
	if err := json.Unmarshal(manifest(name, guaranteed, nil, []want{w}), &p); err != nil {
		panic(err)
	}
	spec := member(p, "spec")
	spec["restartPolicy"] = "Never"
	spec["volumes"] = []any{map[string]any{"name": "storm", "hostPath": map[string]any{"path": folder}}}
	spec["containers"].([]any)[0].(map[string]any)["volumeMounts"] = []any{map[string]any{"name": "storm", "mountPath": "/storm"}}
	return toJSON(p)
}

// fill leaves the storm some of the NUMA nodes.
func (c *cluster) fill() {
	c.Helper()
	for i := range stormFill {
		c.runs(fmt.Sprint("fill-", i), guaranteed, want{name: "main", milli: madeCPUs / madeNodes * 1000, memory: 16 * mi})
	}
}

// storm runs that many pods, the first ones the same each time, and insists that all of them come
// to their end.
func (c *cluster) storm(name string, nr int) stormed {
	c.Helper()
	folder, random, began := c.path(name), rand.New(rand.NewPCG(1, 2)), time.Now()
	c.must(os.Mkdir(folder, 0o777))
	ids, created, ended, progress := map[string]string{}, 0, 0, began
	for len(ids) < nr {
		if time.Since(progress) > patience { // however long all of them take
			c.Fatalf("%d of %d pods have ended after %v, and none for %v: %+v", len(ids), nr, time.Since(began), patience, c.allPods())
		}
		alive := c.gather(name, ids)
		if len(ids) > ended {
			ended, progress = len(ids), time.Now()
		}
		for ; alive < stormAtOnce && created < nr; alive, created = alive+1, created+1 {
			pod := stormPod(fmt.Sprintf("%s-%d", name, created), stormSizes[random.IntN(len(stormSizes))], folder)
			if status := c.ask("POST", podsPath, pod, nil); status != http.StatusCreated {
				c.Fatalf("pod %d is not created: %d", created, status)
			}
		}
		c.checkOwners(c.status())
		time.Sleep(stormTurn)
	}
	s := stormed{pods: nr, took: time.Since(began)}
	s.refused, s.refusals = c.refusals(name)
	c.checkLives(folder, ids)
	return s
}

// gather takes those that have ended away, and notes the ids of their containers. It returns how
// many have not.
func (c *cluster) gather(name string, ids map[string]string) (alive int) {
	c.Helper()
	for _, p := range c.allPods() {
		switch pod := p.Metadata.Name; {
		case !strings.HasPrefix(pod, name+"-"):
		case p.Status.Phase == "Failed":
			c.Fatalf("pod %s: %s: %s", pod, p.Status.Reason, p.Status.Message)
		case p.Status.Phase != "Succeeded":
			alive++
		case ids[pod] == "":
			ids[pod] = strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://")
			c.ask("DELETE", podsPath+"/"+pod, nil, nil)
		}
	}
	return alive
}

// checkOwners insists that numafitd gives no CPU to two.
func (c *cluster) checkOwners(s status) {
	c.Helper()
	owner := map[int]string{}
	for _, h := range s.Containers {
		if !h.Exclusive {
			continue
		}
		for cpu := range c.set(h.CPUs) {
			if owner[cpu] != "" {
				c.Fatalf("CPU %d is %s's and %s's", cpu, owner[cpu], h.Pod)
			}
			owner[cpu] = h.Pod
		}
	}
}

// checkLives insists that no two of those that lived at the same time had a CPU in common, by what
// they say themselves and what runc was asked for.
func (c *cluster) checkLives(folder string, ids map[string]string) {
	c.Helper()
	owner, nrLines := map[int]string{}, 0
	for _, l := range strings.Fields(c.read(folder + "/lives")) {
		nrLines++
		name, begins := l[1:], l[0] == '+'
		for cpu := range c.set(c.askedFor(ids[name])[0].CPUs) {
			if begins && owner[cpu] != "" {
				c.Errorf("CPU %d is %s's and %s's", cpu, owner[cpu], name)
			}
			delete(owner, cpu)
			if begins {
				owner[cpu] = name
			}
		}
	}
	if nrLines != 2*len(ids) || len(owner) != 0 {
		c.Errorf("%d lines of %d lives, and %v live still", nrLines, len(ids), owner)
	}
}

// refusals are how many of the pods with that name the node refused, and how often.
func (c *cluster) refusals(name string) (pods, times int) {
	c.Helper()
	seen := map[string]bool{}
	for _, l := range strings.Split(c.daemonLog(), "\n") {
		_, pod, _ := strings.Cut(l, " pod="+name+"-")
		if pod == "" || !strings.Contains(l, "event=pod-refused") {
			continue
		}
		pod, _, _ = strings.Cut(pod, " ")
		times++
		seen[pod] = true
	}
	return len(seen), times
}
