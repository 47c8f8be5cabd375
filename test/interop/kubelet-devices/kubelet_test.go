package interop

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/pod"
)

// A kubelet as far as devices go, made of its own parts: the device manager with its directory, its
// checkpoint and its registration server, the Topology Manager, and the servers of PodResources and
// of the Pods API. What a whole kubelet adds, the pods that come and go, its test does.

const cpuResource = "numafit.io/cpu"

type kubelet struct {
	testing.TB
	root     string // the kubelet's --root-dir
	policy   string
	options  map[string]string
	devices  *devicemanager.ManagerImpl
	topology topologymanager.Manager
	known    pod.Manager // of all pods
	news     podsNews
	servers  []*grpc.Server
	foreign  bool         // the Pods API's socket is there, and something else behind it
	unknown  atomic.Int32 // calls to services that it does not have
	lock     sync.Mutex
	active   []*v1.Pod
}

// podsNews reaches those who watch the Pods API.
type podsNews struct {
	updated func(p *v1.Pod, added bool)
	removed func(p *v1.Pod)
}

// distances of the machine kep3545-8.
var distances = [nrNodes][nrNodes]uint64{
	{10, 11, 12, 12, 30, 30, 30, 30}, {11, 10, 12, 12, 30, 30, 30, 30},
	{12, 12, 10, 11, 30, 30, 30, 30}, {12, 12, 11, 10, 30, 30, 30, 30},
	{30, 30, 30, 30, 10, 11, 12, 12}, {30, 30, 30, 30, 11, 10, 12, 12},
	{30, 30, 30, 30, 12, 12, 10, 11}, {30, 30, 30, 30, 12, 12, 11, 10}}

func numaNodes() (nodes []numaNode) {
	for i := range distances {
		nodes = append(nodes, numaNode{Id: i, Memory: 64 << 30, Distances: distances[i][:]})
	}
	return nodes
}

func newKubelet(t testing.TB, root, policy string, options map[string]string) *kubelet {
	k := &kubelet{TB: t, root: root, policy: policy, options: options, known: pod.NewBasicPodManager()}
	if err := os.MkdirAll(filepath.Join(root, "device-plugins"), 0o750); err != nil {
		t.Fatal(err)
	}
	k.start()
	t.Cleanup(k.stop)
	return k
}

func (k *kubelet) start() {
	k.Helper()
	var err error
	if k.topology, err = newTopology(numaNodes(), k.policy, k.options); err != nil {
		k.Fatal(err)
	}
	k.devices, err = newDevices(filepath.Join(k.root, "device-plugins", "kubelet.sock"), numaNodes(), k.topology)
	if err != nil {
		k.Fatal(err)
	}
	k.serve("pod-resources/kubelet.sock", func(s *grpc.Server) {
		podresourcesapi.RegisterPodResourcesListerServer(s, k.podResources())
	})
	k.news = podsNews{updated: func(*v1.Pod, bool) {}, removed: func(*v1.Pod) {}}
	if hasPodsAPI || k.foreign {
		k.serve("pods-api/pods-api.sock", k.servePods)
	}
	if err := startDevices(k.devices, k.GetActivePods); err != nil {
		k.Fatal(err)
	}
}

// serve listens as the kubelet does: on a name of its own, which it then takes over the real one.
func (k *kubelet) serve(name string, register func(*grpc.Server)) {
	path := filepath.Join(k.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		k.Fatal(err)
	}
	l, err := net.Listen("unix", path+".new")
	if err != nil {
		k.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	s := grpc.NewServer(limited(), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		k.unknown.Add(1)
		return status.Error(codes.Unimplemented, "unknown service") // as without a handler
	}))
	register(s)
	if err := os.Rename(path+".new", path); err != nil {
		k.Fatal(err)
	}
	go s.Serve(l)
	k.servers = append(k.servers, s)
}

func (k *kubelet) stop() {
	for _, s := range k.servers {
		s.Stop()
	}
	k.servers = nil
	if k.devices == nil {
		return
	}
	if err := stopDevices(k.devices); err != nil {
		k.Errorf("the device manager's end: %v", err)
	}
	k.devices = nil
}

type allReady struct{}

func (allReady) AddSource(string) {}
func (allReady) AllReady() bool   { return true }

type noStatus struct{}

