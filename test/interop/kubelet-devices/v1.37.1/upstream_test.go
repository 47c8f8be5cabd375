package interop

import (
	"context"
	_ "unsafe" // for go:linkname

	cadvisor "github.com/google/cadvisor/lib/model"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	podsapi "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
	limits "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/apis/pods"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// What differs between this version of the kubelet and the others.

type numaNode = cadvisor.Node

var logger = klog.Background()

//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(_ klog.Logger, socket string, _ []numaNode, _ topologymanager.Store) (*devicemanager.ManagerImpl, error)

func newTopology(nodes []numaNode, policy string, options map[string]string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(logger, nodes, policy, "container", options)
}

func newDevices(socket string, nodes []numaNode, t topologymanager.Manager) (*devicemanager.ManagerImpl, error) {
	d, err := newManagerImpl(logger, socket, nodes, t)
	if err == nil {
		t.AddHintProvider(logger, d)
	}
	return d, err
}

func startDevices(d *devicemanager.ManagerImpl, active func() []*v1.Pod) error {
	return d.Start(logger, active, allReady{}, containermap.NewContainerMap(), sets.New[string]())
}

func stopDevices(d *devicemanager.ManagerImpl) error { return d.Stop(logger) }

func capacityOf(d *devicemanager.ManagerImpl) (all, healthy v1.ResourceList) {
	all, healthy, _ = d.GetCapacity(logger)
	return all, healthy
}

func healthyDevices(d *devicemanager.ManagerImpl) devicemanager.ResourceDeviceInstances {
	return d.GetAllocatableDevices(logger)
}

func runOptions(d *devicemanager.ManagerImpl, p *v1.Pod, c *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return d.GetDeviceRunContainerOptions(context.Background(), p, c)
}

func admit(t topologymanager.Manager, p *v1.Pod) lifecycle.PodAdmitResult {
	return t.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: p, Operation: lifecycle.AddOperation})
}

func affinityOf(t topologymanager.Manager, uid, container string) topologymanager.TopologyHint {
	return t.GetAffinity(logger, uid, container)
}

// letGo ends the kubelet's connection to the plugin of that resource.
func (k *kubelet) letGo(resource, socket string) {
	ctx := context.Background()
	k.devices.GetWatcherHandler().DeRegisterPlugin(ctx, resource, socket)
}

func limited() grpc.ServerOption {
	return limits.WithRateLimiter(context.Background(), "podresources", podresources.DefaultQPS,
		podresources.DefaultBurstTokens)
}

func (k *kubelet) UpdateAllocatedDevices(klog.Logger) { k.devices.UpdateAllocatedDevices(logger) }

func (k *kubelet) GetAllocatableDevices(klog.Logger) []*podresourcesapi.ContainerDevices {
	return rows(healthyDevices(k.devices))
}

// noOther provides what the device manager does not: CPUs, memory and claimed devices.
type noOther struct{}

func (noOther) GetCPUs(*v1.Pod, *v1.Container) []int64 { return nil }
func (noOther) GetPodCPUs(string) []int64              { return nil }
func (noOther) GetAllocatableCPUs() []int64            { return nil }
func (noOther) GetMemory(klog.Logger, *v1.Pod, *v1.Container) []*podresourcesapi.ContainerMemory {
	return nil
}
func (noOther) GetPodMemory(klog.Logger, string) []*podresourcesapi.ContainerMemory { return nil }
func (noOther) GetAllocatableMemory(klog.Logger) []*podresourcesapi.ContainerMemory { return nil }
func (noOther) GetDynamicResources(klog.Logger, *v1.Pod, *v1.Container) []*podresourcesapi.DynamicResource {
	return nil
}

func (k *kubelet) podResources() podresourcesapi.PodResourcesListerServer {
	return podresources.NewV1PodResourcesServer(context.Background(), podresources.PodResourcesProviders{
		Pods: k, Devices: k, Cpus: noOther{}, Memory: noOther{}, DynamicResources: noOther{}})
}

const hasPodsAPI = true

// servePods registers the Pods API, to whose watchers k.news sends a pod from then on.
func (k *kubelet) servePods(s *grpc.Server) {
	server := pods.NewPodsServer(pods.NewBroadcaster(context.Background()), k.known, noStatus{}, allReady{})
	podsapi.RegisterPodsServer(s, server)
	k.news = podsNews{
		updated: func(p *v1.Pod, added bool) { server.OnPodUpdated(logger, p, p.Status, added) },
		removed: func(p *v1.Pod) { server.OnPodRemoved(logger, p) }}
}
