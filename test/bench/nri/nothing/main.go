// nothing is an NRI plugin on upstream's own stub that is asked all that numafitd is asked, and
// answers nothing: what asking a plugin costs at the least, in Go. At its end it prints how many
// creates it was asked about.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

type plugin struct{ creates atomic.Int64 }

func (*plugin) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}
func (*plugin) RunPodSandbox(context.Context, *api.PodSandbox) error    { return nil }
func (*plugin) StopPodSandbox(context.Context, *api.PodSandbox) error   { return nil }
func (*plugin) RemovePodSandbox(context.Context, *api.PodSandbox) error { return nil }
func (p *plugin) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment,
	[]*api.ContainerUpdate, error) {
	p.creates.Add(1)
	return nil, nil, nil
}
func (*plugin) PostCreateContainer(context.Context, *api.PodSandbox, *api.Container) error {
	return nil
}
func (*plugin) PostStartContainer(context.Context, *api.PodSandbox, *api.Container) error {
	return nil
}
func (*plugin) UpdateContainer(context.Context, *api.PodSandbox, *api.Container, *api.LinuxResources) (
	[]*api.ContainerUpdate, error) {
	return nil, nil
}
func (*plugin) StopContainer(context.Context, *api.PodSandbox, *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}
func (*plugin) RemoveContainer(context.Context, *api.PodSandbox, *api.Container) error { return nil }

func main() {
	p := &plugin{}
	s, err := stub.New(p, stub.WithPluginName("nothing"), stub.WithPluginIdx("50"), stub.WithSocketPath(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	<-end
	fmt.Println(p.creates.Load())
}
