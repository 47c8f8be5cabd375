// nothing is a device plugin that has devices and does nothing for those who get them: what asking
// one costs at the least, in Go. It registers once.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// endpoint is one that no earlier process had.
var endpoint = fmt.Sprintf("nothing-%d.sock", os.Getpid())

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func (*plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, s grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := s.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

func (*plugin) GetPreferredAllocation(_ context.Context, ask *api.PreferredAllocationRequest) (
	*api.PreferredAllocationResponse, error) {
	answer := &api.PreferredAllocationResponse{}
	for _, c := range ask.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerPreferredAllocationResponse{DeviceIDs: c.AvailableDeviceIDs[:c.AllocationSize]})
	}
	return answer, nil
}

func (*plugin) Allocate(_ context.Context, ask *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for range ask.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{})
	}
	return answer, nil
}

// usage: nothing DIRECTORY DEVICES: so many, in the kubelet's device-plugins directory
func main() {
	nr, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	p := &plugin{}
	for i := range nr {
		p.devices = append(p.devices, &api.Device{ID: fmt.Sprintf("nothing-%d", i), Health: api.Healthy,
			Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: 0}}}})
	}
	socket, err := net.Listen("unix", filepath.Join(os.Args[1], endpoint))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go register()
	log.Fatal(server.Serve(socket))
}

func register() {
	kubelet, err := grpc.NewClient("unix:"+filepath.Join(os.Args[1], "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, &api.RegisterRequest{Version: api.Version,
		Endpoint: endpoint, ResourceName: "example.com/nothing"})
	if err != nil {
		log.Fatal(err)
	}
	kubelet.Close() // as a plugin has no more use for it
}
