package interop

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The oracle knows only what the runtime was sent: cpusets in answers and updates. Whether a cpuset
// is a container's own says the annotation that came with the answer to its create; of a container
// that was placed later, and has none, `numafit status` says so.

// A window is a stretch of time in which a container may run where it should not, as nobody could
// have updated the runtime otherwise. Each has an end; from there on the rules hold at once.
type window struct {
	kind   windowKind
	opened int // the event
}

type windowKind int

const (
	// nobody answered as it was created or changed; ends with the answer to the next Synchronize
	windowAway windowKind = iota
	// created while numafitd was away, and onAdopt is leave; ends with the container, or with the
	// first cpuset that numafitd gives it
	windowLeft
	// CPUs that it has went offline, or came back; ends when numafitd has seen it and has updated all
	windowHotplug
)

var windowNames = [...]string{"nobody answered", "left as it runs", "CPUs come and go"}

type oracle struct {
	*soak
	exclusive map[string]holding // what status said last, by container
	settings  map[string]string
	room      [nrNodes]uint64   // bytes of memory that containers may have there, as status said last
	most      [nrNodes]uint64   // and the most that it ever said
	kept      map[string]cpuSet // the containers' own CPUs as numafitd ended
	changing  bool              // the machine is, and numafitd may not have seen it yet
	lost      bool              // the journal is, since numafitd ended
}

func (s *soak) open(c *container, kind windowKind) { c.window = &window{kind, s.nr} }

// unanswered: nobody answered a request that the oracle expects an answer to.
func (r *runtimeSide) unanswered(c *container, what string) {
	if c.window != nil && c.window.kind == windowLeft {
		return
	}
	if r.d.inChain() && !r.d.asked {
		r.violated("%s of %s is answered without a cpuset", what, c)
	}
	r.open(c, windowAway)
}

// announced is what the answer to the container's create said.
func (c *container) announced() (p struct{ Exclusive bool }) {
	_ = json.Unmarshal([]byte(c.Annotations["numafit.io/placement"]), &p)
	return p
}

// owns: the CPUs it runs on are to be nobody else's.
func (o *oracle) owns(c *container) bool {
	if c.window != nil || c.whole() == 0 {
		return false
	}
	return o.exclusive[c.Id].Exclusive || (c.granted && c.cpus().count() == c.whole())
}

// judgeCreated looks at the answer to a create alone.
func (r *runtimeSide) judgeCreated(c *container) {
	if !c.answered {
		return
	}
	own := c.whole() > 0 && r.o.settings["cpuManagerPolicy"] == "static"
	if exclusive := c.announced().Exclusive; exclusive != own {
		r.violated("%s is created with exclusive %v", c, exclusive)
	}
	if got := c.cpus().count(); own && got != c.whole() {
		r.violated("%s gets %d CPUs: %s", c, got, c.cpus())
	}
	c.granted, c.changedAway = own && !r.o.changing, r.o.changing
	if c.want.qos == "" && r.o.settings["memoryManagerPolicy"] == "Static" && !r.o.changing {
		c.booked = true
		r.judgeMemory(c)
	}
}

// judgeMemory: the nodes that a new container's memory is on have as much as all ask for whose
// memory can be nowhere else. What was resized or adopted since does not count, nor does what was
// there before memory went.
func (r *runtimeSide) judgeMemory(c *container) {
	nodes := mustSet(c.Linux.Resources.Cpu.Mems)
	var asked, room uint64
	for _, node := range nodes.members() {
		room += r.o.room[node]
		if r.machine.memory[node] != memoryMiB || r.o.room[node] != r.o.most[node] {
			return // some is gone, or is back and status has not said so yet
		}
	}
	for _, other := range r.running() {
		if other.booked && !other.changedAway && mustSet(other.Linux.Resources.Cpu.Mems).minus(nodes).empty() {
			asked += uint64(other.want.memory)
		}
	}
	if nodes.empty() || asked > room {
		r.violated("%s has its memory on nodes %q, where %d bytes are asked for of %d", c, nodes, asked, room)
	}
}

// judgeUpdated: whether its CPUs are its own still says status. It may have to do with fewer than it
// asks for where it had fewer already, or when the machine changes meanwhile.
func (r *runtimeSide) judgeUpdated(c *container, updated bool) {
	static := r.o.settings["cpuManagerPolicy"] == "static"
	c.granted = c.granted && updated && c.whole() > 0 && static && !r.o.changing
	c.booked = false
	c.changedAway = !updated || r.o.changing || (c.changedAway && c.cpus().count() != c.whole())
	delete(r.o.exclusive, c.Id)
}

