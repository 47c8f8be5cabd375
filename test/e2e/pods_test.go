package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a kubelet makes of pods: sandboxes and containers with cgroup values, in cgroups by class.

const (
	guaranteed = "" // the folder below kubepods
	burstable  = "burstable"
	bestEffort = "besteffort"
	period     = 100000 // us
	mi         = 1 << 20
)

// want is what a container asks for, in Kubernetes' words.
type want struct {
	name   string
	milli  int64
	memory int64
	args   []string // of the shell; nil: until it is told to end

	devices map[string]int // extended resources
	sidecar bool           // among the init containers: one that stays
}

type pod struct {
	name, id   string
	config     *cri.PodSandboxConfig
	qos        string
	containers map[string]string // name: id
}

func (n *node) cgroup() string {
	return "/numafit-e2e-" + filepath.Base(os.TempDir()) + "-" + filepath.Base(n.dir) // run looks for it
}

// podCgroup is a pod's, as the runtime is asked for it. On a node in a virtual machine it is among the kubelet's.
func (n *node) podCgroup(qos, name string) string {
	uid := "poduid-" + name
	switch {
	case n.dir != insideDir:
		return filepath.Join(n.cgroup(), "kubepods", qos, uid)
	case !hasSystemd():
		return filepath.Join("/kubepods", qos, uid)
	case qos != guaranteed:
		qos = "-" + qos
	}
	return "kubepods" + qos + "-" + strings.ReplaceAll(uid, "-", "_") + ".slice"
}

func (n *node) resources(qos string, w want) *cri.LinuxContainerResources {
	r := &cri.LinuxContainerResources{CpuPeriod: period, CpuShares: max(2, w.milli*1024/1000)}
	if qos == guaranteed {
		r.CpuQuota, r.MemoryLimitInBytes = w.milli*period/1000, w.memory
	}
	return r
}

// startPod runs a pod's sandbox, and then its containers.
func (n *node) startPod(name, qos string, containers ...want) *pod {
	n.Helper()
	p, err := n.tryPod(name, qos, containers...)
	n.must(err)
	return p
}

func (n *node) tryPod(name, qos string, containers ...want) (*pod, error) {
	n.Helper()
	return n.tryAnnotatedPod(name, qos, nil, containers...)
}

func (n *node) tryAnnotatedPod(name, qos string, annotations map[string]string, containers ...want) (*pod, error) {
	n.Helper()
	total := want{}
	for _, w := range containers {
		total.milli += w.milli
		total.memory += w.memory
	}
	p := &pod{name: name, qos: qos, containers: map[string]string{}, config: &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: "uid-" + name, Namespace: "default"},
		Annotations:  annotations,
		LogDirectory: n.path("logs"),
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: n.podCgroup(qos, name),
			SecurityContext: &cri.LinuxSandboxSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}},
			Resources: n.resources(qos, total),
		}}}
	ctx, cancel := soon()
	defer cancel()
	made, err := n.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: p.config})
	if err != nil {
		return nil, err
	}
	p.id = made.PodSandboxId
	n.pods[name] = p
	for _, w := range containers {
		if _, err := n.tryContainer(p, w); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (n *node) tryContainer(p *pod, w want) (string, error) {
	ctx, cancel := soon()
	defer cancel()
	args := w.args
	if args == nil {
		args = []string{untilTold}
	}
	made, err := n.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: p.id, SandboxConfig: p.config,
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: w.name},
			Labels:   map[string]string{"io.kubernetes.container.name": w.name},
			Image:    &cri.ImageSpec{Image: image, UserSpecifiedImage: image}, // CRI-O insists on both
			Command:  []string{"/bin/sh", "-c"}, Args: args,
			LogPath: p.name + "-" + w.name + ".log",
			Linux: &cri.LinuxContainerConfig{Resources: n.resources(p.qos, w),
				SecurityContext: &cri.LinuxContainerSecurityContext{
					NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}}},
		}})
	if err != nil {
		return "", err
	}
	p.containers[w.name] = made.ContainerId
	_, err = n.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId})
	return made.ContainerId, err
}

func (n *node) addContainer(p *pod, w want) string {
	n.Helper()
	id, err := n.tryContainer(p, w)
	n.must(err)
	return id
}

func (n *node) removeContainer(p *pod, name string) {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	_, err := n.runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: p.containers[name]})
	n.must(err)
	_, err = n.runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: p.containers[name]})
	n.must(err)
	delete(p.containers, name)
}

func (n *node) removePod(p *pod) {
	ctx, cancel := soon()
	defer cancel()
	delete(n.pods, p.name)
	if _, err := n.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		n.Errorf("StopPodSandbox of %s: %v", p.name, err)
	}
	if _, err := n.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
		n.Errorf("RemovePodSandbox of %s: %v", p.name, err)
	}
}

// setCPUs does what a kubelet with the static CPU manager does: it sets a container's cpuset itself.
func (n *node) setCPUs(id, cpus, mems string) {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	_, err := n.runtime.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: id,
		Linux: &cri.LinuxContainerResources{CpusetCpus: cpus, CpusetMems: mems}})
	n.must(err)
}

// resize does what a kubelet does when a running pod's resources are changed.
func (n *node) resize(p *pod, w want) error {
	ctx, cancel := soon()
	defer cancel()
	_, err := n.runtime.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{
		ContainerId: p.containers[w.name], Linux: n.resources(p.qos, w)})
	return err
}

// inside is what a command prints in the container.
func (n *node) inside(id string, command ...string) string {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	r, err := n.runtime.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: int64(patience.Seconds())})
	n.must(err)
	if r.ExitCode != 0 {
		n.Fatalf("%s in %.12s: status %d: %s", strings.Join(command, " "), id, r.ExitCode, r.Stderr)
	}
	return string(r.Stdout)
}

// pid is that of the container's first process.
func (n *node) pid(id string) int {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	s, err := n.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id, Verbose: true})
	n.must(err)
	var info struct{ Pid int }
	if err := json.Unmarshal([]byte(s.Info["info"]), &info); err != nil || info.Pid == 0 {
		n.Fatalf("no process of %.12s: %v: %s", id, err, s.Info["info"])
	}
	return info.Pid
}

func (p *pod) String() string { return fmt.Sprintf("%s(%.12s)", p.name, p.id) }
