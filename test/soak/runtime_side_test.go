package interop

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/log"
	grpc "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The container runtime: what containerd and CRI-O do around the package that both embed. It puts
// what it is sent of cpusets into force at once, and remembers nothing else of numafitd.

// requestTimeout is what the runtime gives a plugin for one request; one that takes longer is a
// violation in itself.
const requestTimeout = 2 * time.Second

type runningPod struct {
	sandbox    *nri.PodSandbox
	name       string
	containers []*container // in the order of their creation; those that have ended are gone
}

type container struct {
	*nri.Container // with what is in force, as the runtime would report it
	pod            *runningPod
	want           want          // what it asks for now
	created        *nri.LinuxCPU // all of its CPU resources as it was created
	born           int           // the event that created it
	answered       bool          // numafitd answered its create
	hasCpuset      bool          // numafitd has given it a cpuset, then or later
	stale          bool          // the runtime reports it as it was created, as CRI-O does after a restart
	starting       bool          // it is created, and its process does not run yet
	booked         bool          // its memory is on the nodes that it was created for
	granted        bool          // it was given CPUs of its own, and has not let go of them
	changedAway    bool          // it was changed last while nobody answered: there may be no room for that
	window         *window       // why it may be somewhere else for a while; nil: it may not
}

// whole is how many CPUs of its own the kubelet's rules promise the container; 0: none.
func (c *container) whole() int {
	if c.want.qos != "" || c.want.milli%1000 != 0 {
		return 0
	}
	return int(c.want.milli / 1000)
}

func (c *container) cpus() cpuSet { return mustSet(c.Linux.Resources.Cpu.Cpus) }

func (c *container) String() string {
	return fmt.Sprintf("%s (%s%dm)", c.Id, map[string]string{"": "guaranteed "}[c.want.qos], c.want.milli)
}

type runtimeSide struct {
	*soak
	lock       sync.Mutex // of what follows; Synchronize and unsolicited updates come by themselves
	adaptation *nri.Adaptation
	cable      *cable
	builder    *node // makes messages
	pods       []*runningPod
	containers map[string]*container
	connected  chan string
	synced     int // how often a plugin was synchronized
	syncErr    error
	slowest    time.Duration // CreateContainer
	updates    int
}

func newRuntimeSide(s *soak) *runtimeSide {
	r := &runtimeSide{soak: s, builder: &node{T: s.T, pods: map[string]*nri.PodSandbox{}},
		containers: map[string]*container{}, connected: make(chan string, 16)}
	log.Set(runtimeLog{r})
	nri.SetPluginRequestTimeout(requestTimeout)
	return r
}

func (r *runtimeSide) start() {
	inner, none := filepath.Join(r.dir, "inner.sock"), filepath.Join(r.dir, "none")
	side, err := nri.New("soak", "1", r.synchronize, r.unsolicited,
		nri.WithSocketPath(inner), nri.WithPluginPath(none), nri.WithPluginConfigPath(none))
	if err == nil {
		setVersion(side, nriVersion)
		err = side.Start()
	}
	if err == nil {
		r.cable, err = layCable(filepath.Join(r.dir, "nri.sock"), inner)
	}
	r.must(err)
	r.adaptation = side
}

// stop ends the runtime's process, as far as the plugin sees one.
func (r *runtimeSide) stop() {
	r.cable.cut()
	r.adaptation.Stop()
}

// runtimeLog is where the package says that a plugin is in its chain, and nowhere else.
type runtimeLog struct{ r *runtimeSide }

func (l runtimeLog) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, "connected and synchronized") {
		l.r.connected <- text
	}
	l.r.report.note("runtime: " + text)
}
func (l runtimeLog) Debugf(context.Context, string, ...any)       {}
func (l runtimeLog) Infof(_ context.Context, f string, a ...any)  { l.line(f, a...) }
func (l runtimeLog) Warnf(_ context.Context, f string, a ...any)  { l.line(f, a...) }
func (l runtimeLog) Errorf(_ context.Context, f string, a ...any) { l.line(f, a...) }

// Inside the package's callbacks

func (r *runtimeSide) synchronize(ctx context.Context, plugin nri.SyncCB) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	var pods []*nri.PodSandbox
	var containers []*nri.Container
	for _, p := range r.pods {
		pods = append(pods, p.sandbox)
		for _, c := range p.containers {
			containers = append(containers, r.reported(c))
		}
	}
	updates, err := plugin(ctx, pods, containers)
	r.syncErr = err
	if err == nil {
		r.apply(updates, "")
		r.synced++
	}
	return err
}

func (r *runtimeSide) reported(c *container) *nri.Container {
	if !c.stale {
		return c.Container
	}
	old := proto.Clone(c.Container).(*nri.Container)
	old.Linux.Resources.Cpu = proto.Clone(c.created).(*nri.LinuxCPU)
	return old
}

