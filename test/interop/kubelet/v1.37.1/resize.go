package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// The form resize: pods come, containers are resized in place, pods go. The kubelet's managers are
// asked with their gates on; numafit gets a container runtime's events, as its daemon does.

const (
	resizeFormName = "resize"
	// on purpose: see src/README.md
	differsGroups   = "on purpose: a container gets no NUMA node out of a group, but joins the group"
	differsPool     = "on purpose: the shared pool keeps a CPU, also with strict-cpu-reservation"
	differsCores    = "on purpose: with full-pcpus-only a core is given as a whole or not at all"
	differsReserved = "on purpose: numafit does not start where all CPUs are reserved"
)

var resizeForm = formOf(resizeFormName, "steps", randomResize, upstreamResize, knownResize, describeResize,
	"steps", "steps.*.pod.spec.initContainers", "steps.*.pod.spec.containers",
	"settings.cpuManagerPolicyOptions", "settings.topologyManagerPolicyOptions")

func init() {
	resizeForm.purpose = "sequences of pods whose containers are resized in place"
	resizeForm.short = 2000 // each takes many answers of the kubelet
	resizeForm.settle = dropRefused
	resizeForm.comparable = func(question []byte, upstream, ours value) (value, value) {
		return withoutRows(read[resizeQuestion](question), upstream, ours)
	}
	for _, one := range rowsOfTable {
		resizeForm.wanted = append(resizeForm.wanted, class{"resize", string(one)})
	}
	podLevelForm.purpose = "sequences of whole admissions of pods with resources of their own"
}

type resizeStep struct {
	Op            string      `json:"op"`
	Pod           *pod        `json:"pod,omitempty"`
	Sandbox       string      `json:"sandbox_id,omitempty"`
	Container     string      `json:"container_name,omitempty"`
	CPUMilli      int         `json:"cpu_milli,omitempty"`
	CPULimitMilli int         `json:"cpu_limit_milli,omitempty"`
	Memory        []memoryAsk `json:"memory,omitempty"`
}

type memoryAsk struct {
	PageBytes uint64 `json:"page_bytes,omitempty"`
	Bytes     uint64 `json:"bytes"`
}

type resizeQuestion struct {
	Name              string       `json:"name"`
	KubernetesVersion string       `json:"kubernetesVersion"`
	Machine           nodeMachine  `json:"machine"`
	Settings          nodeSettings `json:"settings"`
	Steps             []resizeStep `json:"steps"`
}

func (q *resizeQuestion) node() *nodeQuestion {
	return &nodeQuestion{Machine: q.Machine, Settings: q.Settings}
}

// The question

func randomResize(r *random) *resizeQuestion {
	n := randomNodeOf(r, pick(r, 1, 2, 2, 2, 3, 3, 4, 4, r.between(5, 6))) // more take the kubelet long
	n.Machine.Devices = map[string][]device{}
	n.Settings.FeatureGates = map[string]string{"CPUManagerPolicyAlphaOptions": "true"}
	if r.chance(40) {
		n.Settings.MemoryManagerPolicy = "None"
	}
	q := &resizeQuestion{Machine: n.Machine, Settings: n.Settings}
	d := demandOf(n.Machine.Nodes)
	d.cpus, d.podLevels = max(1, len(n.Machine.CPUs)/len(n.Machine.nodes())), 0
	d.memory /= uint64(pick(r, 1, 4, 16)) // so that there is room to grow
	var pods []*pod
	for range r.between(3, 16) {
		switch {
		case len(pods) > 0 && r.chance(55):
			q.resize(r, &d, pick(r, pods...))
		case len(pods) > 1 && r.chance(25):
			i := r.IntN(len(pods))
			q.Steps = append(q.Steps, resizeStep{Op: "stop-pod", Sandbox: pods[i].Metadata.UID})
			pods = slices.Delete(pods, i, i+1)
		default:
			p := d.pod(r, len(q.Steps))
			// no plain init container is resized, and what it leaves to others is not the subject
			p.Spec.InitContainers = slices.DeleteFunc(p.Spec.InitContainers,
				func(c podContainer) bool { return c.RestartPolicy == "" })
			pods = append(pods, p)
			q.start(p)
		}
	}
	return q
}

