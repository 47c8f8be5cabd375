package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

type nodeMachine struct {
	Nodes     []memoryNode        `json:"nodes"`
	Distances map[string][]uint64 `json:"distances"`
	cpuRows
	Devices map[string][]device `json:"devices"`
}

type nodeSettings struct {
	TopologyManagerPolicy        string            `json:"topologyManagerPolicy"`
	TopologyManagerScope         string            `json:"topologyManagerScope"`
	TopologyManagerPolicyOptions map[string]string `json:"topologyManagerPolicyOptions"`
	CPUManagerPolicy             string            `json:"cpuManagerPolicy"`
	CPUManagerPolicyOptions      map[string]string `json:"cpuManagerPolicyOptions"`
	MemoryManagerPolicy          string            `json:"memoryManagerPolicy"`
	ReservedMemory               []nodeReserve     `json:"reservedMemory"`
	SystemReserved               map[string]string `json:"systemReserved"`
	ReservedSystemCPUs           string            `json:"reservedSystemCPUs,omitempty"`
	FeatureGates                 map[string]string `json:"featureGates,omitempty"`
}

type nodeStep struct {
	Op         string   `json:"op"`
	Pod        *pod     `json:"pod,omitempty"`
	UID        string   `json:"uid,omitempty"`
	Containers []string `json:"containers,omitempty"`
}

type nodeQuestion struct {
	Name              string       `json:"name"`
	KubernetesVersion string       `json:"kubernetesVersion"`
	Machine           nodeMachine  `json:"machine"`
	Settings          nodeSettings `json:"settings"`
	Steps             []nodeStep   `json:"steps"`
}

type nodeAnswer struct {
	ReservedCPUs []int            `json:"reserved_cpus"`
	Steps        []map[string]any `json:"steps"`
}

type nodeContainer struct {
	Name      string              `json:"name"`
	Affinity  []int               `json:"affinity"`
	Preferred bool                `json:"preferred"`
	CPUs      []int               `json:"cpus"`
	Memory    []memoryBlock       `json:"memory"`
	Devices   map[string][]string `json:"devices,omitempty"`
}

var nodeForm = formOf("node", "machine", randomNode, upstreamNode, knownNode, describeNode,
	"steps", "steps.*.pod.spec.initContainers", "steps.*.pod.spec.containers", "machine.devices",
	"settings.cpuManagerPolicyOptions", "settings.topologyManagerPolicyOptions")

// kubelet is its four managers, started.
type kubelet struct {
	topology topologymanager.Manager
	devices  *deviceProvider
	cpus     cpumanager.Manager
	cpuState state.State
	memory   memorymanager.Manager
	static   bool // the memory manager's policy
	active   *activePods

	cpuTopology *topology.CPUTopology
	cpuOptions  map[string]bool
	unwatched   bool // whether CPUs are given twice is not looked at
	twice       bool // CPUs were given that were not free
	fewer       bool // fewer CPUs were given than were asked for
	namesKind   bool // a refusal names a kind of memory
}

func (q *nodeQuestion) machineInfo() *machineInfo {
	info := &machineInfo{NumCores: len(q.Machine.CPUs), NumSockets: q.Machine.NumSockets}
	var ids []int
	for _, node := range q.Machine.Nodes {
		ids = append(ids, node.ID)
	}
	for _, node := range q.Machine.Nodes {
		n := cadvisorNode(node)
		n.Distances = distancesById(ids, q.Machine.Distances, node.ID)
		n.Cores = q.Machine.cores(node.ID)
		info.Topology = append(info.Topology, n)
	}
	return info
}

