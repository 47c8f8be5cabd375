package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The kubelet's own program, without an API server: its pods are the files in a folder. It runs on a
// machine of eight NUMA nodes that is made up, and its cgroups and sockets are the test's own.

const (
	kubeletRoot = "/var/lib/kubelet" // the default; /var/lib is the test's own
	nodeName    = "n1"               // static pods have it at the end of their name
	reservedMi  = 50                 // of NUMA node 0
)

type kubeletOptions struct {
	policy string          // of its Topology Manager
	pods   bool            // it aligns whole pods, and prefers close NUMA nodes
	static bool            // its CPU and Memory Manager
	gates  map[string]bool // feature gates
	more   map[string]any  // to its configuration, as a node of a cluster
	args   []string
}

func (n *node) kubeletConfig() map[string]any {
	c := map[string]any{
		"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
		"topologyManagerPolicy": n.kubelet.policy, "featureGates": n.kubelet.gates,
		"cgroupDriver": "cgroupfs", "cgroupRoot": n.cgroup(), "enforceNodeAllocatable": []string{"none"}, "failCgroupV1": false,
		"containerRuntimeEndpoint": "unix://" + n.path("containerd.sock"), "staticPodPath": n.path("pods"),
		"podLogsDir": n.path("logs"), "volumePluginDir": n.path("volume-plugins"), "resolvConf": "",
		"address": "127.0.0.1", "readOnlyPort": n.port, "enableServer": false, "healthzPort": 0,
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": false}},
		"authorization":  map[string]any{"mode": "AlwaysAllow"},
		"oomScoreAdj":    0, "failSwapOn": false, "makeIPTablesUtilChains": false, "localStorageCapacityIsolation": false,
		"imageGCHighThresholdPercent": 100, "evictionHard": map[string]string{"memory.available": fmt.Sprintf("%dMi", reservedMi)},
		"fileCheckFrequency": "1s", "syncFrequency": "1s", "cpuManagerReconcilePeriod": "1s",
	}
	if n.kubelet.pods {
		c["topologyManagerScope"] = "pod"
		c["topologyManagerPolicyOptions"] = map[string]string{"prefer-closest-numa-nodes": "true"}
	}
	if n.kubelet.static {
		c["cpuManagerPolicy"], c["reservedSystemCPUs"] = "static", "0,64"
		c["memoryManagerPolicy"] = "Static"
		c["reservedMemory"] = []any{map[string]any{"numaNode": 0, "limits": map[string]string{"memory": fmt.Sprintf("%dMi", reservedMi)}}}
	}
	maps.Copy(c, n.kubelet.more)
	return c
}

// prepareKubelet makes the machine up, and the kubelet's folders and cgroups.
func (n *node) prepareKubelet() {
	n.Helper()
	n.makeUp()
	n.makeCgroups()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	n.port = l.Addr().(*net.TCPAddr).Port
	n.must(l.Close())
	n.must(os.Mkdir(n.path("pods"), 0o755))
	n.must(os.WriteFile(n.path("kubelet.json"), toJSON(n.kubeletConfig()), 0o600))
}

// makeCgroups makes the one that the kubelet would make for all pods. With its CPU manager at none it
// would put there all CPUs that it knows of, which the kernel does not; what is there it leaves alone.
func (n *node) makeCgroups() {
	n.Helper()
	for _, parent := range cgroupRoots() {
		for _, name := range []string{n.cgroup(), "kubepods"} {
			n.delegate(parent)
			dir := filepath.Join(parent, name)
			n.must(os.MkdirAll(dir, 0o755))                               // cpu and cpuacct may be one
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // version 1: empty at first, and then useless
				if all, err := os.ReadFile(filepath.Join(parent, file)); err == nil {
					n.must(os.WriteFile(filepath.Join(dir, file), all, 0o644))
				}
			}
			parent = dir
		}
	}
}

// cgroupRoots are the roots of all hierarchies: many of version 1, or the one of version 2.
func cgroupRoots() (roots []string) {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	all, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	for _, procs := range all {
		roots = append(roots, filepath.Dir(procs))
	}
	return roots
}