// unsolicited is what numafitd asks for by itself. A container may have ended meanwhile.
func (r *runtimeSide) unsolicited(_ context.Context, updates []*nri.ContainerUpdate) (failed []*nri.ContainerUpdate, _ error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	var known []*nri.ContainerUpdate
	for _, u := range updates {
		if r.containers[u.GetContainerId()] == nil {
			failed = append(failed, u)
		} else {
			known = append(known, u)
		}
	}
	r.report.note(fmt.Sprintf("unsolicited updates: %v", updates))
	r.apply(known, "")
	return failed, nil
}

// apply puts updates into force. What containerd would choke on is a violation.
func (r *runtimeSide) apply(updates []*nri.ContainerUpdate, creating string) {
	seen := map[string]bool{}
	for _, u := range updates {
		id := u.GetContainerId()
		c := r.containers[id]
		if c == nil || seen[id] || id == creating {
			r.violated("an update of container %q: it is unknown, named twice, or being created", id)
			continue
		}
		seen[id] = true
		r.updates++
		r.place(c, u.GetLinux().GetResources().GetCpu())
	}
}

func (r *runtimeSide) place(c *container, cpu *nri.LinuxCPU) {
	if cpu.GetCpus() == "" {
		return
	}
	if _, err := parseSet(cpu.GetCpus()); err != nil {
		r.violated("%s is to run on %q: %v", c, cpu.GetCpus(), err)
		return
	}
	place(c.Container, cpu)
	c.hasCpuset, c.stale = true, false
	c.window = nil
}

// Requests

// request makes one. As in containerd no plugin is synchronized in between.
func (r *runtimeSide) request(what string, ask func(ctx context.Context) error) error {
	block := r.adaptation.BlockPluginSync()
	defer block.Unblock()
	r.lock.Lock()
	defer r.lock.Unlock()
	from := time.Now()
	err := ask(context.Background())
	took := time.Since(from)
	if what == "CreateContainer" {
		r.slowest = max(r.slowest, took)
	}
	if took >= requestTimeout {
		r.violated("%s took %v", what, took)
	}
	r.report.note(fmt.Sprintf("%s: %v (%v)", what, err, took.Round(time.Microsecond)))
	return err
}

func (r *runtimeSide) runSandbox(name string, w want) (*runningPod, error) {
	w.pod = name
	sandbox, _ := r.builder.container(name, w)
	p := &runningPod{sandbox: sandbox, name: name}
	err := r.request("RunPodSandbox "+name, func(ctx context.Context) error {
		err := r.adaptation.RunPodSandbox(ctx, &nri.RunPodSandboxRequest{Pod: sandbox})
		if err == nil {
			r.pods = append(r.pods, p)
			r.builder.pods[sandbox.Id] = sandbox
		}
		return err
	})
	return p, err
}

// create asks for a container. When nobody answers, it is created as it is.
func (r *runtimeSide) create(p *runningPod, name, id string, w want, annotations map[string]string) (*container, error) {
	w.pod, w.id = p.name, id
	_, msg := r.builder.container(name, w)
	msg.Name, msg.State, msg.CreatedAt = name, nri.ContainerState_CONTAINER_CREATED, r.clock()
	for k, v := range annotations {
		msg.Annotations[k] = v
	}
	c := &container{Container: msg, pod: p, want: w, born: r.nr, starting: true}
	err := r.request("CreateContainer", func(ctx context.Context) error {
		reply, err := r.adaptation.CreateContainer(ctx, &nri.CreateContainerRequest{Pod: p.sandbox, Container: msg})
		if err != nil {
			return err
		}
		r.apply(reply.Update, id)
		r.place(c, reply.GetAdjust().GetLinux().GetResources().GetCpu())
		for k, v := range reply.GetAdjust().GetAnnotations() {
			msg.Annotations[k] = v
		}
		c.answered = c.hasCpuset
		if !c.hasCpuset {
			r.unanswered(c, "CreateContainer")
		}
		c.created = proto.Clone(msg.Linux.Resources.Cpu).(*nri.LinuxCPU)
		r.containers[id] = c
		p.containers = append(p.containers, c)
		r.judgeCreated(c)
		return nil
	})
	r.report.note(fmt.Sprintf("  %s of pod %s: cpus %q mems %q", c, p.name, msg.Linux.Resources.Cpu.Cpus, msg.Linux.Resources.Cpu.Mems))
	return c, err
}

// run takes a created container through what follows until its process runs. As in containerd an
// error of StartContainer ends that, the others are passed over.
func (r *runtimeSide) run(c *container) error {
	_ = r.request("PostCreateContainer "+c.Id, func(ctx context.Context) error {
		return r.adaptation.PostCreateContainer(ctx, &nri.PostCreateContainerRequest{Pod: c.pod.sandbox, Container: c.Container})
	})
	err := r.request("StartContainer "+c.Id, func(ctx context.Context) error {
		return r.adaptation.StartContainer(ctx, &nri.StartContainerRequest{Pod: c.pod.sandbox, Container: c.Container})
	})
	if err != nil {
		return err
	}
	_ = r.request("PostStartContainer "+c.Id, func(ctx context.Context) error {
		c.State, c.starting = nri.ContainerState_CONTAINER_RUNNING, false
		return r.adaptation.PostStartContainer(ctx, &nri.PostStartContainerRequest{Pod: c.pod.sandbox, Container: c.Container})
	})
	return nil
}

