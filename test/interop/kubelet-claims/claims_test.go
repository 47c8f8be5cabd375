package interop

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthbeta "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	drabeta "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/plugin"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
)

// The kubelet's plugin manager and its DRA manager's client, with our driver's half of it (dra_peer.c).

const (
	driver  = "numafit.io"
	longest = 30 * time.Second
)

type allReady struct{ config.SourcesReady }

func (allReady) AllReady() bool { return true }

// A kubelet, as far as it knows drivers.
type kubelet struct {
	*plugin.DRAPluginManager
	only    []string // services that it knows; nil: all
	refuses bool
	news    chan *health.NodeWatchResourcesResponse
	stop    func()
}

// HandleWatchResourcesStream is called by the kubelet's own code for every stream.
func (k *kubelet) HandleWatchResourcesStream(ctx context.Context, s health.DRAResourceHealth_NodeWatchResourcesClient, _ string) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		select {
		case k.news <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// What an older kubelet would not see in the plugin's services is taken out.
func (k *kubelet) seen(services []string) (some []string) {
	for _, s := range services {
		if k.only == nil {
			some = append(some, s)
		}
		for _, only := range k.only {
			if s == only {
				some = append(some, s)
			}
		}
	}
	return some
}

func (k *kubelet) ValidatePlugin(ctx context.Context, name, endpoint string, services []string) error {
	if k.refuses {
		return os.ErrPermission
	}
	return k.DRAPluginManager.ValidatePlugin(ctx, name, endpoint, k.seen(services))
}

func (k *kubelet) RegisterPlugin(ctx context.Context, name, endpoint string, services []string, timeout *time.Duration) error {
	return k.DRAPluginManager.RegisterPlugin(ctx, name, endpoint, k.seen(services), timeout)
}

var _ cache.PluginHandler = &kubelet{}

type rig struct {
	*testing.T
	root string

	mutex  sync.Mutex
	events []string // of all drivers' lives
}

func newRig(t *testing.T) *rig {
	root, err := os.MkdirTemp("", "claims") // a test's own has a path that is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	r := &rig{T: t, root: root}
	for _, d := range []string{"plugins", "plugins_registry"} {
		if err := os.Mkdir(filepath.Join(r.root, d), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *rig) registry() string { return filepath.Join(r.root, "plugins_registry") }

func (r *rig) startKubelet(only []string, refuses bool) *kubelet {
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelet{only: only, refuses: refuses, news: make(chan *health.NodeWatchResourcesResponse, 100)}
	noNode := func(context.Context) (*v1.Node, error) { return nil, os.ErrNotExist }
	k.DRAPluginManager = plugin.NewDRAPluginManager(ctx, fake.NewSimpleClientset(), noNode, k, time.Minute)
	manager := pluginmanager.NewPluginManager(r.registry(), record.NewFakeRecorder(100))
	manager.AddHandler("DRAPlugin", k)
	ended := make(chan struct{})
	go manager.Run(ctx, allReady{}, ended)
	var once sync.Once
	k.stop = func() {
		once.Do(func() {
			close(ended)
			cancel()
			k.Stop()
		})
	}
	r.Cleanup(k.stop)
	return k
}

func (r *rig) note(line string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, line)
}

func (r *rig) count(event string) (nr int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, e := range r.events {
		if strings.HasPrefix(e, event+" ") {
			nr++
		}
	}
	return nr
}

// startDriver starts the driver and returns what kills it.
func (r *rig) startDriver() (end func(syscall.Signal)) {
	c := exec.Command(os.Getenv("DRA_PEER"), "serve", r.registry(), filepath.Join(r.root, "plugins", driver))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.note(s.Text())
		}
	}()
	var once sync.Once
	end = func(signal syscall.Signal) {
		once.Do(func() {
			c.Process.Signal(signal)
			<-read
			if err := c.Wait(); err != nil && signal == syscall.SIGTERM {
				r.Errorf("the driver ended: %v", err)
			}
		})
	}
	r.Cleanup(func() { end(syscall.SIGTERM) })
	return end
}

func (r *rig) until(what string, is func() bool) {
	r.Helper()
	for end := time.Now().Add(longest); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("not in %v: %s; events: %q", longest, what, r.events)
		}
	}
}

// untilUsed waits until the kubelet has the driver, and the driver knows it.
func (r *rig) untilUsed(k *kubelet) *plugin.DRAPlugin {
	r.Helper()
	var p *plugin.DRAPlugin
	r.until("registered", func() (is bool) {
		var err error
		p, err = k.GetPlugin(driver)
		return err == nil
	})
	r.until("up", func() bool { return r.count("claims-plugin-up") > 0 })
	return p
}

func claim(name string) *dra.Claim {
	return &dra.Claim{Namespace: "default", Uid: "uid-of-" + name, Name: name}
}

func (r *rig) prepare(p *plugin.DRAPlugin, names ...string) map[string]*dra.NodePrepareResourceResponse {
	r.Helper()
	in := &dra.NodePrepareResourcesRequest{}
	for _, n := range names {
		in.Claims = append(in.Claims, claim(n))
	}
	out, err := p.NodePrepareResources(context.Background(), in)
	if err != nil {
		r.Fatal(err)
	}
	return out.Claims
}

func (r *rig) unprepare(p *plugin.DRAPlugin, name string) *dra.NodeUnprepareResourceResponse {
	r.Helper()
	in := &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{claim(name)}}
	out, err := p.NodeUnprepareResources(context.Background(), in)
	if err != nil {
		r.Fatal(err)
	}
	return out.Claims["uid-of-"+name]
}

