package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	devices "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

var background = context.Background()

// kubelet is its side of the sockets under its root: it takes registrations as the real one does,
// and has neither pods nor devices given to any.
type kubelet struct {
	devices.UnimplementedRegistrationServer
	resources.UnimplementedPodResourcesListerServer
	pods.UnimplementedPodsServer
	root       string
	annotation string // that every answer to Allocate must have; "": none
	registered chan *plugin
}

func startKubelet(root string) *kubelet {
	k := &kubelet{root: root, registered: make(chan *plugin, 1)}
	for path, register := range map[string]func(*grpc.Server){
		"device-plugins/kubelet.sock": func(s *grpc.Server) { devices.RegisterRegistrationServer(s, k) },
		"pod-resources/kubelet.sock":  func(s *grpc.Server) { resources.RegisterPodResourcesListerServer(s, k) },
		"pods-api/pods-api.sock":      func(s *grpc.Server) { pods.RegisterPodsServer(s, k) },
	} {
		path = filepath.Join(root, path)
		check(os.MkdirAll(filepath.Dir(path), 0o750))
		socket, err := net.Listen("unix", path)
		check(err)
		s := grpc.NewServer()
		register(s)
		go s.Serve(socket)
	}
	return k
}

func (k *kubelet) plugins() string { return filepath.Join(k.root, "device-plugins") }

func (k *kubelet) List(context.Context, *resources.ListPodResourcesRequest) (*resources.ListPodResourcesResponse, error) {
	return &resources.ListPodResourcesResponse{}, nil
}

func (k *kubelet) WatchPods(_ *pods.WatchPodsRequest, s grpc.ServerStreamingServer[pods.WatchPodsEvent]) error {
	if err := s.Send(&pods.WatchPodsEvent{Type: pods.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

// Register connects, asks for options, says yes, and only then begins to watch.
func (k *kubelet) Register(ctx context.Context, ask *devices.RegisterRequest) (*devices.Empty, error) {
	connection, err := grpc.NewClient("unix:"+filepath.Join(k.plugins(), ask.Endpoint), grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	p := &plugin{connection: connection, client: devices.NewDevicePluginClient(connection), annotation: k.annotation,
		given: map[string]bool{}, lists: make(chan list, 1024)}
	if _, err := p.client.GetDevicePluginOptions(ctx, &devices.Empty{}); err != nil {
		return nil, err
	}
	go p.watch()
	k.registered <- p
	return &devices.Empty{}, nil
}

// plugin waits for the next one that registers, and for its devices.
func (k *kubelet) plugin() *plugin {
	select {
	case p := <-k.registered:
		p.await(func() bool { return slices.ContainsFunc(p.devices, healthy) })
		return p
	case <-time.After(patience):
		check(fmt.Errorf("%s: no device plugin registers", k.root))
		return nil
	}
}

// plugin is one that has registered, as the kubelet sees it.
type plugin struct {
	connection *grpc.ClientConn
	client     devices.DevicePluginClient
	annotation string
	lists      chan list
	devices    []*devices.Device // as they were sent last
	seen       time.Time         // when that came
	given      map[string]bool   // ids that are allocated
}

type list struct {
	devices []*devices.Device
	seen    time.Time
}

func healthy(d *devices.Device) bool { return d.Health == devices.Healthy }

func (p *plugin) unhealthy() int {
	return len(slices.DeleteFunc(slices.Clone(p.devices), healthy))
}

func (p *plugin) watch() {
	stream, err := p.client.ListAndWatch(background, &devices.Empty{})
	for err == nil {
		var sent *devices.ListAndWatchResponse
		if sent, err = stream.Recv(); err == nil {
			p.lists <- list{sent.Devices, time.Now()}
		}
	}
	close(p.lists)
}

// await takes lists until it is so.
func (p *plugin) await(so func() bool) {
	deadline := time.After(patience)
	for !so() {
		select {
		case l, ok := <-p.lists:
			if !ok {
				check(fmt.Errorf("the device plugin has ended ListAndWatch"))
			}
			p.devices, p.seen = l.devices, l.seen
		case <-deadline:
			check(fmt.Errorf("not seen in ListAndWatch within %v; %d of %d devices are unhealthy", patience, p.unhealthy(),
				len(p.devices)))
		}
	}
}

func (p *plugin) prefer(s series, nr int) []string {
	var available, chosen []string
	for _, d := range p.devices {
		if healthy(d) && !p.given[d.ID] {
			available = append(available, d.ID)
		}
	}
	s.timed("preferred", func() error {
		answer, err := p.client.GetPreferredAllocation(background, &devices.PreferredAllocationRequest{
			ContainerRequests: []*devices.ContainerPreferredAllocationRequest{
				{AvailableDeviceIDs: available, AllocationSize: int32(nr)}}})
		if err == nil && (len(answer.ContainerResponses) != 1 || len(answer.ContainerResponses[0].DeviceIDs) != nr) {
			err = fmt.Errorf("%d devices are wanted of %d: %v", nr, len(available), answer)
		}
		if err == nil {
			chosen = answer.ContainerResponses[0].DeviceIDs
		}
		return err
	})
	return chosen
}

func (p *plugin) allocate(s series, name string, ids []string) {
	s.timed(name, func() error {
		answer, err := p.client.Allocate(background, &devices.AllocateRequest{
			ContainerRequests: []*devices.ContainerAllocateRequest{{DevicesIds: ids}}})
		if err == nil && (len(answer.ContainerResponses) != 1 ||
			p.annotation != "" && answer.ContainerResponses[0].Annotations[p.annotation] == "") {
			err = fmt.Errorf("%v", answer)
		}
		return err
	})
	for _, id := range ids {
		p.given[id] = true
	}
}

func (p *plugin) close() {
	p.connection.Close()
	for range p.lists { // until its watch has ended
	}
}