func (q *nodeQuestion) start() (*kubelet, error) {
	k, s, info := &kubelet{active: &activePods{}}, q.Settings, q.machineInfo()
	alpha := string(features.CPUManagerPolicyAlphaOptions)
	must(feature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{alpha: s.FeatureGates[alpha] == "true"}))
	var err error
	if k.topology, err = newTopology(info.Topology, s.TopologyManagerPolicy,
		s.TopologyManagerScope, s.TopologyManagerPolicyOptions); err != nil {
		return nil, err
	}
	if k.devices, err = startDevices(info.Topology, q.Machine.Devices, k.topology, k.active); err != nil {
		return nil, err
	}
	k.cpuTopology, k.cpuOptions = q.Machine.topology(), optionsOf(s.CPUManagerPolicyOptions)
	reserved, err := cpuset.Parse(s.ReservedSystemCPUs)
	if err != nil {
		return nil, err
	}
	reservation := v1.ResourceList{}
	for name, amount := range s.SystemReserved {
		reservation[v1.ResourceName(name)] = bytesOf(amount)
	}
	if cpu, there := s.SystemReserved["cpu"]; there {
		reservation[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	k.cpus, err = cpumanager.NewManager(klog.Background(), s.CPUManagerPolicy, s.CPUManagerPolicyOptions,
		math.MaxInt64, info, reserved, reservation, "", k.topology)
	if err != nil {
		return nil, err
	}
	if err = k.startCPUs(); err != nil {
		return nil, err
	}
	k.static = s.MemoryManagerPolicy == "Static"
	k.memory, err = startMemory(s.MemoryManagerPolicy, info, reservation, s.ReservedMemory, k.topology, k.active)
	if err != nil {
		return nil, err
	}
	for _, provider := range []topologymanager.HintProvider{k.devices, &cpuProvider{k.cpus, k}, k.memory} {
		k.topology.AddHintProvider(klog.Background(), provider)
	}
	return k, nil
}

func optionsOf(texts map[string]string) map[string]bool {
	options := map[string]bool{}
	for name, on := range texts {
		options[name] = on == "true"
	}
	return options
}

// reservedCount of CPUs, where none is named: whole ones, rounded up.
func (q *nodeQuestion) reservedCount() int {
	reserved := resource.MustParse(q.Settings.SystemReserved["cpu"])
	return int(reserved.Value())
}

// cpuProvider is the kubelet's CPU manager, watched: what it gives must be free or of an
// init container of the pod's.
type cpuProvider struct {
	cpumanager.Manager
	k *kubelet
}

// watch has the manager give a container what it asks for.
func (c *cpuProvider) watch(p *v1.Pod, container *v1.Container, allocate func() error) error {
	if c.k.unwatched {
		return allocate()
	}
	collect(c.Manager)
	reusable := *field[map[string]cpuset.CPUSet](c.k.cpuPolicy(), "cpusToReuse")
	may := c.k.cpuState.GetDefaultCPUSet().Difference(c.k.reserved()).Union(reusable[string(p.UID)])
	err := allocate()
	given, exclusive := c.k.cpuState.GetCPUSet(string(p.UID), container.Name)
	h := affinityOf(c.k.topology, string(p.UID), container.Name)
	want := int(container.Resources.Requests.Cpu().Value())
	if exclusive || err != nil {
		c.k.notice(given.IsSubsetOf(may), bugOfTaking(c.k.cpuTopology, may, bitsOf(h), want, c.k.cpuOptions))
	}
	return err
}

// notice what was wrong with the CPUs that were given: whether they were free, and how they were taken.
func (k *kubelet) notice(free bool, bug string) {
	k.twice = k.twice || !free || bug == bugTwice
	k.fewer = k.fewer || bug == bugFewer
}

// mark an answer from which on nothing is to be compared.
func (k *kubelet) mark(answer map[string]any) {
	if k.twice {
		answer["takes_unavailable"] = true
	}
	if k.fewer {
		answer["gives_fewer"] = true
	}
}

// collect takes back what inactive pods hold, as every question for hints does.
func collect(m topologymanager.HintProvider) {
	idle := nobody()
	hintsFor(m, idle, &idle.Spec.Containers[0])
}

// startCPUs does what the manager's Start() does, but for its file and its loop.
func (k *kubelet) startCPUs() error {
	k.cpuState = state.NewMemoryState(klog.Background())
	*field[state.State](k.cpus, "state") = k.cpuState
	*field[cpumanager.ActivePodsFunc](k.cpus, "activePods") = k.active.list
	*field[containermap.ContainerMap](k.cpus, "containerMap") = containermap.NewContainerMap()
	return k.cpuPolicy().Start(klog.Background(), k.cpuState)
}

// Where luck decides upstream which device is taken, it is asked again until the lowest id has it; so
// often at most. And so often it is asked where a pod with resources of its own is refused for one of
// several kinds of memory: which one of those that leave nothing to share it names is the order of a
// map. Of these the one counts that numafit names, the first by size of pages.
const luckMax = 200

func upstreamNode(q *nodeQuestion) any {
	var first *nodeAnswer
	for range luckMax {
		k, err := q.start()
		if err != nil {
			return refusal{err.Error()}
		}
		answer := nodeAnswer{ReservedCPUs: list(k.reserved()), Steps: []map[string]any{}}
		for i := range q.Steps {
			answer.Steps = append(answer.Steps, k.step(&q.Steps[i]))
		}
		if k.devices.now.unlucky {
			continue
		}
		if !k.namesKind {
			return answer
		}
		if first == nil {
			first = &answer
		}
		first.nameFirstKinds(&answer)
	}
	if first != nil {
		return *first
	}
	return map[string]bool{"upstream_gambles": true}
}

// kindNamed is what a refusal names where a map decides (validatePodScopeResources of the memory
// manager), and nothing else is in the text that the order could change.
var kindNamed = regexp.MustCompile(`^(?:Allocate failed due to )?(?:.*)pod rejected, (?:` +
	`pod has shared init containers but no ([^ ]+) available for them|` +
	`sum of exclusive container ([^ ]+) requests equals pod budget, leaving no memory for shared containers)`)

// pagesNamed is the size of its pages: numafit looks at kinds in that order. Ordinary memory has 0.
func pagesNamed(message any) (bytes int64, is bool) {
	text, _ := message.(string)
	m := kindNamed.FindStringSubmatch(text)
	if m == nil || m[1] == "cpus" {
		return 0, false
	}
	name, huge := strings.CutPrefix(m[1]+m[2], "hugepages-")
	if !huge {
		return 0, true
	}
	size := resource.MustParse(name)
	return size.Value(), true
}

// nameFirstKinds takes a refusal of another try where it names an earlier kind, and differs in
// nothing else.
func (a *nodeAnswer) nameFirstKinds(other *nodeAnswer) {
	for i, step := range other.Steps {
		mine, is := pagesNamed(a.Steps[i]["message"])
		theirs, isToo := pagesNamed(step["message"])
		if is && isToo && theirs < mine {
			a.Steps[i]["message"] = step["message"]
		}
	}
}

func (k *kubelet) reserved() cpuset.CPUSet {
	return k.cpus.GetAllCPUs().Difference(k.cpuPolicy().GetAllocatableCPUs(k.cpuState))
}

func (k *kubelet) cpuPolicy() cpumanager.Policy { return *field[cpumanager.Policy](k.cpus, "policy") }

func (k *kubelet) step(step *nodeStep) (answer map[string]any) {
	answer = map[string]any{}
	switch step.Op {
	case "admit":
		k.admit(step.Pod.kubernetes(), answer)
	case "start":
		if p := k.active.get(step.UID); p != nil {
			startContainers(p, step.Containers, func(c *v1.Container, id string) {
				k.cpus.AddContainer(klog.Background(), p, c, id)
				k.memory.AddContainer(klog.Background(), p, c, id)
				started(k.topology, p, c, id)
			})
		}
	case "remove":
		k.active.remove(step.UID)
	}
	collect(k.cpus)
	answer["shared_cpus"] = list(k.cpuState.GetDefaultCPUSet())
	if k.static {
		answer["memory"] = pools(k.memory)
	}
	k.mark(answer)
	return answer
}

func (k *kubelet) admit(p *v1.Pod, answer map[string]any) {
	k.active.add(p)
	result := admit(k.topology, p)
	answer["admit"] = result.Admit
	if !result.Admit {
		answer["reason"], answer["message"] = result.Reason, result.Message
		if bytes, is := pagesNamed(result.Message); is && bytes > 0 {
			k.namesKind = true
		}
		k.active.remove(string(p.UID))
		return
	}
	all := []nodeContainer{}
	for _, c := range containers(p) {
		all = append(all, k.container(p, c))
	}
	answer["containers"] = all
	own(k, p, answer)
}

func (k *kubelet) container(p *v1.Pod, c *v1.Container) nodeContainer {
	h := affinityOf(k.topology, string(p.UID), c.Name)
	one := nodeContainer{Name: c.Name, Affinity: bitsOf(h), Preferred: h.Preferred,
		Memory: blocks(k.memory, p, c), Devices: k.devices.held(p, c)}
	if cpus, exclusive := k.cpuState.GetCPUSet(string(p.UID), c.Name); exclusive {
		one.CPUs = list(cpus)
	}
	return one
}

func randomNode(r *random) *nodeQuestion { return randomNodeOf(r, r.between(1, 8)) }

func randomNodeOf(r *random, nodes int) *nodeQuestion {
	ids := randomNodes(r, nodes)
	q := &nodeQuestion{}
	q.Machine.Nodes = randomMemoryNodes(r, ids)
	q.Machine.Distances = randomDistances(r, ids)
	withCPUs := ids
	if r.chance(15) { // the others have memory only
		withCPUs = some(r, ids, r.between(1, len(ids)))
	}
	q.Machine.cpuRows = randomCPUs(r, withCPUs)
	q.Machine.Devices = randomDevices(r, ids)
	q.randomSettings(r)
	q.randomSteps(r)
	return q
}

func randomDevices(r *random, ids []int) map[string][]device {
	all := map[string][]device{}
	for _, name := range []string{"example.com/gpu", "example.com/nic", "example.com/fpga"} {
		if !r.chance(40) {
			continue
		}
		odd := r.chance(25)
		for i := range r.between(1, max(2, len(ids)*2)) {
			d := device{fmt.Sprintf("d%02d", i), []int64{int64(ids[i%len(ids)])}, true}
			if odd {
				d.Healthy = r.chance(85)
				d.Nodes = pick(r, d.Nodes, d.Nodes, []int64{int64(pick(r, ids...))}, nil, []int64{})
			}
			all[name] = append(all[name], d)
		}
	}
	return all
}

func texts(options map[string]bool) map[string]string {
	all := map[string]string{}
	for name, on := range options {
		all[name] = strconv.FormatBool(on)
	}
	return all
}

// randomStartErrors closes a gate that an option may need, or leaves options to a CPU manager that takes none.
// Which of two options is refused first is the order of a map upstream.
func (s *nodeSettings) randomStartErrors(r *random) {
	alpha := 0
	for _, name := range []string{"align-by-socket", "distribute-cpus-across-cores"} {
		if _, there := s.CPUManagerPolicyOptions[name]; there {
			alpha++
		}
	}
	if alpha > 1 || !r.chance(5) {
		s.FeatureGates[string(features.CPUManagerPolicyAlphaOptions)] = "true"
	}
	if len(s.CPUManagerPolicyOptions) > 0 && r.chance(3) {
		s.CPUManagerPolicy = "none"
	}
}

func (q *nodeQuestion) randomSettings(r *random) {
	s := &q.Settings
	s.TopologyManagerPolicy = pick(r, "none", "best-effort", "best-effort", "restricted", "restricted",
		"single-numa-node", "single-numa-node")
	s.TopologyManagerScope = pick(r, "container", "container", "pod")
	s.TopologyManagerPolicyOptions = map[string]string{}
	if r.chance(50) {
		s.TopologyManagerPolicyOptions["prefer-closest-numa-nodes"] = "true"
	}
	s.CPUManagerPolicy = "static"
	s.CPUManagerPolicyOptions = map[string]string{}
	if r.chance(60) {
		s.CPUManagerPolicyOptions = texts(randomCPUOptions(r))
	}
	s.FeatureGates = map[string]string{}
	s.randomStartErrors(r)
	s.MemoryManagerPolicy = "Static"
	if r.chance(10) {
		s.MemoryManagerPolicy = "None"
	}
	reserve, sums := randomReserve(r, q.Machine.Nodes)
	s.ReservedMemory, s.SystemReserved = reserve, map[string]string{}
	for name, amount := range sums {
		s.SystemReserved[name] = strconv.FormatUint(amount, 10)
	}
	count := r.between(1, min(4, len(q.Machine.CPUs)))
	s.SystemReserved["cpu"] = strconv.Itoa(count)
	if r.chance(30) {
		s.ReservedSystemCPUs = cpuset.New(some(r, q.Machine.all(), count)...).String()
	} else if r.chance(30) {
		s.SystemReserved["cpu"] = fmt.Sprintf("%dm", count*1000-r.IntN(1000))
	}
}

func (q *nodeQuestion) randomSteps(r *random) {
	d := demandOf(q.Machine.Nodes)
	d.cpus = max(1, len(q.Machine.CPUs)/len(q.Machine.nodes()))
	d.devices = map[string]int{}
	lists := 2 + len(d.pages)
	for _, name := range sortedKeys(q.Machine.Devices) {
		d.devices[name] = len(q.Machine.Devices[name])
		lists++
	}
	for permutations(len(q.Machine.Nodes), lists) > permutationsMax && len(d.devices) > 0 {
		delete(d.devices, sortedKeys(d.devices)[0])
		lists--
	}
	for permutations(len(q.Machine.Nodes), lists) > permutationsMax && len(d.pages) > 0 {
		delete(d.pages, sortedKeys(d.pages)[0])
		lists--
	}
	var pods []*pod
	for range r.between(2, 14) {
		switch {
		case len(pods) > 0 && r.chance(20):
			q.Steps = append(q.Steps, nodeStep{Op: "remove", UID: pick(r, pods...).Metadata.UID})
		case len(pods) > 0 && r.chance(15):
			p := pick(r, pods...)
			q.Steps = append(q.Steps, nodeStep{Op: "start", UID: p.Metadata.UID, Containers: startedOf(r, p)})
		default:
			p := d.pod(r, len(pods))
			pods = append(pods, p)
			q.Steps = append(q.Steps, nodeStep{Op: "admit", Pod: p})
		}
	}
}

// permutations of lists that name every set of nodes each.
func permutations(nodes, lists int) int {
	product := 1.0
	for range lists {
		product *= float64(int(1)<<nodes - 1)
	}
	return int(min(product, math.MaxInt32))
}

func describeNode(q *nodeQuestion, upstream value, count func(axis, class string)) {
	count("n", strconv.Itoa(len(q.Machine.Nodes)))
	count("policy", q.Settings.TopologyManagerPolicy)
	count("scope", q.Settings.TopologyManagerScope)
	for name, on := range q.Settings.CPUManagerPolicyOptions {
		if on == "true" {
			count("option", name)
		}
	}
	if why, refused := member(upstream, "error").(string); refused {
		why, _, _ = strings.Cut(why, `"`)
		count("start", "refused: "+why[:min(len(why), 50)])
		return
	}
	if _, gambles := member(upstream, "upstream_gambles").(bool); gambles {
		count("start", "upstream's luck decides")
		return
	}
	if why, panics := member(upstream, "upstream_panics").(string); panics {
		count("start", "upstream panics: "+why)
		return
	}
	count("start", "started")
	steps, _ := member(upstream, "steps").([]any)
	for i, step := range steps {
		count("op", q.Steps[i].Op)
		switch admit := member(step, "admit"); admit {
		case true:
			count("result", "admitted")
		case false:
			message, _ := member(step, "message").(string)
			message, _, _ = strings.Cut(message, ":")
			count("result", message[:min(len(message), 60)])
		}
	}
}
