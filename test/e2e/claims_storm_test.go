package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A storm of pods with claims and of plain pods with CPUs of their own, more at a time than come
// and go unnoticed, while the kubelet and numafitd are killed.

const (
	claimStormAtOnce  = 16                     // pods that are there
	claimStormTurn    = 200 * time.Millisecond // between two looks
	claimStormRunFor  = 2 * time.Second        // then a pod is deleted
	claimStormPatient = 5 * time.Minute        // the kubelet tries a failed Prepare again after 78 s
)

// claimStorm is what is left to do, and what has been done.
type claimStorm struct {
	*cluster
	gpus           *draPlugin
	nr, kills      int // of pods, and of kills
	created        int
	killed         int
	since          map[string]time.Time // when a pod was first seen to run; zero: it is being deleted
	done           int
	progress       time.Time
	killsNumafitd  int
	killsOfKubelet int
}

// stormsWithClaims: of three pods two have claims.
func (c *cluster) stormsWithClaims(gpus *draPlugin) {
	c.Helper()
	s := &claimStorm{cluster: c, gpus: gpus, nr: 30, kills: 3, since: map[string]time.Time{}, progress: time.Now()}
	if os.Getenv("DRA_FULL") != "" {
		s.nr, s.kills = 300, 45 // of both two of three
	}
	for i := range claimStormSizes {
		c.createTemplate(fmt.Sprint("storm-", i), nil, asksFor(podClaim, numaClass, cpusOfTemplate(i)))
	}
	c.runs("pool", burstable, batch...)
	began := time.Now()
	for s.done < s.nr {
		if time.Since(s.progress) > claimStormPatient {
			c.Fatalf("%d of %d pods have run, and no other for %v: %+v", s.done, s.nr, claimStormPatient, c.allPods())
		}
		s.turn()
		time.Sleep(claimStormTurn)
	}
	l := c.checkNothingIsShared()
	c.Logf("figure: %d pods, two of three with claims, in %.0f s; the kubelet was killed %d times, numafitd %d times; %d containers were created while numafitd was away",
		s.nr, time.Since(began).Seconds(), s.killsOfKubelet, s.killsNumafitd, l.late)
}

func (s *claimStorm) turn() {
	s.Helper()
	there := s.gather()
	for ; there < claimStormAtOnce && s.created < s.nr; there++ {
		s.createNext()
	}
	if s.killed < s.kills && s.created >= (s.killed+1)*s.nr/(s.kills+1) {
		s.killNext()
	}
}

// gather deletes pods that have run for a while; it returns how many pods are there.
func (s *claimStorm) gather() (there int) {
	s.Helper()
	for _, p := range s.allPods() {
		name := p.Metadata.Name
		if name == "pool" {
			continue
		}
		there++
		since, seen := s.since[name]
		switch {
		case seen && since.IsZero(): // it is being deleted
		case p.Status.Phase == "Failed":
			s.Fatalf("pod %s: %s: %s", name, p.Status.Reason, p.Status.Message)
		case !seen && p.Status.Phase == "Running" && p.ready():
			s.since[name] = time.Now()
			s.done++
			s.progress = time.Now()
		case seen && time.Since(since) > claimStormRunFor:
			s.awaitPlaced(name)
			s.since[name] = time.Time{}
			s.ask("DELETE", podsPath+"/"+name, nil, nil)
		}
	}
	return there
}

const claimStormSizes = 3

func cpusOfTemplate(i int) int { return 2 + 3*i }
func templateOf(i int) int     { return i / 3 % claimStormSizes }
func cpusOfPlain(i int) int    { return 1 + i%5 }

func (s *claimStorm) createNext() {
	s.Helper()
	if i := s.created; i%3 == 2 {
		s.create(fmt.Sprint("plain-storm-", i), guaranteed, want{name: "main", milli: int64(cpusOfPlain(i)) * 1000, memory: 16 * mi})
	} else {
		s.claims(fmt.Sprint("claim-storm-", i), fmt.Sprint("storm-", templateOf(i)))
	}
	s.created++
}

// awaitPlaced waits until the pod has as many CPUs as it asked for, those of its claim on the NUMA node that the
// scheduler chose: at once, unless it was created while numafitd was away.
func (s *claimStorm) awaitPlaced(name string) {
	s.Helper()
	i, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	s.must(err)
	nr, numaNode := cpusOfPlain(i), -1
	if strings.HasPrefix(name, "claim-") {
		nr, numaNode = cpusOfTemplate(templateOf(i)), s.share(s.claimOf(name), podClaim).numaNode
	}
	s.awaitPlacedOn(name, nr, numaNode)
}

// awaitPlacedOn waits until the pod has so many CPUs of that NUMA node, or of any if that is below 0.
func (c *cluster) awaitPlacedOn(name string, nr, numaNode int) {
	c.Helper()
	c.awaitOrder(name+" to be placed", func() string {
		for _, one := range c.lives().of(name, "main") {
			if one.isOnNode(nr, numaNode) || (numaNode < 0 && len(one.of) == nr) {
				return ""
			}
		}
		return fmt.Sprintf("%d CPUs of NUMA node %d: %v", nr, numaNode, c.lives().of(name, "main"))
	})
}

// killNext kills the kubelet, numafitd, or both.
func (s *claimStorm) killNext() {
	s.Helper()
	which := s.killed % 3
	s.killed++
	if which != 0 {
		s.killNumafitd()
	}
	if which != 1 {
		s.killsOfKubelet++
		s.cluster.killedKubelet = true
		s.kubeletProcess.kill()
		s.startKubelet()
	}
}

// killNumafitd does not wait for the next one, only for one that is there to be killed.
func (s *claimStorm) killNumafitd() {
	s.Helper()
	s.killsNumafitd++
	id := ""
	s.await("numafitd to run", func() bool {
		s.look()
		for name, p := range s.pods {
			if strings.HasPrefix(name, "numafitd-") {
				id = p.containers["numafitd"]
			}
		}
		return id != ""
	})
	s.must(syscall.Kill(s.pid(id), syscall.SIGKILL))
}