func (noStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

// What PodResources asks.

func (k *kubelet) GetActivePods() []*v1.Pod {
	k.lock.Lock()
	defer k.lock.Unlock()
	return append([]*v1.Pod{}, k.active...)
}

func (k *kubelet) GetPods() []*v1.Pod { return k.GetActivePods() }

func (k *kubelet) GetPodByName(ns, name string) (*v1.Pod, bool) {
	return k.known.GetPodByName(ns, name)
}

func (k *kubelet) GetDevices(uid, container string) []*podresourcesapi.ContainerDevices {
	return rows(k.devices.GetDevices(uid, container))
}

// list asks PodResources as others do, for all devices of the first container that it names.
func (k *kubelet) list() []*podresourcesapi.ContainerDevices {
	k.Helper()
	c, err := grpc.NewClient("unix://"+filepath.Join(k.root, "pod-resources", "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.Fatal(err)
	}
	defer c.Close()
	answer, err := podresourcesapi.NewPodResourcesListerClient(c).List(context.Background(),
		&podresourcesapi.ListPodResourcesRequest{})
	if err != nil || len(answer.PodResources) == 0 {
		k.Fatalf("PodResources: %v, %v", answer, err)
	}
	return answer.PodResources[0].Containers[0].Devices
}

// rows has one row for each device and each of its NUMA nodes, as the kubelet's container manager
// makes them.
func rows(all devicemanager.ResourceDeviceInstances) (r []*podresourcesapi.ContainerDevices) {
	for resource, devices := range all {
		for id, device := range devices {
			one := func(t *podresourcesapi.TopologyInfo) {
				r = append(r, &podresourcesapi.ContainerDevices{
					ResourceName: resource, DeviceIds: []string{id}, Topology: t})
			}
			if device.Topology == nil {
				one(nil)
				continue
			}
			for _, node := range device.Topology.Nodes {
				one(&podresourcesapi.TopologyInfo{Nodes: []*podresourcesapi.NUMANode{{ID: node.ID}}})
			}
		}
	}
	return r
}

// know is what the kubelet does with a pod of its node: it is there, and PodResources shows it.
func (k *kubelet) know(p *v1.Pod) {
	k.lock.Lock()
	k.active = append(k.active, p)
	k.lock.Unlock()
	k.known.AddPod(p)
}

// admit then asks the managers. The error is what the pod's status would say.
func (k *kubelet) admit(p *v1.Pod) error {
	k.know(p)
	if r := admit(k.topology, p); !r.Admit {
		k.end(p)
		return refusal{r.Reason, r.Message}
	}
	k.news.updated(p, true)
	return nil
}

type refusal struct{ reason, message string }

func (r refusal) Error() string { return r.reason + ": " + r.message }

// end is what it does when the pod has ended.
func (k *kubelet) end(p *v1.Pod) {
	k.lock.Lock()
	for i, one := range k.active {
		if one.UID == p.UID {
			k.active = append(k.active[:i:i], k.active[i+1:]...)
			break
		}
	}
	k.lock.Unlock()
	k.known.RemovePod(p)
	k.news.removed(p)
}

// capacity is how many devices of the resource the node's status shows, and how many may be given.
func (k *kubelet) capacity(resource string) (all, healthy int64) {
	a, h := capacityOf(k.devices)
	return value(a, resource), value(h, resource)
}

func value(l v1.ResourceList, name string) int64 {
	q := l[v1.ResourceName(name)]
	return q.Value()
}

// healthyOn is how many healthy devices of the resource each NUMA node has.
func (k *kubelet) healthyOn(resource string) (on [nrNodes]int) {
	for _, device := range healthyDevices(k.devices)[resource] {
		for _, node := range device.Topology.Nodes {
			on[node.ID]++
		}
	}
	return on
}

// held are the container's devices of the resource, by id, with their NUMA node.
func (k *kubelet) held(p *v1.Pod, container, resource string) map[string]int {
	ids := map[string]int{}
	for id, device := range k.devices.GetDevices(string(p.UID), container)[resource] {
		ids[id] = int(device.Topology.Nodes[0].ID)
	}
	return ids
}

// annotations are what the kubelet would put on the container that it is about to create.
func (k *kubelet) annotations(p *v1.Pod, c *v1.Container) (map[string]string, error) {
	options, err := runOptions(k.devices, p, c)
	if err != nil || options == nil {
		return nil, err
	}
	all := map[string]string{}
	for _, a := range options.Annotations {
		all[a.Name] = a.Value
	}
	return all, nil
}

// waitHealthy waits until as many devices of the resource are there and healthy; it returns how
// long that took.
func (k *kubelet) waitHealthy(resource string, want int64) time.Duration {
	k.Helper()
	return k.await(resource+" healthy", func() any { _, h := k.capacity(resource); return h }, want)
}

// await waits until what it looks at is as wanted. The managers tell nobody of a change.
func (k *kubelet) await(what string, look func() any, want any) time.Duration {
	k.Helper()
	start := time.Now()
	for look() != want {
		if time.Since(start) > patience {
			k.Fatalf("%s: %v after %v, not %v", what, look(), patience, want)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}