func (q *resizeQuestion) start(p *pod) {
	q.Steps = append(q.Steps, resizeStep{Op: "run-pod", Pod: p.clone()})
	for _, c := range p.all() {
		for _, op := range []string{"create", "live"} {
			q.Steps = append(q.Steps, resizeStep{Op: op, Sandbox: p.Metadata.UID, Container: c.Name})
		}
	}
}

// all containers, each to be changed where it is.
func (p *pod) all() (all []*podContainer) {
	for _, list := range [][]podContainer{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

func (p *pod) clone() *pod {
	var other pod
	must(json.Unmarshal(encode(p), &other))
	return &other
}

// resize changes one container of p, which is what it asks for from then on.
func (q *resizeQuestion) resize(r *random, d *demand, p *pod) {
	c := pick(r, p.all()...)
	guaranteed := c.Resources.Requests["cpu"] == c.Resources.Limits["cpu"]
	next := map[string]string{}
	for name, amount := range c.Resources.Limits {
		next[name] = amount
	}
	if !r.chance(15) {
		next["cpu"] = otherCPUs(r, d, int(milliOf(next["cpu"])))
	}
	if r.chance(35) {
		next["memory"] = d.memoryAmount(r)
	}
	c.Resources.Limits = next
	if guaranteed {
		c.Resources.Requests = next
	} else if milliOf(next["cpu"]) == milliOf(c.Resources.Requests["cpu"]) {
		next["cpu"] = "1" // no resize changes a pod's class
	}
	step := resizeStep{Op: "update", Sandbox: p.Metadata.UID, Container: c.Name,
		CPUMilli: int(milliOf(c.Resources.Requests["cpu"])), CPULimitMilli: int(milliOf(next["cpu"]))}
	for _, name := range []string{"memory", "hugepages-2Mi", "hugepages-1Gi"} {
		if amount, asked := c.Resources.Requests[name]; asked {
			q := bytesOf(amount)
			step.Memory = append(step.Memory, memoryAsk{pageBytes[name], uint64(q.Value())})
		}
	}
	q.Steps = append(q.Steps, step)
}

func milliOf(amount string) int64 {
	q := resource.MustParse(amount)
	return q.MilliValue()
}

func otherCPUs(r *random, d *demand, milli int) string {
	whole := (milli + 999) / 1000
	switch {
	case r.chance(12):
		return fmt.Sprintf("%dm", max(100, milli-500))
	case r.chance(45):
		return strconv.Itoa(whole + r.between(1, pick(r, 1, 2, 4, d.cpus)))
	default:
		return strconv.Itoa(max(1, whole-r.between(0, max(1, whole))))
	}
}

// dropRefused leaves out what happens to pods that numafit does not let in: no runtime would go on
// with them, and numafit would decide their containers one by one. So it does with what was left of
// a pod after its start was left out.
func dropRefused(question []byte, ask func([]byte) (value, error)) ([]byte, error) {
	for {
		v, err := decode(question)
		if err != nil {
			return nil, err
		}
		answer, err := ask(question)
		if err != nil {
			return nil, err
		}
		steps, _ := member(v, "steps").([]any)
		results, _ := member(answer, "steps").([]any)
		left := keepAdmitted(steps, results)
		if len(left) == len(steps) {
			return question, nil
		}
		v.(map[string]any)["steps"] = left
		question = encode(v)
	}
}

// keepAdmitted: up to the first pod that is refused the answers mean something.
func keepAdmitted(steps, results []any) (left []any) {
	here, created := map[string]bool{}, map[string]bool{}
	refused, dropped := map[string]bool{}, false
	for i, step := range steps {
		sandbox, _ := member(step, "sandbox_id").(string)
		container := sandbox + "." + fmt.Sprint(member(step, "container_name"))
		switch op, _ := member(step, "op").(string); op {
		case "run-pod":
			uid := fmt.Sprint(member(member(member(step, "pod"), "metadata"), "uid"))
			if admit, there := member(elementOf(results, i), "admit").(bool); there && !admit && !dropped {
				refused[uid] = true
			}
			here[uid] = true
		case "create":
			if refused[sandbox] || !here[sandbox] || !hasContainer(steps[:i], sandbox, step) {
				dropped = true
				continue
			}
			created[container] = true
		case "stop-pod":
			if refused[sandbox] || !here[sandbox] {
				dropped = true
				continue
			}
			delete(here, sandbox)
		default:
			if refused[sandbox] || !here[sandbox] || !created[container] {
				dropped = true
				continue
			}
		}
		left = append(left, step)
	}
	return left
}

func elementOf(list []any, i int) value {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// hasContainer: the pod that was started has the container that the step names.
func hasContainer(before []any, sandbox string, step value) bool {
	return slices.ContainsFunc(before, func(one any) bool {
		p := member(one, "pod")
		if member(member(p, "metadata"), "uid") != sandbox {
			return false
		}
		inits, _ := member(member(p, "spec"), "initContainers").([]any)
		apps, _ := member(member(p, "spec"), "containers").([]any)
		return slices.ContainsFunc(slices.Concat(inits, apps),
			func(c any) bool { return member(c, "name") == member(step, "container_name") })
	})
}

// What the kubelet answers

func upstreamResize(q *resizeQuestion) any {
	started, err := q.node().start()
	if err != nil {
		return refusal{err.Error()}
	}
	k := &resizing{kubelet: started, q: q, kinds: []string{string(v1.ResourceMemory)}}
	for _, name := range []string{"hugepages-2Mi", "hugepages-1Gi"} {
		if _, there := q.Machine.Nodes[0].HugePages[name]; there {
			k.kinds = append(k.kinds, name)
		}
	}
	steps := []map[string]any{}
	for i := range q.Steps {
		answer := k.event(&q.Steps[i])
		collect(k.cpus)
		answer["pool"] = list(k.cpuState.GetDefaultCPUSet())
		k.mark(answer)
		steps = append(steps, answer)
	}
	return map[string]any{"steps": steps}
}

// resizing is a kubelet, and what the question says of it.
type resizing struct {
	*kubelet
	q     *resizeQuestion
	kinds []string // of memory, as numafit numbers them
}

func (k *resizing) event(step *resizeStep) map[string]any {
	if step.Sandbox != "" && k.active.get(step.Sandbox) == nil {
		return map[string]any{"no such pod": true} // the managers refused it, and numafit did not
	}
	switch step.Op {
	case "run-pod":
		return k.runPod(step.Pod.kubernetes())
	case "create":
		p, c := k.running(step)
		k.cpus.AddContainer(klog.Background(), p, c, step.Sandbox+"."+c.Name)
		k.memory.AddContainer(klog.Background(), p, c, step.Sandbox+"."+c.Name)
		started(k.topology, p, c, step.Sandbox+"."+c.Name)
		return k.given(p, c)
	case "update":
		return k.resize(step)
	case "stop-pod":
		k.active.remove(step.Sandbox)
	}
	return map[string]any{}
}

// running is a container that was started.
func (k *resizing) running(step *resizeStep) (*v1.Pod, *v1.Container) {
	p := k.active.get(step.Sandbox)
	for _, c := range containers(p) {
		if c.Name == step.Container {
			return p, c
		}
	}
	panic("no container " + step.Container)
}

func (k *resizing) runPod(p *v1.Pod) map[string]any {
	k.active.add(p)
	result := admit(k.topology, p)
	if !result.Admit {
		k.active.remove(string(p.UID))
		return map[string]any{"admit": false, "reason": result.Reason, "message": result.Message}
	}
	all := []map[string]any{}
	for _, c := range containers(p) {
		one := k.given(p, c)
		one["name"] = c.Name
		all = append(all, one)
	}
	return map[string]any{"admit": true, "containers": all}
}

// given is what a container has for itself.
func (k *resizing) given(p *v1.Pod, c *v1.Container) map[string]any {
	answer := map[string]any{"admit": true, "cpus": nil, "memory": []memoryBlock{}}
	if cpus, exclusive := k.cpuState.GetCPUSet(string(p.UID), c.Name); exclusive {
		answer["cpus"] = list(cpus)
	}
	all := []memoryBlock{}
	for _, b := range blocks(k.memory, p, c) {
		all = append(all, memoryBlock{strconv.Itoa(slices.Index(k.kinds, b.Type)), b.Nodes, b.Size})
	}
	slices.SortFunc(all, func(a, b memoryBlock) int { return cmp.Compare(a.Type, b.Type) })
	answer["memory"] = all
	return answer
}

// resize asks the managers as the kubelet does, with the pod as it is to be. v1.37.1 lets each
// resize in and leaves what the container has; what numafit answers instead is a row of the table.
func (k *resizing) resize(step *resizeStep) map[string]any {
	before, c := k.running(step)
	had := k.given(before, c)
	next := before.DeepCopy()
	k.active.remove(step.Sandbox)
	k.active.add(next)
	_, changed := k.running(step)
	step.apply(changed)
	k.unwatched = true
	result := k.topology.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: next, Operation: lifecycle.ResizeOperation})
	k.unwatched = false
	if has := k.given(next, changed); !result.Admit || difference("", decoded(had), decoded(has)) != "" {
		return map[string]any{"admit": "the managers do something", "had": had, "has": has, "message": result.Message}
	}
	hints, exclusive := hintsFor(k.cpus, next, changed)["cpu"]
	rows, refused := (&change{resizing: k, pod: next, c: changed}).decide()
	answer := k.given(next, changed)
	if refused != nil {
		answer["admit"], answer["reason"], answer["message"] = false, refused.Reason, refused.Message
		k.active.remove(step.Sandbox)
		k.active.add(before)
	}
	if exclusive && len(hints) == 0 {
		answer["lost at a restart"] = true
	}
	answer["rows"] = rows
	return answer
}

func decoded(v any) value {
	d, err := decode(encode(v))
	must(err)
	return d
}

func (step *resizeStep) apply(c *v1.Container) {
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	for name, amount := range c.Resources.Limits {
		limits[name] = amount
	}
	for name, amount := range c.Resources.Requests {
		requests[name] = amount
	}
	requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(step.CPUMilli), resource.DecimalSI)
	limits[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(step.CPULimitMilli), resource.DecimalSI)
	for _, m := range step.Memory {
		if m.PageBytes == 0 {
			requests[v1.ResourceMemory] = *resource.NewQuantity(int64(m.Bytes), resource.BinarySI)
			limits[v1.ResourceMemory] = requests[v1.ResourceMemory]
		}
	}
	c.Resources = v1.ResourceRequirements{Requests: requests, Limits: limits}
}