// checkClaims has the driver prepare and unprepare. share: whether its version has share ids.
func (r *rig) checkClaims(p *plugin.DRAPlugin, share bool) {
	r.Helper()
	got := r.prepare(p, "slow", "refused", "good")
	if len(got) != 3 {
		r.Fatalf("%d answers: %v", len(got), got)
	}
	for _, name := range []string{"slow", "good"} {
		uid := "uid-of-" + name
		a := got[uid]
		if a == nil || a.Error != "" || len(a.Devices) != 1 {
			r.Fatalf("%s: %v", name, a)
		}
		d := a.Devices[0]
		if d.PoolName != "n1" || d.DeviceName != "numa0" || strings.Join(d.RequestNames, " ") != "numa" ||
			strings.Join(d.CdiDeviceIds, " ") != "numafit.io/claim="+uid+"-0" || d.ShareId != nil != share {
			r.Errorf("%s: %v", name, d)
		}
	}
	if a := got["uid-of-refused"]; a == nil || a.Error != "no room on NUMA node 0" {
		r.Errorf("refused: %v", a)
	}
	if a := r.unprepare(p, "good"); a == nil || a.Error != "" {
		r.Errorf("unprepare: %v", a)
	}
	if a := r.unprepare(p, "refused"); a == nil || a.Error != "it is in use" {
		r.Errorf("unprepare: %v", a)
	}
}

func (r *rig) untilHealth(k *kubelet, want health.HealthStatus) {
	r.Helper()
	for end := time.After(longest); ; {
		select {
		case m := <-k.news:
			if len(m.Devices) == 1 && m.Devices[0].Device.PoolName == "n1" &&
				m.Devices[0].Device.DeviceName == "numa0" && m.Devices[0].Health == want &&
				m.Devices[0].HealthCheckTimeoutSeconds == 60 && m.Devices[0].LastUpdatedTime > 0 {
				return
			}
		case <-end:
			r.Fatalf("numa0 is not %v", want)
		}
	}
}

func (r *rig) checkHealth(k *kubelet, p *plugin.DRAPlugin) {
	r.Helper()
	r.untilHealth(k, health.HealthStatus_HEALTHY)
	r.prepare(p, "ill")
	r.untilHealth(k, health.HealthStatus_UNHEALTHY)
	r.unprepare(p, "ill")
	r.untilHealth(k, health.HealthStatus_HEALTHY)
}

func TestTheKubeletRegistersTheDriverAndCallsItByTheNewestVersions(t *testing.T) {
	r := newRig(t)
	r.startDriver()
	k := r.startKubelet(nil, false)
	p := r.untilUsed(k)
	r.checkClaims(p, true)
	r.checkHealth(k, p)
}

func TestAnOlderKubeletUsesTheOlderVersions(t *testing.T) {
	r := newRig(t)
	r.startDriver()
	k := r.startKubelet([]string{drabeta.DRAPluginService, healthbeta.DRAResourceHealthService}, false)
	p := r.untilUsed(k)
	r.checkClaims(p, false)
	r.checkHealth(k, p)
}

func TestTheDriverIsFoundByAKubeletThatWasThereBeforeIt(t *testing.T) {
	r := newRig(t)
	k := r.startKubelet(nil, false)
	r.startDriver()
	r.checkClaims(r.untilUsed(k), true)
}

func TestAKubeletThatStartsAnewRegistersTheDriverAgain(t *testing.T) {
	r := newRig(t)
	r.startDriver()
	k := r.startKubelet(nil, false)
	r.untilUsed(k)
	k.stop()
	k = r.startKubelet(nil, false)
	r.checkClaims(r.untilUsed(k), true)
	if r.count("claims-plugin-offered") != 1 {
		t.Errorf("events: %q", r.events)
	}
}

func TestWipedSocketsAreRegisteredAgain(t *testing.T) {
	r := newRig(t)
	r.startDriver()
	k := r.startKubelet(nil, false)
	r.untilUsed(k)
	for n := 2; n < 5; n++ {
		os.Remove(filepath.Join(r.registry(), driver+"-reg.sock"))
		os.Remove(filepath.Join(r.root, "plugins", driver, "dra.sock"))
		r.until("up again", func() bool { return r.count("claims-plugin-up") == n })
		r.checkClaims(r.untilUsed(k), true)
	}
}

func TestADriverThatWasKilledIsReplacedByTheNextOne(t *testing.T) {
	r := newRig(t)
	kill := r.startDriver()
	k := r.startKubelet(nil, false)
	r.untilUsed(k)
	kill(syscall.SIGKILL) // its sockets stay, and so does what the kubelet knows of it
	r.startDriver()
	r.until("up again", func() bool { return r.count("claims-plugin-up") == 2 })
	r.checkClaims(r.untilUsed(k), true)
}

func TestADriverThatEndsIsGone(t *testing.T) {
	r := newRig(t)
	end := r.startDriver()
	k := r.startKubelet(nil, false)
	r.untilUsed(k)
	end(syscall.SIGTERM)
	r.until("gone", func() bool { _, err := k.GetPlugin(driver); return err != nil })
	if left, _ := filepath.Glob(filepath.Join(r.root, "*", "*", "*.sock")); left != nil {
		t.Errorf("left: %q", left)
	}
}

func TestTheKubeletsRefusalIsSaid(t *testing.T) {
	r := newRig(t)
	r.startDriver()
	r.startKubelet(nil, true)
	r.until("refused", func() bool { return r.count("claims-plugin-refused") == 1 })
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if last := r.events[len(r.events)-1]; !strings.Contains(last, "permission denied") {
		t.Error(last)
	}
}
