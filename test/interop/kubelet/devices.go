package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

type device struct {
	ID      string  `json:"id"`
	Nodes   []int64 `json:"nodes"` // nil: no topology at all
	Healthy bool    `json:"healthy"`
}

// plugin is the device plugin of one resource. Where upstream takes any of several devices, in the
// order of a Go map, it takes the lowest id of the same class, by preferring it; where that is not
// asked for, it notices that luck decided (see unlucky).
type plugin struct {
	api.DevicePluginClient // what is not called is not there
	resource               string
	devices                []device
	store                  topologymanager.Store
	now                    *admitting
	reusable               []string // of the pod's earlier init containers
}

// admitting is the container that is being admitted, and whether luck decided anything yet.
type admitting struct {
	pod     *v1.Pod
	c       *v1.Container
	unlucky bool
}

func (p *plugin) API() api.DevicePluginClient { return p }
func (p *plugin) Resource() string            { return p.resource }
func (p *plugin) SocketPath() string          { return "" }

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty, ...grpc.CallOption) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// class of a device, in the order in which the kubelet takes them: with a node of the hint, with
// other nodes, without.
func (p *plugin) class(id string) int {
	const aligned, unaligned, noAffinity = 0, 1, 2
	h := affinityOf(p.store, string(p.now.pod.UID), p.now.c.Name)
	i := slices.IndexFunc(p.devices, func(d device) bool { return d.ID == id })
	if h.NUMANodeAffinity == nil || len(p.devices[i].Nodes) == 0 {
		return noAffinity
	}
	for _, node := range p.devices[i].Nodes {
		if h.NUMANodeAffinity.IsSet(int(node)) {
			return aligned
		}
	}
	return unaligned
}

func (p *plugin) GetPreferredAllocation(_ context.Context, q *api.PreferredAllocationRequest, _ ...grpc.CallOption) (*api.PreferredAllocationResponse, error) {
	one := q.ContainerRequests[0]
	chosen := slices.Clone(one.MustIncludeDeviceIDs)
	rest := slices.DeleteFunc(slices.Clone(one.AvailableDeviceIDs),
		func(id string) bool { return slices.Contains(chosen, id) })
	slices.SortFunc(rest, func(a, b string) int {
		if d := p.class(a) - p.class(b); d != 0 {
			return d
		}
		return compareText(a, b)
	})
	chosen = append(chosen, rest...)[:one.AllocationSize]
	return &api.PreferredAllocationResponse{ContainerResponses: []*api.ContainerPreferredAllocationResponse{
		{DeviceIDs: chosen}}}, nil
}

// Allocate also follows what may be taken again, as the kubelet does, to see whether the lowest of
// it was taken.
func (p *plugin) Allocate(_ context.Context, q *api.AllocateRequest, _ ...grpc.CallOption) (*api.AllocateResponse, error) {
	taken := slices.Sorted(slices.Values(q.ContainerRequests[0].DevicesIds))
	again := slices.DeleteFunc(slices.Clone(taken), func(id string) bool { return !slices.Contains(p.reusable, id) })
	slices.Sort(p.reusable)
	if !slices.Equal(again, p.reusable[:len(again)]) {
		p.now.unlucky = true
	}
	p.reusable = slices.DeleteFunc(p.reusable, func(id string) bool { return slices.Contains(again, id) })
	if isInit(p.now.pod, p.now.c) {
		p.reusable = append(p.reusable, taken...)
	}
	return &api.AllocateResponse{ContainerResponses: []*api.ContainerAllocateResponse{{}}}, nil
}

// isInit: runs to its end before the others start.
func isInit(p *v1.Pod, c *v1.Container) bool {
	return c.RestartPolicy == nil && slices.ContainsFunc(p.Spec.InitContainers,
		func(i v1.Container) bool { return i.Name == c.Name })
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// noCheckpoint forgets.
type noCheckpoint struct {
	checkpointmanager.CheckpointManager
}

func (noCheckpoint) CreateCheckpoint(string, checkpointmanager.Checkpoint) error { return nil }

// deviceProvider is the kubelet's device manager, told what it is admitting.
type deviceProvider struct {
	*devicemanager.ManagerImpl
	now     *admitting
	plugins map[string]*plugin
}

// watch has the manager give a container what it asks for.
func (d *deviceProvider) watch(p *v1.Pod, c *v1.Container, allocate func() error) error {
	if d.now.pod != p {
		for _, one := range d.plugins {
			one.reusable = nil
		}
	}
	d.now.pod, d.now.c = p, c
	lacking := d.lacking(c)
	err := allocate()
	if err != nil && len(lacking) > 1 && !strings.Contains(err.Error(), lacking[0]) {
		d.now.unlucky = true // which of them it complains about is the order of a map
	}
	return err
}

// lacking names the resources of which there is not what the container asks for.
func (d *deviceProvider) lacking(c *v1.Container) (names []string) {
	healthy := *field[map[string]sets.Set[string]](d.ManagerImpl, "healthyDevices")
	allocated := *field[map[string]sets.Set[string]](d.ManagerImpl, "allocatedDevices")
	for _, name := range sortedKeys(c.Resources.Limits) {
		p := d.plugins[string(name)]
		if p == nil {
			continue
		}
		want := c.Resources.Limits[name]
		free := healthy[p.resource].Difference(allocated[p.resource]).Union(sets.New(p.reusable...))
		if healthy[p.resource].Len() == 0 || int(want.Value()) > free.Len() {
			names = append(names, p.resource)
		}
	}
	return names
}

// startDevices is the manager after its Start() and the registration of a plugin for each
// resource, but for sockets and files.
func startDevices(nodes []numaNode, all map[string][]device, store topologymanager.Store,
	active *activePods) (*deviceProvider, error) {
	m, err := newDeviceManager(klog.Background(), filepath.Join(os.TempDir(), "kubelet.sock"), nodes, store)
	if err != nil {
		return nil, err
	}
	*field[checkpointmanager.CheckpointManager](m, "checkpointManager") = noCheckpoint{}
	*field[devicemanager.ActivePodsFunc](m, "activePods") = active.list
	d := &deviceProvider{m, &admitting{}, map[string]*plugin{}}
	for name, devices := range all {
		d.plugins[name] = &plugin{resource: name, devices: devices, store: store, now: d.now}
		if err := m.PluginConnected(context.Background(), name, d.plugins[name]); err != nil {
			return nil, err
		}
		m.PluginListAndWatchReceiver(klog.Background(), name, listAndWatch(devices))
	}
	return d, nil
}

func listAndWatch(devices []device) *api.ListAndWatchResponse {
	response := &api.ListAndWatchResponse{}
	for _, d := range devices {
		one := &api.Device{ID: d.ID, Health: api.Unhealthy}
		if d.Healthy {
			one.Health = api.Healthy
		}
		if d.Nodes != nil {
			one.Topology = &api.TopologyInfo{}
		}
		for _, node := range d.Nodes {
			one.Topology.Nodes = append(one.Topology.Nodes, &api.NUMANode{ID: node})
		}
		response.Devices = append(response.Devices, one)
	}
	return response
}

func (d *deviceProvider) held(p *v1.Pod, c *v1.Container) map[string][]string {
	all := map[string][]string{}
	for name, devices := range d.GetDevices(string(p.UID), c.Name) {
		all[name] = sortedKeys(devices)
	}
	return all
}
