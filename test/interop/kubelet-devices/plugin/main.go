// A device plugin that does nothing but what the kubelet asks for: it stays registered, shows its
// devices, and answers from a table. Another vendor's plugin in tests, and what numafitd is
// measured beside.
//
// usage: plugin [-directory DIR] [-resource NAME] [-nodes N] [-each N] [-only ID=NODE] [-quiet]
// It prints one line for each call: "registered", "watched", "allocate ID...", "prefer ID...".
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	registerTimeout = 15 * time.Second
	again           = 20 * time.Millisecond // a kubelet that is not there tells nobody of its coming
	maxStreams      = 64
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
	quiet   bool
	over    chan struct{} // for each stream that has ended
}

func (p *plugin) say(what string, ids []string) {
	if p.quiet {
		return
	}
	ids = slices.Sorted(slices.Values(ids))
	fmt.Println(strings.Join(append([]string{what}, ids...), " "))
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, s grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	defer func() { p.over <- struct{}{} }()
	if err := s.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	p.say("watched", nil)
	<-s.Context().Done()
	return nil
}

// GetPreferredAllocation prefers the lowest ids.
func (p *plugin) GetPreferredAllocation(_ context.Context, q *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	answer := &api.PreferredAllocationResponse{}
	for _, one := range q.ContainerRequests {
		p.say("prefer", one.AvailableDeviceIDs)
		ids := slices.Clone(one.MustIncludeDeviceIDs)
		for _, id := range slices.Sorted(slices.Values(one.AvailableDeviceIDs)) {
			if len(ids) < int(one.AllocationSize) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

func (p *plugin) Allocate(_ context.Context, q *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, one := range q.ContainerRequests {
		p.say("allocate", one.DevicesIds)
		ids := strings.Join(one.DevicesIds, ",")
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs:        map[string]string{"DEVICES": ids},
			Annotations: map[string]string{"device-plugin.example/allocated": ids}})
	}
	return answer, nil
}

func (p *plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

// serve stays until the kubelet has let go.
func serve(p plugin, directory, resource string) error {
	p.over = make(chan struct{}, maxStreams)
	endpoint := fmt.Sprintf("%s-%d.sock", strings.ReplaceAll(resource, "/", "-"), os.Getpid())
	path := filepath.Join(directory, endpoint)
	os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	api.RegisterDevicePluginServer(s, &p)
	go s.Serve(l)
	defer s.Stop()
	if err := register(directory, endpoint, resource); err != nil {
		return err
	}
	p.say("registered", nil)
	<-p.over
	return nil
}

func register(directory, endpoint, resource string) error {
	c, err := grpc.NewClient("unix://"+filepath.Join(directory, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), registerTimeout)
	defer cancel()
	_, err = api.NewRegistrationClient(c).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource})
	return err
}

func device(id string, node int64) *api.Device {
	return &api.Device{ID: id, Health: api.Healthy,
		Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: node}}}}
}

func main() {
	directory := flag.String("directory", "/var/lib/kubelet/device-plugins", "the kubelet's device-plugins")
	resource := flag.String("resource", "device-plugin.example/idle", "name of the devices")
	nodes := flag.Int("nodes", 8, "NUMA nodes, from 0")
	each := flag.Int("each", 4, "devices on each")
	var p plugin
	flag.Func("only", "one device instead, ID=NODE; again: one more", func(s string) error {
		id, node, _ := strings.Cut(s, "=")
		n, err := strconv.ParseInt(node, 10, 64)
		p.devices = append(p.devices, device(id, n))
		return err
	})
	flag.BoolVar(&p.quiet, "quiet", false, "print nothing")
	flag.Parse()
	if len(p.devices) == 0 {
		for i := range *nodes * *each {
			p.devices = append(p.devices, device(fmt.Sprintf("device%03d", i), int64(i / *each)))
		}
	}
	for {
		if err := serve(p, *directory, *resource); err != nil {
			p.say("waiting: "+err.Error(), nil)
		}
		time.Sleep(again)
	}
}