// What is compared

// withoutRows: of both what they have in common. A kubelet that does not start is no case.
func withoutRows(q *resizeQuestion, upstream, ours value) (value, value) {
	if member(upstream, "steps") == nil || member(ours, "steps") == nil {
		return upstream, ours
	}
	theirs, _ := member(upstream, "steps").([]any)
	mine, _ := member(ours, "steps").([]any)
	var left, right []any
	for _, step := range theirs {
		one := merged(step.(map[string]any), nil)
		delete(one, "rows")
		delete(one, "takes_unavailable")
		delete(one, "gives_fewer")
		delete(one, "lost at a restart")
		left = append(left, one)
	}
	for i, step := range mine {
		right = append(right, reduced(q.Steps[i].Op, step))
	}
	return map[string]any{"steps": left}, map[string]any{"steps": right}
}

// reduced is numafit's answer in the words of ours.
func reduced(op string, step value) value {
	one := map[string]any{}
	parts, whole := member(step, "parts").([]any)
	admit := member(step, "admit")
	switch {
	case whole:
		all := []any{}
		for _, part := range parts {
			c := hasOf(part)
			c["name"] = member(part, "container_name")
			all = append(all, c)
		}
		one["containers"] = all
	case op == "create" || op == "update":
		one = hasOf(step)
	}
	if admit != nil {
		one["admit"] = admit
	}
	if admit == false {
		message, _ := member(step, "message").(string)
		if rest, named := strings.CutPrefix(message, "container "); named && op == "run-pod" {
			_, message, _ = strings.Cut(rest, ": ") // the kubelet does not say which one it is
		}
		one["reason"], one["message"] = member(step, "reason"), message
	}
	one["pool"] = decoded(list(kernelList(member(step, "pool"))))
	return one
}

