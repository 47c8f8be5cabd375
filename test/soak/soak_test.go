// The soak: numafitd beside everything that happens on a node, at random and from a seed.
package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soak is what all actors share. Events happen one after the other, on one goroutine.
type soak struct {
	*testing.T
	*rand.Rand // of this event: the same for the same seed and number, whatever came before
	seed       uint64
	nr         int // of the event
	dir        string
	machine    *hardware
	runtime    *runtimeSide
	kubelet    *kubeletSide
	d          *daemon
	o          *oracle
	report     *report
	names      int // given to pods and containers
}

// events are all that can happen, and how often.
var events = []struct {
	name   string
	weight int
	do     func(*soak)
}{
	{"pod starts", 260, (*soak).startPod},
	{"pod ends", 210, (*soak).endSome},
	{"container ends", 60, (*soak).endContainer},
	{"container is restarted", 60, (*soak).restartContainer},
	{"resize", 100, (*soak).resize},
	{"foreign update", 20, (*soak).foreignUpdate},
	{"outage", 25, (*soak).outage},
	{"runtime restarts", 6, (*soak).restartRuntime},
	{"reload", 15, (*soak).reload},
	{"reload, wrong", 4, (*soak).reloadBroken},
	{"pod that the kubelet knows", 60, (*soak).startKnownPod},
	{"forged annotation", 10, (*soak).forge},
	{"kubelet restarts", 3, (*soak).restartKubelet},
	{"full disk", 6, (*soak).fullDisk},
	{"hotplug", 12, (*soak).hotplug},
	{"everything is removed", 2, (*soak).drain},
}

const calmEvery = 800 // events

func (s *soak) must(err error) {
	if err != nil {
		s.T.Fatal(err)
	}
}

func (s *soak) clock() int64 { return time.Now().UnixNano() }

// chance is true once in n.
func (s *soak) chance(n int) bool { return s.IntN(n) == 0 }

func number(name string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// without: the user does not want that.
func (s *soak) without(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("WITHOUT"), ","), what)
}

func newSoak(t *testing.T) *soak {
	dir, err := os.MkdirTemp("", "soak")
	s := &soak{T: t, dir: dir, seed: number("SEED", uint64(time.Now().UnixNano()%1e9)),
		report: &report{started: time.Now(), counts: map[string]int{}}}
	s.must(err)
	s.o = &oracle{soak: s}
	s.runtime = newRuntimeSide(s)
	s.machine = newHardware(s)
	s.kubelet = newKubeletSide(s)
	s.d = newDaemon(s, "nodeName=soak", "machine="+s.machine.name(), "sweepInterval=100ms", "nri.socketPath="+filepath.Join(dir, "nri.sock"),
		"runDirectory="+filepath.Join(dir, "run"), "metrics.address=")
	s.d.fixed = append(s.d.fixed, s.kubelet.settings()...)
	s.d.config = map[string]string{"reservedSystemCPUs": `"0,64"`}
	return s
}

// rest is where nothing is under way: what has died comes back, and the oracle looks.
func (s *soak) rest() {
	s.o.look()
	for s.d.hasEnded() && !s.report.failed() {
		s.died()
		s.o.look()
	}
}

// calm is when nobody lets numafitd end, so that what grows can be seen to.
func (s *soak) calm() bool { return s.nr%calmEvery >= calmEvery/2 }

func (s *soak) one() {
	s.nr++
	s.Rand = rand.New(rand.NewPCG(s.seed, uint64(s.nr)))
	sum := 0
	for _, e := range events {
		sum += e.weight
	}
	at := s.IntN(sum)
	for _, e := range events {
		if at -= e.weight; at < 0 && s.without(e.name) {
			break
		} else if at < 0 {
			s.report.note(fmt.Sprintf("-- event %d: %s", s.nr, e.name))
			s.report.count(e.name)
			e.do(s)
			break
		}
	}
	s.rest()
	if s.nr%20 == 0 {
		s.weigh()
		s.o.settled()
		s.rest()
	}
}

func TestSoak(t *testing.T) {
	s := newSoak(t)
	defer func() { // also when something here went wrong
		if s.d.life != nil && !s.d.hasEnded() {
			s.d.kill()
			<-s.d.ended
		}
		code := s.print()
		s.kubelet.stop() // it writes to its directory as long as it runs
		s.machine.remove()
		os.RemoveAll(s.dir)
		if !t.Failed() {
			os.Exit(code)
		}
	}()
	minutes, limit := number("MINUTES", 10), int(number("EVENTS", 1<<40))
	fmt.Printf("seed %d, %d minutes\n", s.seed, minutes)
	s.Rand = rand.New(rand.NewPCG(s.seed, 0))
	s.d.writeConfig(yaml(s.d.config))
	s.runtime.start()
	s.d.start("")
	if !s.d.join() {
		return
	}
	s.report.start = s.d.first
	s.o.synchronized()
	end := time.Now().Add(time.Duration(minutes) * time.Minute)
	for s.nr < limit && time.Now().Before(end) && !s.report.failed() {
		s.one()
		s.progress()
	}
	if !s.report.failed() {
		s.drain()
		s.weigh()
	}
}
