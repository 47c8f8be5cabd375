package main

import (
	_ "unsafe" // for go:linkname

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memory "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// What differs between this version of the kubelet and the others.

// kubernetesVersion is what questions say it is.
const kubernetesVersion = "1.36"

type (
	numaNode    = cadvisor.Node
	machineInfo = cadvisor.MachineInfo
	cpuCore     = cadvisor.Core
	cpuCache    = cadvisor.Cache
	hugePages   = cadvisor.HugePagesInfo
)

//go:linkname takeByTopologyNUMADistributed k8s.io/kubernetes/pkg/kubelet/cm/cpumanager.takeByTopologyNUMADistributed
func takeByTopologyNUMADistributed(_ klog.Logger, _ *topology.CPUTopology, available cpuset.CPUSet, want, group int,
	_ cpumanager.CPUSortingStrategy) (cpuset.CPUSet, error)

func takeDistributed(t *topology.CPUTopology, available cpuset.CPUSet, want, group int,
	strategy cpumanager.CPUSortingStrategy, _ bool) (cpuset.CPUSet, error) {
	return takeByTopologyNUMADistributed(klog.Background(), t, available, want, group, strategy)
}

func newTopology(nodes []numaNode, policy, scope string, options map[string]string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(nodes, policy, scope, options)
}

// GetAffinity is of topologymanager.Store.
func (s *hintStore) GetAffinity(uid, container string) topologymanager.TopologyHint {
	return s.affinity(uid, container)
}

func affinityOf(s topologymanager.Store, uid, container string) topologymanager.TopologyHint {
	return s.GetAffinity(uid, container)
}

func hintsFor(m topologymanager.HintProvider, p *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return m.GetTopologyHints(p, c)
}

func hintsForPod(m topologymanager.HintProvider, p *v1.Pod) map[string][]topologymanager.TopologyHint {
	return m.GetPodTopologyHints(p)
}

func allocate(m topologymanager.HintProvider, p *v1.Pod, c *v1.Container) error {
	return m.Allocate(p, c)
}

func hintsOfPolicy(m cpumanager.Policy, s state.State, p *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return m.GetTopologyHints(klog.Background(), s, p, c)
}

func allocateByPolicy(m cpumanager.Policy, s state.State, p *v1.Pod, c *v1.Container) error {
	return m.Allocate(klog.Background(), s, p, c)
}

func (c *cpuProvider) Allocate(p *v1.Pod, container *v1.Container) error {
	return c.watch(p, container, func() error { return c.Manager.Allocate(p, container) })
}

func (d *deviceProvider) Allocate(p *v1.Pod, c *v1.Container) error {
	d.UpdateAllocatedDevices()
	return d.watch(p, c, func() error { return d.ManagerImpl.Allocate(p, c) })
}

// newForms are questions that this version does not answer.
var newForms []*form

func openGates(string) {}

func own(*kubelet, *v1.Pod, map[string]any) {}

func admit(t topologymanager.Manager, p *v1.Pod) lifecycle.PodAdmitResult {
	return t.Admit(&lifecycle.PodAdmitAttributes{Pod: p, Operation: lifecycle.AddOperation})
}

func started(t topologymanager.Manager, p *v1.Pod, c *v1.Container, id string) {
	t.AddContainer(p, c, id)
}

func memoryOf(m memorymanager.Manager, p *v1.Pod, c *v1.Container) []memory.Block {
	return m.GetMemory(string(p.UID), c.Name)
}