func hasOf(decision value) map[string]any {
	has := map[string]any{"admit": true, "cpus": nil}
	if member(decision, "exclusive") == true {
		has["cpus"] = decoded(list(kernelList(member(decision, "cpus"))))
	}
	all := []memoryBlock{}
	list_, _ := member(decision, "blocks").([]any)
	for _, b := range list_ {
		kind := fmt.Sprint(member(b, "kind"))
		size, _ := strconv.ParseUint(fmt.Sprint(member(b, "bytes")), 10, 64)
		all = append(all, memoryBlock{kind, list(kernelList(member(b, "nodes"))), size})
	}
	slices.SortFunc(all, func(a, b memoryBlock) int { return cmp.Compare(a.Type, b.Type) })
	has["memory"] = decoded(all)
	return has
}

func kernelList(v value) cpuset.CPUSet {
	text, _ := v.(string)
	s, err := cpuset.Parse(text)
	must(err)
	return s
}

func knownResize(q *resizeQuestion, upstream, ours value) string {
	if why, refused := member(ours, "error").(string); refused && strings.HasSuffix(why, "no CPU is left for containers") {
		return differsReserved
	}
	if member(upstream, "error") != nil {
		return "the kubelet does not start with these settings"
	}
	if member(upstream, "steps") == nil {
		return knownNode(q.node(), upstream, ours)
	}
	theirs, mine := withoutRows(q, upstream, ours)
	left, _ := member(theirs, "steps").([]any)
	right, _ := member(mine, "steps").([]any)
	at := 0
	for at < min(len(left), len(right)) && difference("", left[at], right[at]) == "" {
		at++
	}
	bug := knownNode(q.node(), map[string]any{"steps": marked(left, upstream)}, mine)
	message, _ := member(elementOf(right, at), "message").(string)
	switch {
	case at < len(q.Steps) && q.Steps[at].Op == "run-pod" && strings.HasPrefix(message, "the shared pool would be left with"):
		return differsPool
	case bug != "":
		return bug
	case q.cutsCores(at):
		return differsCores
	case (serveTogether(left[:at]) || startsSeveral(q, at)) && q.Settings.MemoryManagerPolicy == "Static" &&
		joinsGroup(elementOf(left, at), elementOf(right, at)):
		return differsGroups
	}
	return ""
}