// delegate lets a cgroup of version 2 hand its controllers down.
func (n *node) delegate(dir string) {
	n.Helper()
	controllers, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	for _, c := range strings.Fields(string(controllers)) {
		n.must(os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644))
	}
}

// startKubelet returns when it serves everything: it answers before it has wiped its folder for
// device plugins, and listens there after that.
func (n *node) startKubelet() {
	n.Helper()
	socket := filepath.Join(kubeletRoot, "device-plugins/kubelet.sock")
	os.Remove(socket) // of one that was killed
	n.kubeletProcess = n.start(filepath.Join(os.Getenv("KUBERNETES"), "kubelet"), append([]string{
		"--config=" + n.path("kubelet.json"), "--hostname-override=" + nodeName, "--v=2"}, n.kubelet.args...)...)
	n.await("the kubelet to listen", func() bool {
		_, err := os.Stat(socket)
		return err == nil && n.healthy()
	})
}

func (n *node) healthy() bool {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", n.port))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// podStatus is what the kubelet tells of a pod.
type podStatus struct {
	Phase, Reason, Message string
	ContainerStatuses      []containerStatus
}

type containerStatus struct {
	Name         string
	ContainerID  string
	Ready        bool
	RestartCount int
	State        struct {
		Waiting struct{ Reason, Message string }
	}
}

// podStatus asks the kubelet; nil: it does not know the pod.
func (n *node) podStatus(name string) *podStatus {
	n.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/pods", n.port))
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	n.must(err)
	var all struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   podStatus
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		n.Fatalf("/pods: %v: %s", err, text)
	}
	for _, p := range all.Items {
		if p.Metadata.Name == name+"-"+nodeName {
			return &p.Status
		}
	}
	return nil
}

// manifest is the pod as its file has it. Sidecars are among the init containers.
func manifest(name, qos string, init, containers []want) []byte {
	return manifestWith(name, qos, nil, init, containers)
}

// manifestWith has resources of the pod's own (spec.resources), unless they are nil.
func manifestWith(name, qos string, own *want, init, containers []want) []byte {
	spec := map[string]any{"hostNetwork": true, "enableServiceLinks": false, "automountServiceAccountToken": false,
		"terminationGracePeriodSeconds": 1, "containers": specs(qos, containers)}
	if init != nil {
		spec["initContainers"] = specs(qos, init)
	}
	if own != nil {
		spec["resources"] = specs(guaranteed, []want{*own})[0].(map[string]any)["resources"]
	}
	return toJSON(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}, "spec": spec})
}

func specs(qos string, containers []want) (all []any) {
	for _, w := range containers {
		asks := map[string]string{}
		if w.milli > 0 {
			asks["cpu"] = fmt.Sprintf("%dm", w.milli)
		}
		if w.memory > 0 {
			asks["memory"] = fmt.Sprint(w.memory)
		}
		resources := map[string]any{"requests": asks}
		if qos == guaranteed {
			resources["limits"] = asks
		}
		for name, nr := range w.devices {
			asks[name] = fmt.Sprint(nr)
			resources["limits"] = asks
		}
		args := w.args
		if args == nil {
			args = []string{untilTold}
		}
		c := map[string]any{"name": w.name, "image": image, "imagePullPolicy": "Never", "resources": resources,
			"command": []string{"/bin/sh", "-c"}, "args": args}
		if w.sidecar {
			c["restartPolicy"] = "Always"
		}
		all = append(all, c)
	}
	return all
}

// putPod gives the kubelet a pod's file: at once and whole, or it would see it come, go and come.
func (n *node) putPod(name, qos string, init, containers []want) {
	n.Helper()
	n.putManifest(name, manifest(name, qos, init, containers))
}

func (n *node) putManifest(name string, manifest []byte) {
	n.Helper()
	n.must(os.WriteFile(n.path("pod.json"), manifest, 0o600))
	n.must(os.Rename(n.path("pod.json"), n.path("pods/"+name+".json")))
}

// runStatic waits until all of the pod's containers run.
func (n *node) runStatic(name, qos string, init, containers []want) *pod {
	n.Helper()
	n.putPod(name, qos, init, containers)
	return n.awaitStatic(name)
}

