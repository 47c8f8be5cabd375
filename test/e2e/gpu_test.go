package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	devices "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Another vendor's device plugin: GPUs on the NUMA nodes of the second socket, so that CPUs beside them
// are not those that are taken first. They exist only by their name. Like theirs it registers again
// with each new kubelet.

const (
	gpu          = "vendor.example/gpu"
	firstGPUNode = madeNodes / madeSockets
	gpusPerNode  = 4
	nrGPUs       = (madeNodes - firstGPUNode) * gpusPerNode
	gpuSocket    = "gpu.sock"
	gpuEnv       = "GPUS"
)

type gpuPlugin struct {
	devices.UnimplementedDevicePluginServer
	server     *grpc.Server
	registered os.FileInfo // the kubelet's socket with which we are
	done       chan struct{}
}

// startGPUs serves them until the test ends, and waits until the kubelet has them.
func (n *node) startGPUs() {
	p, ended := &gpuPlugin{done: make(chan struct{})}, make(chan struct{})
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
	n.await("the GPUs", func() bool { return n.allocatable(gpu) == nrGPUs })
}

func (p *gpuPlugin) keepRegistered() {
	kubelet, err := os.Stat(devices.KubeletSocket)
	if err != nil {
		return
	}
	_, wiped := os.Stat(devices.DevicePluginPath + gpuSocket)
	if wiped == nil && p.registered != nil && os.SameFile(kubelet, p.registered) && kubelet.ModTime().Equal(p.registered.ModTime()) {
		return
	}
	p.registered = nil
	if p.serve() == nil && p.register() == nil {
		p.registered = kubelet
	}
}

func (p *gpuPlugin) serve() error {
	if p.server != nil {
		p.server.Stop()
	}
	path := devices.DevicePluginPath + gpuSocket
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

func (p *gpuPlugin) register() error {
	conn, err := grpc.NewClient("unix://"+devices.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = devices.NewRegistrationClient(conn).Register(ctx,
		&devices.RegisterRequest{Version: devices.Version, Endpoint: filepath.Base(gpuSocket), ResourceName: gpu})
	return err
}

func (p *gpuPlugin) GetDevicePluginOptions(context.Context, *devices.Empty) (*devices.DevicePluginOptions, error) {
	return &devices.DevicePluginOptions{}, nil
}

func (p *gpuPlugin) ListAndWatch(_ *devices.Empty, stream devices.DevicePlugin_ListAndWatchServer) error {
	all := &devices.ListAndWatchResponse{}
	for i := range nrGPUs {
		node := firstGPUNode + i/gpusPerNode
		all.Devices = append(all.Devices, &devices.Device{ID: fmt.Sprintf("gpu-node%d-%d", node, i%gpusPerNode), Health: devices.Healthy,
			Topology: &devices.TopologyInfo{Nodes: []*devices.NUMANode{{ID: int64(node)}}}})
	}
	if err := stream.Send(all); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *gpuPlugin) Allocate(_ context.Context, ask *devices.AllocateRequest) (*devices.AllocateResponse, error) {
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