// cutsCores: by full-pcpus-only the kubelet may give parts of cores, as their sizes differ or some are
// reserved in part; or the step takes a part of a core away from a container.
func (q *resizeQuestion) cutsCores(at int) bool {
	if q.Settings.CPUManagerPolicyOptions["full-pcpus-only"] != "true" {
		return false
	}
	topo := q.Machine.topology()
	group := topo.CPUsPerCore()
	reserved := cpuset.New()
	if k, err := q.node().start(); err == nil {
		reserved = k.reserved()
	}
	for _, core := range topo.CPUDetails.Cores().List() {
		cpus := topo.CPUDetails.CPUsInCores(core)
		if left := cpus.Difference(reserved).Size(); cpus.Size() != group || left != 0 && left != group {
			return true
		}
	}
	return at < len(q.Steps) && q.Steps[at].Op == "update" && q.Steps[at].CPUMilli%(1000*group) != 0
}

// marked: the steps that are compared, with what upstream says of CPUs that it gave wrongly.
func marked(steps []any, upstream value) []any {
	whole, _ := member(upstream, "steps").([]any)
	for i := range steps {
		for _, key := range []string{"takes_unavailable", "gives_fewer"} {
			if wrongly := member(elementOf(whole, i), key); wrongly != nil {
				steps[i] = merged(steps[i].(map[string]any), map[string]any{key: wrongly})
			}
		}
	}
	return steps
}

