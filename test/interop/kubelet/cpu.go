package main

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/admission"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

type cpuQuestion struct {
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	cpuRows
	Want int    `json:"want"`
	Mode string `json:"mode"`
	*TakeQuestion
	*PolicyQuestion
}

// TakeQuestion is of the modes packed and distributed. Its name is exported for encoding/json.
type TakeQuestion struct {
	Available     []int `json:"available"`
	CPUGroupSize  int   `json:"cpu_group_size"`
	Spread        bool  `json:"spread"`
	Uncore        bool  `json:"uncore"`
	AlignBySocket bool  `json:"align_by_socket,omitempty"`
}

// PolicyQuestion is of the mode policy.
type PolicyQuestion struct {
	Options        map[string]bool `json:"options"`
	TopologyPolicy string          `json:"topology_policy"`
	ReservedCPUs   []int           `json:"reserved_cpus,omitempty"`
	ReservedCount  int             `json:"reserved_count"`
	Assigned       []int           `json:"assigned"`
	Reusable       []int           `json:"reusable"`
	Affinity       []int           `json:"affinity"`
}

type takeAnswer struct {
	CPUs []int `json:"cpus"`
}

type policyRefusal struct {
	CPUs  []int  `json:"cpus"`
	Error string `json:"error"`
}

type policyAnswer struct {
	ReservedCPUs []int  `json:"reserved_cpus"`
	Hints        []hint `json:"hints"`
	CPUs         []int  `json:"cpus"`
	DefaultAfter []int  `json:"default_after"`
	Error        string `json:"error,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

var cpuForm = formOf("cpu", "cpus_fields", randomCPU, upstreamCPU, knownCPU, describeCPU,
	"available", "assigned", "reusable", "options", "reserved_cpus", "affinity")

func upstreamCPU(q *cpuQuestion) any {
	if q.Mode == "policy" {
		return q.upstreamPolicy()
	}
	cpus, err := q.upstreamTake()
	if err != nil {
		return refusal{err.Error()}
	}
	return takeAnswer{list(cpus)}
}

func (q *TakeQuestion) strategy() cpumanager.CPUSortingStrategy {
	if q.Spread {
		return cpumanager.CPUSortingStrategySpread
	}
	return cpumanager.CPUSortingStrategyPacked
}

func (q *cpuQuestion) upstreamTake() (cpuset.CPUSet, error) {
	topo, available := q.topology(), cpuset.New(q.Available...)
	if q.Mode == "distributed" {
		return takeDistributed(topo, available, q.Want, q.CPUGroupSize, q.strategy(), q.AlignBySocket)
	}
	return takePacked(klog.Background(), topo, available, q.Want, q.strategy(), q.Uncore)
}

// hintStore is a topology manager that hands out what it is said to.
type hintStore struct {
	policy   topologymanager.Policy
	affinity func(uid, container string) topologymanager.TopologyHint
}

func (s *hintStore) GetPolicy() topologymanager.Policy { return s.policy }
func (s *hintStore) Name() string                      { return topologymanager.ContainerTopologyScope }

const (
	podUID      = "pod"
	otherUID    = "other"
	initName    = "init"
	appName     = "app"
	memoryOfAny = "1Gi" // a Guaranteed pod needs some
)

func container(name string, cpus int) v1.Container {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(int64(cpus), resource.DecimalSI),
		v1.ResourceMemory: resource.MustParse(memoryOfAny),
	}
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}}
}

func (q *cpuQuestion) upstreamPolicy() any {
	manager, err := newTopology(nil, q.TopologyPolicy, topologymanager.ContainerTopologyScope, nil)
	if err != nil {
		return policyRefusal{Error: err.Error()}
	}
	options := map[string]string{}
	for name, on := range q.Options {
		options[name] = strconv.FormatBool(on)
	}
	store := &hintStore{manager.GetPolicy(), func(string, string) topologymanager.TopologyHint {
		return topologymanager.TopologyHint{NUMANodeAffinity: maskOf(q.Affinity)}
	}}
	policy, err := cpumanager.NewStaticPolicy(klog.Background(), q.topology(), q.ReservedCount,
		cpuset.New(q.ReservedCPUs...), store, options)
	if err != nil {
		return policyRefusal{Error: err.Error()}
	}
	return q.allocate(policy)
}

func (q *cpuQuestion) allocate(policy cpumanager.Policy) any {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podUID, Namespace: "default", UID: types.UID(podUID)},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{container(initName, max(1, len(q.Reusable)))},
			Containers:     []v1.Container{container(appName, q.Want)},
		},
	}
	s := state.NewMemoryState(klog.Background())
	if err := policy.Start(klog.Background(), s); err != nil {
		return policyRefusal{Error: err.Error()}
	}
	assigned, reusable := cpuset.New(q.Assigned...), cpuset.New(q.Reusable...)
	s.SetDefaultCPUSet(s.GetDefaultCPUSet().Difference(assigned))
	if others := assigned.Difference(reusable); !others.IsEmpty() {
		s.SetCPUSet(otherUID, appName, others)
	}
	if !reusable.IsEmpty() {
		s.SetCPUSet(podUID, initName, reusable)
		(*field[map[string]cpuset.CPUSet](policy, "cpusToReuse"))[podUID] = reusable
	}
	app := &pod.Spec.Containers[0]
	answer := policyAnswer{
		ReservedCPUs: list(*field[cpuset.CPUSet](policy, "reservedCPUs")),
		Hints:        hintsOf(hintsOfPolicy(policy, s, pod, app)[string(v1.ResourceCPU)]),
	}
	if err := allocateByPolicy(policy, s, pod, app); err != nil {
		refused := admission.GetPodAdmitResult(err)
		answer.Error, answer.Reason = refused.Message, refused.Reason
	} else if cpus, exclusive := s.GetCPUSet(podUID, appName); exclusive {
		answer.CPUs = list(cpus)
	}
	answer.DefaultAfter = list(s.GetDefaultCPUSet())
	return answer
}

func hintsOf(hints []topologymanager.TopologyHint) []hint {
	if hints == nil {
		return nil
	}
	list := []hint{}
	for _, h := range hints {
		list = append(list, hint{bitsOf(h), h.Preferred})
	}
	return list
}

const manyNodes = 5

func randomCPU(r *random) *cpuQuestion {
	q := &cpuQuestion{Mode: pick(r, "packed", "packed", "policy", "policy", "policy", "distributed")}
	nodes := r.between(1, 8)
	if nodes > manyNodes && r.chance(70) { // upstream needs long for them
		nodes = r.between(1, manyNodes)
	}
	q.cpuRows = randomCPUs(r, randomNodes(r, nodes))
	if q.Mode == "policy" {
		q.PolicyQuestion = randomPolicyQuestion(r, &q.cpuRows)
		q.Want = r.between(0, pick(r, 4, len(q.CPUs)))
		return q
	}
	free := some(r, q.all(), pick(r, len(q.CPUs), r.between(0, len(q.CPUs))))
	q.TakeQuestion = &TakeQuestion{Available: free, CPUGroupSize: 1, Spread: r.chance(25)}
	if q.Mode == "packed" {
		q.Uncore = r.chance(40)
	} else if r.chance(50) {
		q.CPUGroupSize = max(1, len(q.CPUs)/q.NumCores)
	}
	q.AlignBySocket = q.Mode == "distributed" && r.chance(50)
	q.Want = r.between(0, min(len(q.CPUs), len(free)+1))
	return q
}

var cpuOptions = []string{"full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket",
	"distribute-cpus-across-cores", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"}

// Options that exclude each other are refused at start: interesting, but not often.
func randomCPUOptions(r *random) map[string]bool {
	options := map[string]bool{}
	for _, name := range cpuOptions {
		if r.chance(25) {
			options[name] = r.chance(95)
		}
	}
	if options["distribute-cpus-across-cores"] && r.chance(90) {
		delete(options, "distribute-cpus-across-cores")
		if len(options) == 0 {
			options["distribute-cpus-across-cores"] = true
		}
	}
	if options["distribute-cpus-across-numa"] && r.chance(90) {
		delete(options, "prefer-align-cpus-by-uncorecache")
	}
	return options
}

func randomPolicyQuestion(r *random, m *cpuRows) *PolicyQuestion {
	q := &PolicyQuestion{
		Options:        randomCPUOptions(r),
		TopologyPolicy: pick(r, "none", "best-effort", "restricted", "single-numa-node"),
		ReservedCount:  r.between(1, min(4, len(m.CPUs))),
		Assigned:       []int{},
		Reusable:       []int{},
	}
	all := cpuset.New(m.all()...)
	reserved := cpuset.New()
	if r.chance(50) {
		q.ReservedCPUs = some(r, m.all(), q.ReservedCount)
		reserved = cpuset.New(q.ReservedCPUs...)
	} else if start, ok := (&cpuQuestion{cpuRows: *m, PolicyQuestion: q}).upstreamPolicy().(policyAnswer); ok {
		reserved = cpuset.New(start.ReservedCPUs...)
	}
	free := all.Difference(reserved).List()
	if r.chance(60) {
		q.Assigned = some(r, free, r.between(0, len(free)))
	}
	if r.chance(30) {
		q.Reusable = some(r, q.Assigned, r.between(0, min(4, len(q.Assigned))))
	}
	if r.chance(70) {
		nodes := m.nodes()
		q.Affinity = some(r, nodes, r.between(1, len(nodes)))
	}
	return q
}

func describeCPU(q *cpuQuestion, upstream value, count func(axis, class string)) {
	count("n", strconv.Itoa(len(q.nodes())))
	count("mode", q.Mode)
	count("threads", strconv.Itoa(len(q.CPUs)/q.NumCores))
	if q.PolicyQuestion != nil {
		for name, on := range q.Options {
			if on {
				count("option", name)
			}
		}
	}
	switch {
	case member(upstream, "upstream_hangs") != nil:
		count("result", "upstream hangs")
	case member(upstream, "upstream_panics") != nil:
		count("result", "upstream panics")
	case member(upstream, "reason") != nil:
		count("result", fmt.Sprint(member(upstream, "reason")))
	case member(upstream, "error") != nil:
		count("result", "error")
	default:
		count("result", "cpus")
	}
}
