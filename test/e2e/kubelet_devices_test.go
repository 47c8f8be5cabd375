package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Pods that ask for numafit.io/cpu: the kubelet's Topology Manager aligns these tokens with GPUs, and
// numafitd makes CPUs of their NUMA nodes of them.

const (
	token    = "numafit.io/cpu"
	reserved = 2 // CPUs
)

func withDevices(policy string) options {
	return withPodsAPI(besideKubelet(policy, "devicePlugin.enabled=true", "podResources.enabled=true", "podsAPI.enabled=true"))
}

// newDeviceNode waits until each of the kubelet's services is joined.
func newDeviceNode(t *testing.T, o options) *node {
	t.Helper()
	n := newNode(t, o)
	n.awaitServices()
	n.awaitTokens(madeCPUs - reserved)
	return n
}

func (n *node) awaitServices() {
	n.Helper()
	n.await("the kubelet's services", func() bool {
		k := n.status().Kubelet
		return k.DevicePlugin == "up" && k.PodResources == "up" && k.PodsAPI == "up"
	})
}

// exclusively asks for CPUs by token, and for GPUs.
func exclusively(name string, cpus, gpus int) want {
	w := want{name: name, milli: int64(cpus) * 1000, memory: 64 * mi, devices: map[string]int{token: cpus}}
	if gpus > 0 {
		w.devices[gpu] = gpus
	}
	return w
}

func (n *node) podResources() resources.PodResourcesListerClient {
	n.Helper()
	if n.lister == nil {
		conn, err := grpc.NewClient("unix://"+filepath.Join(kubeletRoot, "pod-resources/kubelet.sock"),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(quickly))
		n.must(err)
		n.Cleanup(func() { conn.Close() })
		n.lister = resources.NewPodResourcesListerClient(conn)
	}
	return n.lister
}

// allocatable is how many of these devices are healthy, in the kubelet's eyes; -1: it does not answer.
func (n *node) allocatable(resource string) (nr int) {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	all, err := n.podResources().GetAllocatableResources(ctx, &resources.AllocatableResourcesRequest{})
	if err != nil { // it starts, or is asked too often
		return -1
	}
	for _, d := range all.Devices {
		if d.ResourceName == resource {
			nr += len(d.DeviceIds)
		}
	}
	return nr
}

// given are the ids of the devices that the kubelet gave to the container, by resource.
func (n *node) given(pod, container string) map[string][]string {
	n.Helper()
	found := map[string][]string{}
	n.await("PodResources to answer", func() bool {
		ctx, cancel := soon()
		defer cancel()
		all, err := n.podResources().List(ctx, &resources.ListPodResourcesRequest{})
		if err != nil {
			return false
		}
		for _, p := range all.PodResources {
			for _, c := range p.Containers {
				for _, d := range c.Devices {
					if p.Name == pod+"-"+nodeName && c.Name == container {
						found[d.ResourceName] = append(found[d.ResourceName], d.DeviceIds...)
					}
				}
			}
		}
		return true
	})
	return found
}

// checkTokens insists that the container has as many CPUs on each NUMA node as tokens of it, and
// returns those nodes.
func (n *node) checkTokens(p *pod, container string) (nodes []int) {
	n.Helper()
	h := n.held(p.containers[container])
	tokens, cpus := map[int]int{}, map[int]int{}
	for _, id := range n.given(p.name, container)[token] {
		tokens[nodeOfDevice(n.T, id)]++
	}
	for cpu := range n.set(h.CPUs) {
		cpus[nodeOf(cpu)]++
	}
	if !h.Exclusive || len(tokens) == 0 || !maps.Equal(tokens, cpus) {
		n.Errorf("%s of %s has tokens on nodes %v, and CPUs %s on nodes %v", container, p, tokens, h.CPUs, cpus)
	}
	n.checkNear(h)
	return slices.Sorted(maps.Keys(cpus))
}

