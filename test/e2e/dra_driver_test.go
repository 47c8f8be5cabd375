package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A DRA driver, which publishes its devices in ResourceSlices with the NUMA nodes that they are said to be on, and
// prepares claims by a CDI device of the claim's name, as drivers of vendors do: nothing in that name says where the
// device is. On the machine that is made up the devices are GPUs that exist only by their name.

const (
	draDriver   = "gpu.example.com"
	draPool     = nodeName
	draSlices   = 2 // that make the pool
	draGPUs     = 56
	slicesPath  = "/apis/resource.k8s.io/v1/resourceslices"
	claimsPath  = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
	cdiFolder   = "/var/run/cdi"
	draEndpoint = kubeletRoot + "/plugins/" + draDriver + "/dra.sock"
	draRegister = kubeletRoot + "/plugins_registry/" + draDriver + "-reg.sock"
)

// draNode is where GPU i is: one after another on other nodes than CPUs are taken from in their order.
func draNode(i int) int { return (i*5 + 3) % madeNodes }

// draDevice is a device of the driver. Several NUMA nodes are published as a list.
type draDevice struct {
	name, model string
	nodes       []int
}

func madeUpGPUs() (all []draDevice) {
	for i := range draGPUs {
		all = append(all, draDevice{name: fmt.Sprint("gpu", i), model: "x1", nodes: []int{draNode(i)}})
	}
	return all
}

type draPlugin struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	c          *cluster
	devices    []draDevice
	mu         sync.Mutex
	generation int64
	registered int // times that the kubelet has said so
}

// startDRA serves until the test ends, and waits until the kubelet has it and its slices are there.
func (c *cluster) startDRA(all []draDevice) *draPlugin {
	c.Helper()
	p, done, ended := &draPlugin{c: c, devices: all, generation: 1}, make(chan struct{}), make(chan struct{})
	c.must(os.MkdirAll(cdiFolder, 0o755))
	servers := []*grpc.Server{
		p.serve(draEndpoint, func(s *grpc.Server) { dra.RegisterDRAPluginServer(s, p) }),
		p.serve(draRegister, func(s *grpc.Server) { registration.RegisterRegistrationServer(s, p) }),
	}
	go func() { // the kubelet deletes all slices of the node when it starts
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(max(again, 100*time.Millisecond)):
				p.publish()
			}
		}
	}()
	c.Cleanup(func() {
		close(done)
		<-ended
		for _, s := range servers {
			s.Stop()
		}
	})
	c.await("the kubelet to register the driver", func() bool { return p.isRegistered() > 0 })
	c.await("its slices", p.isPublished)
	return p
}

func (p *draPlugin) serve(path string, register func(*grpc.Server)) *grpc.Server {
	p.c.must(os.MkdirAll(filepath.Dir(path), 0o755))
	l, err := net.Listen("unix", path)
	p.c.must(err)
	s := grpc.NewServer()
	register(s)
	go s.Serve(l)
	return s
}

func (p *draPlugin) isRegistered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.registered
}

func sliceName(i int) string { return fmt.Sprintf("%s-%s-%d", nodeName, draDriver, i) }

func (p *draPlugin) isPublished() bool {
	for i := range draSlices {
		if p.c.ask("GET", slicesPath+"/"+sliceName(i), nil, nil) != http.StatusOK {
			return false
		}
	}
	return true
}

// publish writes the slices that are not there. A pool that was wiped begins anew, at generation 1.
func (p *draPlugin) publish() {
	for i := range draSlices {
		var devices []any
		for d := i; d < len(p.devices); d += draSlices {
			devices = append(devices, p.devices[d].published())
		}
		if p.c.ask("GET", slicesPath+"/"+sliceName(i), nil, nil) != http.StatusNotFound {
			continue
		}
		p.c.ask("POST", slicesPath, toJSON(map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
			"metadata": map[string]any{"name": sliceName(i)},
			"spec": map[string]any{"driver": draDriver, "nodeName": nodeName, "devices": devices,
				"pool": map[string]any{"name": draPool, "generation": p.generation, "resourceSliceCount": draSlices}}}), nil)
	}
}

func (d draDevice) published() any {
	numaNode := map[string]any{"int": d.nodes[0]}
	if len(d.nodes) > 1 {
		numaNode = map[string]any{"ints": d.nodes}
	}
	return map[string]any{"name": d.name, "attributes": map[string]any{
		"resource.kubernetes.io/numaNode": numaNode, "model": map[string]any{"string": d.model}}}
}

func (p *draPlugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DRAPlugin, Name: draDriver, Endpoint: draEndpoint,
		SupportedVersions: []string{dra.DRAPluginService}}, nil
}

func (p *draPlugin) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.PluginRegistered {
		p.registered++
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// A claim, as far as the driver and the test need it.
type draClaim struct {
	Metadata struct {
		Name, UID   string
		Annotations map[string]string
	}
	Status struct {
		Allocation struct {
			Devices struct {
				Results []struct {
					Request, Driver, Pool, Device, ShareID string
					ConsumedCapacity                       map[string]string
				}
			}
		}
		ReservedFor []struct{ Name string }
	}
}

func (p *draPlugin) NodePrepareResources(_ context.Context, r *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	answer := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, c := range r.Claims {
		one, err := p.prepare(c)
		if err != nil {
			one = &dra.NodePrepareResourceResponse{Error: err.Error()}
		}
		answer.Claims[c.Uid] = one
	}
	return answer, nil
}

func (p *draPlugin) prepare(c *dra.Claim) (*dra.NodePrepareResourceResponse, error) {
	var claim draClaim
	if status := p.c.ask("GET", claimsPath+"/"+c.Name, nil, &claim); status != http.StatusOK || claim.Metadata.UID != c.Uid {
		return nil, fmt.Errorf("claim %s: %d", c.Name, status)
	}
	one := &dra.NodePrepareResourceResponse{}
	var edits []string
	for i, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != draDriver {
			continue
		}
		name := fmt.Sprintf("%s-%d", c.Uid, i)
		one.Devices = append(one.Devices, &dra.Device{RequestNames: []string{result.Request}, PoolName: result.Pool,
			DeviceName: result.Device, CdiDeviceIds: []string{draDriver + "/claim=" + name}})
		edits = append(edits, fmt.Sprintf(`{"name": %q, "containerEdits": {"env": ["GPU=%s"]}}`, name, result.Device))
	}
	spec := fmt.Sprintf(`{"cdiVersion": "0.5.0", "kind": "%s/claim", "devices": [%s]}`, draDriver, strings.Join(edits, ", "))
	temporary := filepath.Join(cdiFolder, "."+c.Uid)
	if err := os.WriteFile(temporary, []byte(spec), 0o644); err != nil {
		return nil, err
	}
	return one, os.Rename(temporary, cdiFile(c.Uid))
}

func cdiFile(uid string) string { return filepath.Join(cdiFolder, draDriver+"-"+uid+".json") }

func (p *draPlugin) NodeUnprepareResources(_ context.Context, r *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	answer := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, c := range r.Claims {
		os.Remove(cdiFile(c.Uid))
		answer.Claims[c.Uid] = &dra.NodeUnprepareResourceResponse{}
	}
	return answer, nil
}