// unheard: numafitd ended amid an update, and may have decided it. The runtime has not heard, and
// reports the container as before; where that is as it was created numafitd, which can read no
// cgroup here, takes it for a runtime that has forgotten the update, and goes by its journal.
func (r *runtimeSide) unheard(c *container) { c.granted, c.changedAway = false, true }

// look checks what must hold after each event, with no event under way.
func (o *oracle) look() {
	var s nodeStatus
	if o.d.inChain() {
		var err error
		if s, err = o.d.ask(); err == nil {
			o.learn(&s)
		} else if !o.d.isEnding() {
			o.violated("numafitd does not answer: %v", err)
		}
	}
	o.runtime.lock.Lock()
	defer o.runtime.lock.Unlock()
	owner := map[int]*container{}
	for _, c := range o.runtime.running() {
		if !o.owns(c) {
			continue
		}
		for _, cpu := range c.cpus().members() {
			if other := owner[cpu]; other != nil {
				o.violated("CPU %d is given to %s (%s) and to %s (%s)", cpu, other, other.cpus(), c, c.cpus())
				return
			}
			owner[cpu] = c
		}
	}
	for _, c := range o.runtime.running() {
		if c.window != nil || o.owns(c) {
			continue
		}
		for _, cpu := range c.cpus().members() {
			if other := owner[cpu]; other != nil && other != c {
				o.violated("%s runs on %s, of which %s has CPU %d for itself (%s)", c, c.cpus(), other, cpu, other.cpus())
				return
			}
		}
	}
}

func (o *oracle) learn(s *nodeStatus) {
	o.exclusive, o.settings = map[string]holding{}, s.Settings
	for _, h := range s.Containers {
		o.exclusive[h.ID] = h
	}
	for _, n := range s.Nodes {
		for _, m := range n.Memory {
			if m.Type == "memory" {
				o.room[n.ID] = m.Allocatable
				o.most[n.ID] = max(o.most[n.ID], m.Allocatable)
			}
		}
	}
}

// settled waits until what is in force is what numafitd says it has placed, everywhere: updates
// may be on their way until then. It says nothing of double use, which look() never excuses.
func (o *oracle) settled() {
	if !o.d.inChain() {
		return
	}
	settled := o.d.await("what is in force is not what numafitd has", func(s *nodeStatus) string {
		o.learn(s)
		o.runtime.lock.Lock()
		defer o.runtime.lock.Unlock()
		if why := o.sees(s); why != "" {
			return why
		}
		for _, c := range o.runtime.running() {
			if why := o.differs(c); why != "" {
				return why
			}
		}
		return ""
	})
	if !settled {
		return
	}
	o.runtime.lock.Lock()
	defer o.runtime.lock.Unlock()
	for _, c := range o.runtime.running() {
		if c.window != nil && c.window.kind == windowHotplug {
			c.window = nil
		}
	}
	o.changing = false
}

// sees: numafitd knows the machine as it is.
func (o *oracle) sees(s *nodeStatus) string {
	if o.machine.root == "" {
		return ""
	}
	for _, n := range s.Nodes {
		if want := onNode(n.ID).and(o.machine.online).count(); n.CPUs != want {
			return fmt.Sprintf("node %d has %d CPUs online, and numafitd thinks %d", n.ID, want, n.CPUs)
		}
		for _, m := range n.Memory {
			if low, high := o.machine.bytes(n.ID, m.Type); m.Allocatable < low || m.Allocatable > high {
				return fmt.Sprintf("node %d has %d to %d bytes of %s, and numafitd thinks %d", n.ID, low, high, m.Type, m.Allocatable)
			}
		}
	}
	return ""
}

// cameOrWent opens the window of those that run on CPUs that have gone or come. Those that lose
// some of their own may have to do with fewer from then on, and all may move.
func (o *oracle) cameOrWent(changed cpuSet) {
	o.runtime.lock.Lock()
	defer o.runtime.lock.Unlock()
	o.changing = true
	for _, c := range o.runtime.running() {
		if c.whole() > 0 && (c.changedAway || !c.cpus().and(changed).empty()) {
			c.granted, c.changedAway = false, true
			delete(o.kept, c.Id)
		}
		if c.window == nil && c.hasCpuset {
			o.open(c, windowHotplug)
		}
	}
}