// serveTogether: some container has memory of several NUMA nodes, which are a group then.
func serveTogether(steps []any) bool {
	return slices.ContainsFunc(steps, func(step any) bool {
		all, _ := member(step, "containers").([]any)
		return slices.ContainsFunc(all, func(c any) bool {
			memory, _ := member(c, "memory").([]any)
			return slices.ContainsFunc(memory, func(b any) bool { return setOf(member(b, "nodes")).Size() > 1 })
		})
	})
}

// startsSeveral: a pod of several containers comes, of which the first ones may make a group.
func startsSeveral(q *resizeQuestion, at int) bool {
	return at < len(q.Steps) && q.Steps[at].Pod != nil && len(q.Steps[at].Pod.all()) > 1
}

// joinsGroup: the first memory that differs is of some of the NUMA nodes that numafit takes; or one
// of the two finds none.
func joinsGroup(theirs, ours value) bool {
	if member(theirs, "admit") == false && member(ours, "admit") == false {
		return true // of which container it is said, and how far it got
	}
	for _, step := range []value{theirs, ours} {
		message, _ := member(step, "message").(string)
		if strings.Contains(message, "[memorymanager]") {
			return true
		}
	}
	left, _ := member(theirs, "containers").([]any)
	right, _ := member(ours, "containers").([]any)
	for i := range min(len(left), len(right)) {
		all, _ := member(left[i], "memory").([]any)
		for j, b := range all {
			mine, _ := member(right[i], "memory").([]any)
			one, other := setOf(member(b, "nodes")), setOf(member(elementOf(mine, j), "nodes"))
			if !one.Equals(other) {
				return one.IsSubsetOf(other) || one.Size() == 1 // the kubelet took one out of a group
			}
		}
	}
	return false
}

func describeResize(q *resizeQuestion, upstream value, count func(axis, class string)) {
	count("n", strconv.Itoa(len(q.Machine.Nodes)))
	count("policy", q.Settings.TopologyManagerPolicy)
	count("scope", q.Settings.TopologyManagerScope)
	count("memory", q.Settings.MemoryManagerPolicy)
	for name, on := range q.Settings.CPUManagerPolicyOptions {
		if on == "true" {
			count("option", name)
		}
	}
	steps, _ := member(upstream, "steps").([]any)
	for _, step := range steps {
		rows, _ := member(step, "rows").([]any)
		for _, row := range rows {
			count("resize", fmt.Sprint(row))
		}
		if member(step, "lost at a restart") != nil {
			count("restart", "the managers would refuse the container anew: it has other CPUs than it asks for")
		}
		if reason, refused := member(step, "reason").(string); refused && len(rows) == 0 {
			count("admission", "refused: "+reason)
		} else if member(step, "containers") != nil {
			count("admission", "admitted")
		}
	}
}
