package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	devices "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Another vendor's device plugin. Like those of vendors the plugin registers again with each new kubelet. On the
// machine that is made up its devices are GPUs on the NUMA nodes of the second socket, so that CPUs beside them are
// not the CPUs that are taken first, and exist only by their name.

const (
	gpu          = "vendor.example/gpu"
	firstGPUNode = madeNodes / madeSockets
	gpusPerNode  = 4
	nrGPUs       = (madeNodes - firstGPUNode) * gpusPerNode
	gpuEnv       = "GPUS"
)

type devicePlugin struct {
	devices.UnimplementedDevicePluginServer
	resource   string
	devices    []*devices.Device
	server     *grpc.Server
	registered os.FileInfo // the kubelet's socket with which the plugin is registered
	done       chan struct{}
}

func (n *node) startGPUs() {
	n.Helper()
	var all []*devices.Device
	for i := range nrGPUs {
		node := firstGPUNode + i/gpusPerNode
		all = append(all, deviceOn(fmt.Sprintf("gpu-node%d-%d", node, i%gpusPerNode), node))
	}
	n.startPlugin(gpu, all)
}

// deviceOn is a healthy device on a NUMA node.
func deviceOn(id string, node int) *devices.Device {
	return &devices.Device{ID: id, Health: devices.Healthy,
		Topology: &devices.TopologyInfo{Nodes: []*devices.NUMANode{{ID: int64(node)}}}}
}

// startPlugin serves a resource until the test ends, and waits until the kubelet has all of its devices.
func (n *node) startPlugin(resource string, all []*devices.Device) {
	n.Helper()
	p, ended := &devicePlugin{resource: resource, devices: all, done: make(chan struct{})}, make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-p.done:
				if p.server != nil {
					p.server.Stop()
				}
				return
			case <-time.After(20 * time.Millisecond):
				p.keepRegistered()
			}
		}
	}()
	n.Cleanup(func() { close(p.done); <-ended })
	n.await("the devices "+resource, func() bool { return n.allocatable(resource) == len(all) })
}

func (p *devicePlugin) socket() string { return strings.ReplaceAll(p.resource, "/", "-") + ".sock" }

func (p *devicePlugin) keepRegistered() {
	kubelet, err := os.Stat(devices.KubeletSocket)
	if err != nil {
		return
	}
	_, wiped := os.Stat(devices.DevicePluginPath + p.socket())
	if wiped == nil && p.registered != nil && os.SameFile(kubelet, p.registered) && kubelet.ModTime().Equal(p.registered.ModTime()) {
		return
	}
	p.registered = nil
	if p.serve() == nil && p.register() == nil {
		p.registered = kubelet
	}
}

func (p *devicePlugin) serve() error {
	if p.server != nil {
		p.server.Stop()
	}
	path := devices.DevicePluginPath + p.socket()
	os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	p.server = grpc.NewServer()
	devices.RegisterDevicePluginServer(p.server, p)
	go p.server.Serve(l)
	return nil
}

func (p *devicePlugin) register() error {
	conn, err := grpc.NewClient("unix://"+devices.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = devices.NewRegistrationClient(conn).Register(ctx,
		&devices.RegisterRequest{Version: devices.Version, Endpoint: p.socket(), ResourceName: p.resource})
	return err
}

func (p *devicePlugin) GetDevicePluginOptions(context.Context, *devices.Empty) (*devices.DevicePluginOptions, error) {
	return &devices.DevicePluginOptions{}, nil
}

func (p *devicePlugin) ListAndWatch(_ *devices.Empty, stream devices.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&devices.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *devicePlugin) Allocate(_ context.Context, ask *devices.AllocateRequest) (*devices.AllocateResponse, error) {
	answer := &devices.AllocateResponse{}
	for _, c := range ask.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses,
			&devices.ContainerAllocateResponse{Envs: map[string]string{gpuEnv: strings.Join(c.DevicesIds, ",")}})
	}
	return answer, nil
}

// nodeOfDevice reads the NUMA node out of a GPU's or a token's id.
func nodeOfDevice(t *testing.T, id string) (node int) {
	t.Helper()
	if _, err := fmt.Sscanf(id[strings.Index(id, "node"):], "node%d-", &node); err != nil {
		t.Fatalf("%q is no device of ours", id)
	}
	return node
}