func (n *node) awaitStatic(name string) *pod {
	n.Helper()
	if words := n.refusedOrRuns(name); words != "" {
		n.Fatalf("%s: %s", name, words)
	}
	return n.pods[name]
}

// refusedOrRuns waits until the kubelet has refused the pod, whose words it returns, or until all of
// the pod's containers run.
func (n *node) refusedOrRuns(name string) (words string) {
	n.Helper()
	n.await(name+" to run", func() bool {
		s := n.podStatus(name)
		if s == nil {
			return false
		}
		if s.Phase == "Failed" {
			words = s.Reason + ": " + s.Message
			return true
		}
		if s.runs() {
			n.look()
		}
		return s.runsAs(n.pods[name])
	})
	n.panicsOn(name)
	return words
}

// runs: the kubelet says so of all of the pod's containers.
func (s *podStatus) runs() bool {
	if s == nil || len(s.ContainerStatuses) == 0 {
		return false
	}
	for _, c := range s.ContainerStatuses {
		if !c.Ready {
			return false
		}
	}
	return s.Phase == "Running"
}

// runsAs: these containers run, by the kubelet and by the runtime. When the kubelet or the node has started anew, the
// kubelet shows for a moment what was before, and containers that nobody runs any more.
func (s *podStatus) runsAs(p *pod) bool {
	if !s.runs() || p == nil {
		return false
	}
	for _, c := range s.ContainerStatuses {
		if _, id, _ := strings.Cut(c.ContainerID, "://"); id == "" || p.containers[c.Name] != id {
			return false
		}
	}
	return true
}

// dropPod takes the pod's file away, and waits until it has ended and the kubelet has let go of it.
func (n *node) dropPod(name string) {
	n.Helper()
	n.must(os.Remove(n.path("pods/" + name + ".json")))
	p := n.pods[name]
	n.await(name+" to end", func() bool {
		n.look()
		return n.pods[name] == nil
	})
	if p != nil {
		n.await("the kubelet to forget "+name, func() bool { return n.podStatus(name) == nil && !n.kept(p.config.Metadata.Uid) })
	}
}

// kept: the kubelet's CPU manager counts the pod's CPUs as taken still, or the pod's cgroup is there.
func (n *node) kept(uid string) bool {
	state, _ := os.ReadFile(filepath.Join(kubeletRoot, "cpu_manager_state"))
	for _, root := range cgroupRoots() {
		for _, class := range []string{"", "burstable", "besteffort"} {
			if _, err := os.Stat(filepath.Join(root, n.cgroup(), "kubepods", class, "pod"+uid)); err == nil {
				return true
			}
		}
	}
	return strings.Contains(string(state), uid)
}

// look finds the pods and containers that run, as the runtime knows them.
func (n *node) look() {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	sandboxes, err := n.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	n.must(err)
	containers, err := n.runtime.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}}})
	n.must(err)
	n.pods = map[string]*pod{}
	byID := map[string]*pod{}
	for _, s := range sandboxes.Items {
		p := &pod{name: strings.TrimSuffix(s.Metadata.Name, "-"+nodeName), id: s.Id, containers: map[string]string{},
			config: &cri.PodSandboxConfig{Metadata: s.Metadata}}
		byID[s.Id] = p
		if s.State == cri.PodSandboxState_SANDBOX_READY {
			n.pods[p.name] = p
		}
	}
	for _, c := range containers.Containers {
		byID[c.PodSandboxId].containers[c.Metadata.Name] = c.Id
	}
}

// endKubelet does it in the order in which nothing is left: pods, the kubelet, what it has not yet
// removed of them.
func (n *node) endKubelet() {
	files, _ := filepath.Glob(n.path("pods/*"))
	for _, f := range files {
		os.Remove(f)
	}
	if n.kubeletProcess != nil {
		n.await("all pods to end", func() bool { n.look(); return len(n.pods) == 0 })
		n.kubeletProcess.stop(n.T)
	}
	ctx, cancel := soon()
	defer cancel()
	all, err := n.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	n.must(err)
	for _, s := range all.Items {
		n.removePod(&pod{name: s.Metadata.Name, id: s.Id})
	}
}
