package interop

import (
	_ "unsafe" // for go:linkname

	cadvisor "github.com/google/cadvisor/info/v1"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	limits "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// What differs between this version of the kubelet and the others.

type numaNode = cadvisor.Node

//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(socket string, _ []numaNode, _ topologymanager.Store) (*devicemanager.ManagerImpl, error)

func newTopology(nodes []numaNode, policy string, options map[string]string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(nodes, policy, "container", options)
}

func newDevices(socket string, nodes []numaNode, t topologymanager.Manager) (*devicemanager.ManagerImpl, error) {
	d, err := newManagerImpl(socket, nodes, t)
	if err == nil {
		t.AddHintProvider(d)
	}
	return d, err
}

func startDevices(d *devicemanager.ManagerImpl, active func() []*v1.Pod) error {
	return d.Start(active, allReady{}, containermap.NewContainerMap(), sets.New[string]())
}

func stopDevices(d *devicemanager.ManagerImpl) error { return d.Stop() }

func capacityOf(d *devicemanager.ManagerImpl) (all, healthy v1.ResourceList) {
	all, healthy, _ = d.GetCapacity()
	return all, healthy
}

func healthyDevices(d *devicemanager.ManagerImpl) devicemanager.ResourceDeviceInstances {
	return d.GetAllocatableDevices()
}

func runOptions(d *devicemanager.ManagerImpl, p *v1.Pod, c *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return d.GetDeviceRunContainerOptions(p, c)
}

func admit(t topologymanager.Manager, p *v1.Pod) lifecycle.PodAdmitResult {
	return t.Admit(&lifecycle.PodAdmitAttributes{Pod: p})
}

func affinityOf(t topologymanager.Manager, uid, container string) topologymanager.TopologyHint {
	return t.GetAffinity(uid, container)
}

// letGo ends the kubelet's connection to the plugin of that resource.
func (k *kubelet) letGo(resource, _ string) {
	k.devices.GetWatcherHandler().DeRegisterPlugin(resource)
}

func limited() grpc.ServerOption {
	return limits.WithRateLimiter("podresources", podresources.DefaultQPS,
		podresources.DefaultBurstTokens)
}

func (k *kubelet) UpdateAllocatedDevices() { k.devices.UpdateAllocatedDevices() }

func (k *kubelet) GetAllocatableDevices() []*podresourcesapi.ContainerDevices {
	return rows(healthyDevices(k.devices))
}

// noOther provides what the device manager does not: CPUs, memory and claimed devices.
type noOther struct{}

func (noOther) GetCPUs(string, string) []int64                              { return nil }
func (noOther) GetAllocatableCPUs() []int64                                 { return nil }
func (noOther) GetMemory(string, string) []*podresourcesapi.ContainerMemory { return nil }
func (noOther) GetAllocatableMemory() []*podresourcesapi.ContainerMemory    { return nil }
func (noOther) GetDynamicResources(*v1.Pod, *v1.Container) []*podresourcesapi.DynamicResource {
	return nil
}

func (k *kubelet) podResources() podresourcesapi.PodResourcesListerServer {
	return podresources.NewV1PodResourcesServer(podresources.PodResourcesProviders{
		Pods: k, Devices: k, Cpus: noOther{}, Memory: noOther{}, DynamicResources: noOther{}})
}

// There is no Pods API yet, nor its socket, nor a feature gate for it: this kubelet panics when a gate
// that it does not know is set.
const hasPodsAPI = false

func (k *kubelet) servePods(*grpc.Server) {}
