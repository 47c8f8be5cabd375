package interop

import (
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The kubelet: its own device manager, Topology Manager, PodResources and Pods API servers, as the
// rig of interop/kubelet-devices has them (v1.37.1). Pods that ask for numafit.io/cpu go through it;
// all others are as pods that it admitted before it knew that resource.

type kubeletSide struct {
	*soak
	*kubelet
	pods map[*runningPod]*v1.Pod
}

func newKubeletSide(s *soak) *kubeletSide {
	logKubelet(s.T, filepath.Join(s.dir, "kubelet.log"))
	return &kubeletSide{s, newKubelet(s.T, filepath.Join(s.dir, "kubelet"), "best-effort", nil), map[*runningPod]*v1.Pod{}}
}

// settings are numafitd's.
func (k *kubeletSide) settings() []string {
	return []string{"devicePlugin.enabled=true", "podResources.enabled=true", "podsAPI.enabled=true",
		"kubeletRootDirectory=" + filepath.Join(k.dir, "kubelet")}
}

// somePodSpec has tokens, or none, and init containers and sidecars.
func (s *soak) somePodSpec(name string) *v1.Pod {
	var asks []ask
	add := func(name, kind string) {
		a := ask{name: name, kind: kind, cpus: int64(1 + s.IntN(6))}
		if !s.chance(3) {
			a.tokens = a.cpus
		}
		asks = append(asks, a)
	}
	if s.chance(3) {
		add("init", "init")
	}
	if s.chance(3) {
		add("sidecar", "sidecar")
	}
	add("main", "")
	if s.chance(4) {
		add("second", "")
	}
	return newPod(name, asks...)
}

// startKnownPod is a pod that the kubelet shows: it admits it, runs its init containers to their
// end, its sidecars, and then the others.
func (s *soak) startKnownPod() {
	if len(s.runtime.containers) > containersAtMost {
		s.endSome()
		return
	}
	spec := s.somePodSpec(s.name("known"))
	if err := s.kubelet.admit(spec); err != nil {
		s.report.note(fmt.Sprintf("pod %s is not admitted: %v", spec.Name, err))
		s.report.count("pod not admitted by the kubelet")
		return
	}
	// a real one takes its time here, in which numafitd hears of the pod; not always enough
	time.Sleep([]time.Duration{0, 5 * time.Millisecond, admitted}[s.IntN(3)])
	p, err := s.runtime.runSandbox(spec.Name, want{notes: spec.Annotations})
	s.kubelet.pods[p] = spec
	for _, list := range [][]v1.Container{spec.Spec.InitContainers, spec.Spec.Containers} {
		for i := range list {
			if err == nil {
				err = s.startKnown(p, spec, &list[i])
			}
		}
	}
	if err != nil {
		s.report.count("refused or failed")
		s.runtime.endPod(p)
	}
}

func (s *soak) startKnown(p *runningPod, spec *v1.Pod, c *v1.Container) error {
	annotations, err := s.kubelet.annotations(spec, c)
	if err != nil {
		return err
	}
	w := want{milli: c.Resources.Limits.Cpu().MilliValue(), memory: c.Resources.Limits.Memory().Value()}
	if err := s.startContainer(p, c.Name, w, annotations); err != nil {
		return err
	}
	for i := range spec.Spec.InitContainers {
		if init := &spec.Spec.InitContainers[i]; init == c && c.RestartPolicy == nil {
			s.runtime.end(p.containers[len(p.containers)-1], true)
		}
	}
	return nil
}

// ended: the pod's sandbox is gone, and the kubelet forgets the pod.
func (k *kubeletSide) ended(p *runningPod) {
	if spec := k.pods[p]; spec != nil {
		k.end(spec)
		delete(k.pods, p)
	}
}

// restartKubelet: it comes back with its checkpoint, and pods run on.
func (s *soak) restartKubelet() {
	s.kubelet.stop()
	for range s.IntN(3) {
		s.churn()
	}
	s.kubelet.start()
	for _, p := range s.runtime.pods {
		if spec := s.kubelet.pods[p]; spec != nil {
			s.kubelet.news.updated(spec, true)
		}
	}
}

// forge gives a container the annotation of another one's tokens, as whoever may speak with the
// runtime's CRI socket could.
func (s *soak) forge() {
	c := s.someContainer()
	if c == nil || c.Annotations[allocated] == "" {
		return
	}
	w := want{milli: 1000 * int64(1+s.IntN(4)), memory: gi}
	p, err := s.runtime.runSandbox(s.name("forged"), w)
	if err == nil {
		err = s.startContainer(p, "main", w, map[string]string{allocated: c.Annotations[allocated]})
	}
	if err != nil {
		s.report.count("forged annotation refused")
		s.runtime.endPod(p)
	}
}

// Schedulers' hints

// hints are what pods may carry, true or not; %s is the pod's uid, %d the time in ms.
var hints = []map[string]string{
	nil, nil, nil, nil,
	{"numafit.io/numa-hint": `{"v":1,"node":"soak","uid":"%[1]s","at":%[2]d,"ttl":60,"mode":"prefer","containers":{"*":{"numa":"3"}}}`},
	{"numafit.io/numa-hint": `{"v":1,"node":"soak","uid":"%[1]s","at":%[2]d,"ttl":60,"mode":"require","containers":{"*":{"numa":"6-7"}}}`},
	{"numafit.io/numa-hint": `{"v":1,"node":"soak","uid":"another","at":%[2]d,"ttl":60,"mode":"prefer","containers":{"*":{"numa":"5"}}}`},
	{"numafit.io/numa-hint": `{"v":1,"node":"elsewhere","uid":"%[1]s","at":1,"ttl":1,"mode":"prefer","containers":{"*":{"numa":"63"}}}`},
	{"numafit.io/numa-hint": `[[[[[[[`},
	{"katalyst.kubewharf.io/numa_bind_result": "4"},
	{"katalyst.kubewharf.io/numa_bind_result": "99"},
	{"volcano.sh/topology-decision": `{"numa":{"2":{"cpu":2000}}}`},
	{"volcano.sh/topology-decision": `{"numa":7}`},
	{"godel.bytedance.com/micro-topology": "6:cpu=1"},
	{"scheduling.koordinator.sh/resource-status": `{"cpuset":"0-127","numaNodeResources":[{"node":1,"resources":{"cpu":"2"}}]}`},
	{"topology.crane.io/topology-result": `[{"name":"node1","type":"Node","resources":{"capacity":{"cpu":"2"}}}]`},
	{"numafit.io/topology-policy": "single-numa-node"},
	{"volcano.sh/numa-topology-policy": "restricted"},
	{"numafit.io/placement": `{"v":1,"policy":"none","exclusive":true,"cpus":"0-127","mems":"0-7","preferred":true}`},
}

func (s *soak) someNotes(uid string) map[string]string {
	notes := map[string]string{}
	for key, value := range hints[s.IntN(len(hints))] {
		if key == "numafit.io/numa-hint" && value[0] == '{' {
			value = fmt.Sprintf(value, uid, time.Now().UnixMilli())
		}
		notes[key] = value
	}
	return notes
}