// gpuNodes are the NUMA nodes of the GPUs that the container sees.
func (n *node) gpuNodes(id string) (nodes []int) {
	n.Helper()
	env := strings.TrimSpace(n.inside(id, "/bin/sh", "-c", "echo $"+gpuEnv))
	for _, g := range strings.FieldsFunc(env, func(c rune) bool { return c == ',' }) {
		nodes = append(nodes, nodeOfDevice(n.T, g))
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// awaitTokens waits until the kubelet can give that many.
func (n *node) awaitTokens(nr int) {
	n.Helper()
	last := 0
	n.await(fmt.Sprintf("%d tokens", nr), func() bool { last = n.allocatable(token); return last == nr })
}

func TestKubeletAlignsCPUsWithGPUsUnderSingleNumaNode(t *testing.T) {
	alignsWithGPUs(t, "single-numa-node")
}

func TestKubeletAlignsCPUsWithGPUsUnderRestricted(t *testing.T) { alignsWithGPUs(t, "restricted") }

func alignsWithGPUs(t *testing.T, policy string) {
	n := newDeviceNode(t, withDevices(policy))
	n.startGPUs()
	fills := n.runStatic("fills", guaranteed, nil, []want{exclusively("main", 8, 1)})
	fetch, proxy := exclusively("fetch", 4, 1), exclusively("proxy", 1, 0)
	fetch.args, proxy.sidecar = []string{"true"}, true
	train := n.runStatic("train", guaranteed, []want{fetch, proxy}, []want{exclusively("main", 4, 2), exclusively("second", 2, 1),
		{name: "log", milli: 500, memory: 64 * mi}})
	for p, names := range map[*pod][]string{fills: {"main"}, train: {"proxy", "main", "second"}} {
		for _, name := range names {
			id, cpus := p.containers[name], n.checkTokens(p, name)
			if gpus := n.gpuNodes(id); len(cpus) != 1 || len(gpus) > 0 && !slices.Equal(cpus, gpus) {
				t.Errorf("%s of %s has CPUs on nodes %v and GPUs on %v", name, p, cpus, gpus)
			}
			n.checkCreated(id)
		}
	}
	if h := n.held(train.containers["log"]); h.Exclusive {
		t.Errorf("half a CPU is one's own: %+v", h)
	}
	n.settle()
}

// Memory is left to the kernel: what the Static policy has on two NUMA nodes depends on who was there
// before, and of that the kubelet knows nothing.
func TestKubeletsTokensOfTwoNodesBecomeCPUsOfBoth(t *testing.T) {
	o := withDevices("restricted")
	o.settings = append(o.settings, "memoryManagerPolicy=None")
	n := newDeviceNode(t, o)
	n.runStatic("small", guaranteed, nil, []want{exclusively("main", 3, 0)})
	if nodes := n.checkTokens(n.runStatic("huge", guaranteed, nil, []want{exclusively("main", 20, 0)}), "main"); len(nodes) != 2 {
		t.Errorf("20 CPUs are on nodes %v", nodes)
	}
	n.settle()
}

func TestKubeletRefusesTokensBeyondOneNodeUnderSingleNumaNode(t *testing.T) {
	n := newDeviceNode(t, withDevices("single-numa-node"))
	n.putPod("huge", guaranteed, nil, []want{exclusively("main", 20, 0)})
	if words := n.refusedOrRuns("huge"); !strings.Contains(words, "TopologyAffinityError") {
		t.Errorf("20 tokens of nodes that have 16: %q", words)
	}
}

func TestKubeletSeesFewerTokensWhereOthersTookTheCPUs(t *testing.T) {
	n := newDeviceNode(t, withDevices("restricted"))
	mine := n.runStatic("mine", guaranteed, nil, []want{exclusively("main", 4, 0)})
	n.awaitTokens(madeCPUs - reserved) // what is given out stays healthy
	n.runStatic("plain", guaranteed, nil, []want{{name: "main", milli: 10000, memory: 64 * mi}})
	n.awaitTokens(madeCPUs - reserved - 10)
	n.checkTokens(mine, "main")
	n.settle()
	n.dropPod("plain")
	n.awaitTokens(madeCPUs - reserved)
	n.dropPod("mine")
	n.awaitTokens(madeCPUs - reserved)
	n.checkTokens(n.runStatic("next", guaranteed, nil, []want{exclusively("main", 16, 0)}), "main")
	n.settle()
}

func TestKubeletsOtherDevicesDrawCPUsNear(t *testing.T) {
	n := newDeviceNode(t, withDevices("single-numa-node"))
	n.startGPUs()
	for i := range nrGPUs / gpusPerNode { // no token: numafitd knows of the GPU from PodResources alone
		p := n.runStatic(fmt.Sprintf("plain%d", i), guaranteed, nil,
			[]want{{name: "main", milli: 6000, memory: 64 * mi, devices: map[string]int{gpu: gpusPerNode}}})
		h := n.held(p.containers["main"])
		n.checkNear(h)
		if nodes := n.gpuNodes(h.ID); len(nodes) != 1 || h.Mems != fmt.Sprint(nodes[0]) {
			t.Errorf("%s has its GPUs on nodes %v, and CPUs %s mems %s", p, nodes, h.CPUs, h.Mems)
		}
	}
	n.settle()
}

// The kubelet admits it: its own managers are off, and it asks for no device.
func TestKubeletsPodThatCannotFitIsRefusedBeforeAnyOfItRuns(t *testing.T) {
	n := newDeviceNode(t, withDevices("single-numa-node"))
	n.putPod("huge", guaranteed, []want{{name: "first", milli: 1000, memory: 64 * mi, args: []string{"true"}}},
		[]want{{name: "main", milli: 20000, memory: 64 * mi}})
	n.await("its refusal", func() bool { return n.grep("kubelet.log", "TopologyAffinityError") != "" })
	if text := n.grep("numafitd.log", "container=first"); text != "" {
		t.Errorf("its init container was created:\n%s", text)
	}
	if told := n.explain("huge-" + nodeName); !strings.Contains(told, "refused") || !strings.Contains(told, "single-numa-node") {
		t.Errorf("numafit explain says: %s", told)
	}
}

func (n *node) explain(pod string) string {
	n.Helper()
	out, _ := exec.Command(os.Getenv("NUMAFIT"), "explain", "--run-directory", n.path("run"), "default/"+pod).CombinedOutput()
	return string(out)
}

func TestKubeletIsToldWhyCPUsAndTokensMustBeAsMany(t *testing.T) {
	n := newDeviceNode(t, withDevices("restricted"))
	w := exclusively("main", 4, 0)
	w.devices[token] = 2
	n.putPod("odd", guaranteed, nil, []want{w})
	n.await("its refusal", func() bool { return n.grep("kubelet.log", "(UnexpectedAdmissionError") != "" })
	if words := n.grep("kubelet.log", "(UnexpectedAdmissionError"); !strings.Contains(words, token) {
		t.Errorf("4 CPUs and 2 tokens: %s", words)
	}
}

func TestKubeletHoldsContainersBackUntilTheRuntimeIsConnected(t *testing.T) {
	n := newDeviceNode(t, withDevices("single-numa-node"))
	n.killDaemon()
	n.must(os.Rename(n.path("nri.sock"), n.path("hidden.sock")))
	n.launchDaemon()
	n.awaitTokens(madeCPUs - reserved)
	n.putPod("early", guaranteed, nil, []want{exclusively("main", 4, 0)})
	n.await("it to wait", func() bool {
		s := n.podStatus("early")
		return s != nil && len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	n.must(os.Rename(n.path("hidden.sock"), n.path("nri.sock")))
	n.waitConnected()
	p := n.awaitStatic("early")
	n.checkTokens(p, "main")
	n.checkCreated(p.containers["main"])
	n.settle()
}

// running is who runs, to compare: a container that was started again has another id.
func (n *node) running() string {
	n.Helper()
	n.look()
	var lines []string
	for _, p := range n.pods {
		for name, id := range p.containers {
			lines = append(lines, fmt.Sprintf("%s/%s %s", p.name, name, id))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestKubeletRestartsFiftyTimesAndNothingIsLost(t *testing.T) {
	const times, tenth = 50, 10
	n := newDeviceNode(t, withDevices("single-numa-node"))
	n.startGPUs()
	names := []string{"a", "b", "plain"}
	n.runStatic("a", guaranteed, nil, []want{exclusively("main", 4, 1)})
	n.runStatic("b", guaranteed, []want{{name: "side", milli: 500, memory: 64 * mi, sidecar: true}},
		[]want{exclusively("main", 7, 0), exclusively("more", 1, 0)})
	n.runStatic("plain", guaranteed, nil, []want{{name: "main", milli: 3000, memory: 64 * mi}})
	tokens := madeCPUs - reserved - 3
	n.awaitTokens(tokens)
	before, places := n.running(), picture(n.settle())
	for i := range times {
		if i%2 == 0 {
			n.kubeletProcess.stop(t)
		} else {
			n.kubeletProcess.kill()
		}
		if i%tenth == tenth-1 { // while the kubelet is down
			n.killDaemon()
			n.startDaemon()
		}
		n.startKubelet()
		if i%tenth == tenth/2 { // under its eyes
			n.killDaemon()
			n.startDaemon()
		}
		n.awaitTokens(tokens)
		n.await("the GPUs", func() bool { return n.allocatable(gpu) == nrGPUs })
		for _, name := range names {
			if words := n.refusedOrRuns(name); words != "" {
				t.Fatalf("restart %d: %s: %s", i, name, words)
			}
		}
		if now := n.running(); now != before {
			t.Fatalf("restart %d: before:\n%s\nnow:\n%s", i, before, now)
		}
	}
	n.checkUnmoved(places)
	n.checkTokens(n.pods["a"], "main")
	n.restartsWhereItWas("a", tokens)
	n.checkTokens(n.runStatic("last", guaranteed, nil, []want{exclusively("main", 8, 1)}), "main")
	n.settle()
}

// restartsWhereItWas: a container that dies comes again with the same devices, and is asked for with
// the annotation of its Allocate.
func (n *node) restartsWhereItWas(name string, tokens int) {
	n.Helper()
	before := n.held(n.pods[name].containers["main"])
	n.must(syscall.Kill(n.pid(before.ID), syscall.SIGKILL))
	n.await("it to come again", func() bool {
		n.look()
		id := n.pods[name].containers["main"]
		return id != "" && id != before.ID
	})
	n.awaitTokens(tokens)
	n.checkTokens(n.pods[name], "main")
	if now := n.held(n.pods[name].containers["main"]); now.Nodes != before.Nodes {
		n.Errorf("it was on %+v, and is on %+v", before, now)
	}
}
