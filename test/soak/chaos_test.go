package interop

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// What goes wrong on a node.

// faults are the points of src/io/fault.h at which a debug build can die.
var faults = []string{"frame-read", "to-decide", "to-append", "half-line", "appended", "committed", "encoded",
	"queued", "half-answer", "answered"}

// outage: numafitd ends, things go on, it comes back.
func (s *soak) outage() {
	if s.weigh(); s.calm() {
		return
	}
	switch s.IntN(4) {
	case 0:
		s.report.count("stop")
		s.d.terminate()
	case 1: // amid something
		s.report.count("kill")
		s.d.asked = true
		l := s.d.life
		time.AfterFunc(time.Duration(s.IntN(4000))*time.Microsecond, l.kill)
		for range 3 {
			s.churn()
		}
	default:
		s.report.count("kill")
		s.d.asked = true
		s.d.kill()
	}
	<-s.d.ended
	s.comeBack()
}

// died: the process has ended at a fault point.
func (s *soak) died() {
	if !s.d.asked {
		s.violated("numafitd ended by itself: %v", s.d.err)
		return
	}
	s.report.count("death at a fault point")
	s.comeBack()
}

// comeBack is an outage's second half.
func (s *soak) comeBack() {
	s.o.remember()
	for range s.IntN(6) {
		s.churn()
		s.report.count("event while away")
		s.o.look()
	}
	if s.chance(6) && !s.without("journal lost") && !slices.ContainsFunc(s.runtime.running(), func(c *container) bool { return c.stale }) {
		s.report.note("the journal is lost")
		s.report.count("journal lost")
		s.o.lost = true
		os.RemoveAll(s.d.path("run"))
	}
	if s.chance(4) {
		s.changeForRestart()
	}
	if s.chance(8) {
		s.hotplug()
	}
	fault := ""
	if s.chance(3) && !s.calm() {
		fault = fmt.Sprintf("%s:%d", faults[s.IntN(len(faults))], 1+s.IntN(40))
	}
	s.startDaemon(fault)
}

func (s *soak) startDaemon(fault string) {
	if s.without("start on a full disk") {
		s.machine.empty()
	}
	for {
		s.report.note(fmt.Sprintf("numafitd starts, fault %q", fault))
		s.report.count("start")
		s.d.start(fault)
		if s.d.join() {
			break
		}
		if s.report.failed() {
			return
		}
		s.report.count("death at a fault point")
		fault = ""
	}
	if _, err := os.Stat(s.d.path("run/journal.damaged")); err == nil {
		s.violated("the journal counts as damaged, and nobody has damaged it")
	}
	s.o.synchronized()
	s.o.settled()
}

// fullDisk: what cannot be recorded is refused, and nothing is lost.
func (s *soak) fullDisk() {
	if s.machine.root == "" {
		return
	}
	s.machine.fill()
	for range 2 + s.IntN(8) {
		s.churn()
		s.rest()
	}
	if s.chance(3) {
		s.outage()
	}
	s.machine.empty()
	s.rest()
	s.o.settled()
}

// hotplug: some CPUs go, or memory does, or all come back.
func (s *soak) hotplug() {
	m := s.machine
	if m.root == "" {
		return
	}
	before := m.online
	switch s.IntN(4) {
	case 0:
		m.online = everyCPU
		for node := range nrNodes {
			m.memory[node], m.pages[node] = memoryMiB, pages1Gi
		}
	case 1:
		node := s.IntN(nrNodes)
		m.memory[node], m.pages[node] = memoryMiB/(1+s.IntN(3)), s.IntN(pages1Gi+1)
	default: // without a reserved one numafitd does not start, as a kubelet does not
		reserved := mustSet(strings.Trim(s.d.config["reservedSystemCPUs"], `"`))
		for range 1 + s.IntN(12) {
			gone := s.IntN(nrCPUs)
			m.online = m.online.minus(like(func(c int) bool { return c == gone }).minus(reserved))
		}
	}
	s.report.note(fmt.Sprintf("online: %s, memory: %v MiB, huge pages: %v", m.online, m.memory, m.pages))
	s.o.cameOrWent(before.minus(m.online).or(m.online.minus(before)))
	m.write()
	if s.d.inChain() {
		for range s.IntN(3) {
			s.churn()
		}
		s.o.settled()
	}
}

// restartRuntime: its process ends and another one comes; containers run on. Some of them end
// meanwhile, which nobody hears of.
func (s *soak) restartRuntime() {
	if s.calm() {
		return
	}
	s.o.remember()
	s.runtime.stop()
	s.d.joined = false
	if s.chance(3) && !s.without("stale reports") {
		s.report.count("runtime forgets updates")
		for _, c := range s.runtime.running() {
			c.stale = c.answered
		}
	}
	for range s.IntN(3) {
		if c := s.someContainer(); c != nil {
			s.runtime.forget(c)
		}
	}
	s.runtime.start()
	if !s.d.join() {
		if !s.report.failed() {
			s.died()
		}
		return
	}
	s.o.synchronized()
	s.o.settled()
}