// update changes what a container asks for; cpus is what the one who asks would have it run on.
func (r *runtimeSide) update(c *container, w want, cpus string) error {
	w.pod, w.id, w.external = c.want.pod, c.want.id, cpus
	_, msg := r.builder.container(c.Name, w)
	asked := msg.Linux.Resources
	err := r.request("UpdateContainer "+c.Id, func(ctx context.Context) error {
		reply, err := r.adaptation.UpdateContainer(ctx, &nri.UpdateContainerRequest{Pod: c.pod.sandbox,
			Container: c.Container, LinuxResources: asked})
		if err != nil {
			if _, refused := grpc.FromError(err); !refused {
				r.unheard(c)
			}
			return err
		}
		// with no plugin's word of the container itself the package puts nil there
		updates := slices.DeleteFunc(reply.Update, func(u *nri.ContainerUpdate) bool { return u == nil })
		updated := slices.ContainsFunc(updates, func(u *nri.ContainerUpdate) bool { return u.GetContainerId() == c.Id })
		is := c.Linux.Resources
		is.Cpu.Shares, is.Cpu.Quota, is.Cpu.Period, is.Memory = asked.Cpu.Shares, asked.Cpu.Quota, asked.Cpu.Period, asked.Memory
		c.want = w
		if !updated {
			place(c.Container, asked.Cpu) // nobody objected
			r.unanswered(c, "UpdateContainer")
		}
		r.apply(updates, "")
		r.judgeUpdated(c, updated)
		return nil
	})
	return err
}

// end is what happens when a container's process ends. Nobody can forbid that.
func (r *runtimeSide) end(c *container, remove bool) {
	_ = r.request("StopContainer "+c.Id, func(ctx context.Context) error {
		r.forget(c)
		reply, err := r.adaptation.StopContainer(ctx, &nri.StopContainerRequest{Pod: c.pod.sandbox, Container: c.Container})
		if err == nil {
			r.apply(reply.Update, c.Id)
		}
		return err
	})
	if remove {
		r.remove(c)
	}
}

func (r *runtimeSide) remove(c *container) {
	_ = r.request("RemoveContainer "+c.Id, func(ctx context.Context) error {
		return r.adaptation.RemoveContainer(ctx, &nri.RemoveContainerRequest{Pod: c.pod.sandbox, Container: c.Container})
	})
}

func (r *runtimeSide) forget(c *container) {
	c.State = nri.ContainerState_CONTAINER_STOPPED
	delete(r.containers, c.Id)
	if i := slices.Index(c.pod.containers, c); i >= 0 {
		c.pod.containers = slices.Delete(c.pod.containers, i, i+1)
	}
}

func (r *runtimeSide) endPod(p *runningPod) {
	for len(p.containers) > 0 {
		r.end(p.containers[0], true)
	}
	_ = r.request("StopPodSandbox "+p.name, func(ctx context.Context) error {
		return r.adaptation.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: p.sandbox})
	})
	_ = r.request("RemovePodSandbox "+p.name, func(ctx context.Context) error {
		if i := slices.Index(r.pods, p); i >= 0 {
			r.pods = slices.Delete(r.pods, i, i+1)
		}
		delete(r.builder.pods, p.sandbox.Id)
		defer r.kubelet.ended(p)
		return r.adaptation.RemovePodSandbox(ctx, &nri.RemovePodSandboxRequest{Pod: p.sandbox})
	})
}

// cable passes on what comes to a socket until it is cut: when a runtime's process ends its
// connections do too, but the package leaves them open at its Stop().
type cable struct {
	listener net.Listener
	lock     sync.Mutex
	ends     map[net.Conn]bool
}

func layCable(socket, to string) (*cable, error) {
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	c := &cable{listener: listener, ends: map[net.Conn]bool{}}
	if err == nil {
		go c.accept(to)
	}
	return c, err
}

func (c *cable) accept(to string) {
	for {
		in, err := c.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("unix", to)
		if err != nil {
			in.Close()
			continue
		}
		c.lock.Lock()
		c.ends[in], c.ends[out] = true, true
		c.lock.Unlock()
		go c.pass(in, out)
		go c.pass(out, in)
	}
}

func (c *cable) pass(from, to net.Conn) {
	io.Copy(to, from)
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, end := range []net.Conn{from, to} {
		end.Close()
		delete(c.ends, end)
	}
}

func (c *cable) cut() {
	c.listener.Close()
	c.lock.Lock()
	defer c.lock.Unlock()
	for end := range c.ends {
		end.Close()
	}
}