func (o *oracle) differs(c *container) string {
	h, known := o.exclusive[c.Id]
	is := c.Linux.Resources.Cpu
	switch {
	case c.window != nil && c.window.kind == windowLeft:
		return ""
	case !known:
		return fmt.Sprintf("numafitd does not know %s", c)
	case is.Cpus != h.CPUs || is.Mems != h.Mems:
		return fmt.Sprintf("%s has cpus %q mems %q, and numafitd thinks %q and %q", c, is.Cpus, is.Mems, h.CPUs, h.Mems)
	case h.Exclusive && !c.cpus().minus(o.machine.online).empty():
		return fmt.Sprintf("%s has CPUs that are offline: %s", c, is.Cpus)
	case h.Exclusive && !c.cpus().and(o.reserved()).empty():
		return fmt.Sprintf("%s has reserved CPUs for itself: %s", c, is.Cpus)
	case c.granted && !h.Exclusive:
		return fmt.Sprintf("%s has lost its own CPUs, and has %s", c, is.Cpus)
	case h.Exclusive && c.cpus().count() != c.whole() && !c.changedAway:
		return fmt.Sprintf("%s has %d CPUs of its own: %s", c, c.cpus().count(), is.Cpus)
	}
	return ""
}

// reserved are the CPUs that nobody gets for itself.
func (o *oracle) reserved() cpuSet { return mustSet(o.settings["reservedSystemCPUs"]) }

// remember notes what may not get lost while numafitd is away.
func (o *oracle) remember() {
	o.runtime.lock.Lock()
	defer o.runtime.lock.Unlock()
	o.kept = map[string]cpuSet{}
	for _, c := range o.runtime.running() {
		if o.owns(c) {
			o.kept[c.Id] = c.cpus()
		}
	}
}

// synchronized is called when a Synchronize was answered. It ends windows, and what was
// remembered must be there.
func (o *oracle) synchronized() {
	if s, err := o.d.ask(); err == nil {
		o.learn(&s)
	}
	o.runtime.lock.Lock()
	defer o.runtime.lock.Unlock()
	for _, c := range o.runtime.running() {
		if was, kept := o.kept[c.Id]; kept && !was.and(o.reserved()).empty() { // by other settings
			c.granted, c.changedAway = false, true
		}
		away := c.window != nil && c.window.kind == windowAway
		switch was, kept := o.kept[c.Id]; {
		case away && !c.hasCpuset && o.settings["onAdopt"] == "leave":
			o.open(c, windowLeft)
		case away:
			c.window = nil
			if c.Linux.Resources.Cpu.Cpus == "" {
				o.violated("%s ran already, and Synchronize's answer gives it no cpuset", c)
			}
		case kept && !c.changedAway && c.cpus() != was && !o.unknowable(c):
			o.violated("%s had %s as numafitd ended, and has %s now", c, was, c.cpus())
		}
	}
	o.kept, o.lost = nil, false
}

// unknowable: that the CPUs are its own stood in the journal alone. Its annotation is of its create,
// when it was otherwise, and with cpuManagerPolicy none its size says nothing.
func (o *oracle) unknowable(c *container) bool {
	return o.lost && !c.announced().Exclusive && o.settings["cpuManagerPolicy"] == "none"
}

// empty: nothing runs, and numafitd gives back all that it had given.
func (o *oracle) empty() {
	o.machine.restore()
	o.d.await("with nothing left something is held", func(s *nodeStatus) string {
		o.learn(s)
		var why []string
		for _, h := range s.Containers {
			why = append(why, fmt.Sprintf("%s of pod %s", h.Container, h.Pod))
		}
		for _, n := range s.Nodes {
			if n.CPUsHeld > 0 {
				why = append(why, fmt.Sprintf("%d CPUs of node %d", n.CPUsHeld, n.ID))
			}
			for _, m := range n.Memory {
				if m.Free != m.Allocatable {
					why = append(why, fmt.Sprintf("%d bytes of %s of node %d", m.Allocatable-m.Free, m.Type, n.ID))
				}
			}
		}
		return strings.Join(why, ", ")
	})
}

// running are the containers, oldest first. The caller has the lock.
func (r *runtimeSide) running() (all []*container) {
	for _, p := range r.pods {
		all = append(all, p.containers...)
	}
	return all
}
