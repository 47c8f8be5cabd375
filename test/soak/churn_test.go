package interop

import (
	"fmt"
)

// What a node's pods do by themselves.

const (
	containersAtMost = 60
)

// someWant is what a container asks for.
func (s *soak) someWant(qos string) want {
	w := want{qos: qos}
	switch {
	case qos == "besteffort":
	case qos == "burstable":
		w.milli = int64(100 * (1 + s.IntN(30)))
	case s.chance(6):
		w.milli = int64(500 + 1000*s.IntN(4))
	case s.chance(8):
		w.milli = int64(1000 * (9 + s.IntN(16)))
	default:
		w.milli = int64(1000 * (1 + s.IntN(8)))
	}
	if qos == "" {
		w.memory = int64(1+s.IntN(12)) * gi
		if s.chance(8) {
			w.huge1Gi = uint64(1+s.IntN(3)) * gi
		}
	}
	return w
}

const gi = 1 << 30

func (s *soak) someQoS() string {
	return []string{"", "", "", "", "", "burstable", "burstable", "burstable", "besteffort"}[s.IntN(9)]
}

func (s *soak) name(kind string) string {
	s.names++
	return fmt.Sprintf("%s%d", kind, s.names)
}

func (s *soak) startPod() {
	if len(s.runtime.containers) > containersAtMost {
		s.endSome()
		return
	}
	w := s.someWant(s.someQoS())
	name := s.name("pod")
	w.notes = s.someNotes("uid-" + name)
	p, err := s.runtime.runSandbox(name, w)
	if err != nil { // containerd removes it then
		s.runtime.endPod(p)
		return
	}
	for i := range 1 + s.IntN(3) {
		if i > 0 {
			w = s.someWant(w.qos)
		}
		if err := s.startContainer(p, fmt.Sprint("c", i), w, nil); err != nil {
			s.report.count("refused or failed")
			if !s.chance(3) { // else it stays as far as it came
				s.runtime.endPod(p)
			}
			return
		}
	}
}

func (s *soak) startContainer(p *runningPod, name string, w want, annotations map[string]string) error {
	c, err := s.runtime.create(p, name, s.name("ctr"), w, annotations)
	if err != nil {
		if s.chance(2) { // containerd says so, CRI-O does not
			s.runtime.remove(c)
		}
		return err
	}
	if err := s.runtime.run(c); err != nil {
		s.runtime.end(c, true)
		return err
	}
	return nil
}

func (s *soak) somePod() *runningPod {
	if len(s.runtime.pods) == 0 {
		return nil
	}
	return s.runtime.pods[s.IntN(len(s.runtime.pods))]
}

func (s *soak) someContainer() *container {
	all := s.runtime.running()
	if len(all) == 0 {
		return nil
	}
	return all[s.IntN(len(all))]
}

func (s *soak) endSome() {
	if p := s.somePod(); p != nil {
		s.runtime.endPod(p)
	}
}

func (s *soak) endContainer() {
	if c := s.someContainer(); c != nil {
		s.runtime.end(c, !s.chance(4))
	}
}

// restartContainer: the kubelet makes another one of the same name when one has died.
func (s *soak) restartContainer() {
	if c := s.someContainer(); c != nil {
		s.runtime.end(c, s.chance(2))
		var annotations map[string]string
		if a := c.Annotations[allocated]; a != "" { // the kubelet has it from its checkpoint
			annotations = map[string]string{allocated: a}
		}
		if err := s.startContainer(c.pod, c.Name, c.want, annotations); err != nil {
			s.report.count("refused or failed")
		}
	}
}

// resize is in place, and keeps the pod's class.
func (s *soak) resize() {
	c := s.someContainer()
	if c == nil || c.want.qos == "besteffort" {
		return
	}
	w := s.someWant(c.want.qos)
	w.huge1Gi = c.want.huge1Gi
	if err := s.runtime.update(c, w, ""); err != nil {
		s.report.count("refused or failed")
	}
}

// foreignUpdate is somebody else's cpuset, as of a kubelet that has CPUs of its own in mind.
func (s *soak) foreignUpdate() {
	if c := s.someContainer(); c != nil {
		from := s.IntN(nrNodes*perNode - 4)
		_ = s.runtime.update(c, c.want, fmt.Sprintf("%d-%d", from, from+3))
	}
}

// churn is one event of those above, for when something else goes on.
func (s *soak) churn() {
	[]func(){s.startPod, s.startPod, s.startPod, s.endSome, s.endSome, s.endContainer, s.restartContainer,
		s.resize, s.resize}[s.IntN(9)]()
}

// drain removes everything: all that was given comes back.
func (s *soak) drain() {
	for len(s.runtime.pods) > 0 {
		s.runtime.endPod(s.runtime.pods[0])
		s.rest()
	}
	s.o.empty()
	s.rest()
}
