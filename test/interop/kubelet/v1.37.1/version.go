package main

import (
	"context"
	"unsafe" // and for go:linkname

	cadvisor "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
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
const kubernetesVersion = "1.37"

type (
	numaNode    = cadvisor.Node
	machineInfo = cadvisor.MachineInfo
	cpuCore     = cadvisor.Core
	cpuCache    = cadvisor.Cache
	hugePages   = cadvisor.HugePagesInfo
)

//go:linkname takeByTopologyNUMADistributed k8s.io/kubernetes/pkg/kubelet/cm/cpumanager.takeByTopologyNUMADistributed
func takeByTopologyNUMADistributed(_ klog.Logger, _ *topology.CPUTopology, available cpuset.CPUSet, want, group int,
	_ cpumanager.CPUSortingStrategy, bySocket bool) (cpuset.CPUSet, error)

func takeDistributed(t *topology.CPUTopology, available cpuset.CPUSet, want, group int,
	strategy cpumanager.CPUSortingStrategy, bySocket bool) (cpuset.CPUSet, error) {
	return takeByTopologyNUMADistributed(klog.Background(), t, available, want, group, strategy, bySocket)
}

func newTopology(nodes []numaNode, policy, scope string, options map[string]string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(klog.Background(), nodes, policy, scope, options)
}

// GetAffinity is of topologymanager.Store.
func (s *hintStore) GetAffinity(_ klog.Logger, uid, container string) topologymanager.TopologyHint {
	return s.affinity(uid, container)
}

func affinityOf(s topologymanager.Store, uid, container string) topologymanager.TopologyHint {
	return s.GetAffinity(klog.Background(), uid, container)
}

func hintsFor(m topologymanager.HintProvider, p *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return m.GetTopologyHints(klog.Background(), p, c, lifecycle.AddOperation)
}

func hintsForPod(m topologymanager.HintProvider, p *v1.Pod) map[string][]topologymanager.TopologyHint {
	return m.GetPodTopologyHints(klog.Background(), p, lifecycle.AddOperation)
}

func allocate(m topologymanager.HintProvider, p *v1.Pod, c *v1.Container) error {
	return m.Allocate(context.Background(), p, c, lifecycle.AddOperation)
}

func hintsOfPolicy(m cpumanager.Policy, s state.State, p *v1.Pod, c *v1.Container) map[string][]topologymanager.TopologyHint {
	return m.GetTopologyHints(klog.Background(), s, p, c, lifecycle.AddOperation)
}

func allocateByPolicy(m cpumanager.Policy, s state.State, p *v1.Pod, c *v1.Container) error {
	return m.Allocate(klog.Background(), s, p, c, lifecycle.AddOperation)
}

func (c *cpuProvider) Allocate(ctx context.Context, p *v1.Pod, container *v1.Container, op lifecycle.Operation) error {
	return c.watch(p, container, func() error { return c.Manager.Allocate(ctx, p, container, op) })
}

func (d *deviceProvider) Allocate(ctx context.Context, p *v1.Pod, c *v1.Container, op lifecycle.Operation) error {
	d.UpdateAllocatedDevices(klog.Background())
	return d.watch(p, c, func() error { return d.ManagerImpl.Allocate(ctx, p, c, op) })
}

// newForms are questions that older versions do not answer: pods with resources of their own, and
// containers that are resized in place.
var newForms = []*form{podLevelForm, resizeForm}

var podLevelForm = formOf("podlevel", "machine", randomPodLevel, upstreamNode, knownNode, describeNode,
	"steps", "steps.*.pod.spec.initContainers", "steps.*.pod.spec.containers", "machine.devices",
	"settings.cpuManagerPolicyOptions", "settings.topologyManagerPolicyOptions")

func init() { podLevelForm.short = 4000 }

// openGates is for the life of the process: it is asked questions of one form.
func openGates(form string) {
	gates := map[string]map[string]bool{
		podLevelFormName: {string(features.PodLevelResources): true, string(features.PodLevelResourceManagers): true},
		resizeFormName: {string(features.InPlacePodVerticalScalingExclusiveCPUs): true,
			string(features.InPlacePodVerticalScalingExclusiveMemory): true},
	}
	must(feature.DefaultMutableFeatureGate.SetFromMap(gates[form]))
}

// AllocatePod is for pods with resources of their own: what such a pod is given must be free, and
// what its containers have within it.
func (c *cpuProvider) AllocatePod(logger klog.Logger, p *v1.Pod, op lifecycle.Operation) error {
	collect(c.Manager)
	may := c.k.cpuState.GetDefaultCPUSet().Difference(c.k.reserved())
	err := c.Manager.AllocatePod(logger, p, op)
	given, exclusive := c.k.cpuState.GetPodCPUSet(string(p.UID))
	if !exclusive && err == nil {
		return nil
	}
	h := affinityOf(c.k.topology, string(p.UID), containers(p)[0].Name)
	want := int(p.Spec.Resources.Requests.Cpu().Value())
	c.k.notice(given.IsSubsetOf(may), bugOfTaking(c.k.cpuTopology, may, bitsOf(h), want, c.k.cpuOptions))
	left := given
	for _, one := range containers(p) {
		cpus, _ := c.k.cpuState.GetCPUSet(string(p.UID), one.Name)
		want := int(one.Resources.Requests.Cpu().Value())
		c.k.notice(cpus.IsSubsetOf(given),
			bugOfTaking(c.k.cpuTopology, left, nil, min(want, left.Size()), c.k.cpuOptions))
		if cpus.Size() == want && !isInit(p, one) {
			left = left.Difference(cpus)
		}
	}
	return err
}

// own adds what the pod as one was given.
func own(k *kubelet, p *v1.Pod, answer map[string]any) {
	uid := string(p.UID)
	if cpus, exclusive := k.cpuState.GetPodCPUSet(uid); exclusive {
		answer["pod_cpus"] = list(cpus)
	}
	if all := blocksOf(k.memory.GetPodMemory(uid)); len(all) > 0 {
		answer["pod_memory"] = all
	}
}

func admit(t topologymanager.Manager, p *v1.Pod) lifecycle.PodAdmitResult {
	return t.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: p, Operation: lifecycle.AddOperation})
}

func started(t topologymanager.Manager, p *v1.Pod, c *v1.Container, id string) {
	t.AddContainer(klog.Background(), p, c, id)
}

func memoryOf(m memorymanager.Manager, p *v1.Pod, c *v1.Container) []memory.Block {
	return m.GetMemory(klog.Background(), string(p.UID), c.Name)
}

//go:linkname generateHints k8s.io/kubernetes/pkg/kubelet/cm/cpumanager.(*staticPolicy).generateCPUTopologyHints
func generateHints(policy unsafe.Pointer, available, reusable cpuset.CPUSet, request int) []topologymanager.TopologyHint
