package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/log"
)

// A container runtime as far as NRI sees one, around the package that containerd and CRI-O embed:
// it keeps pods and containers, and what the plugin adjusts and updates it puts into their spec.

var patience = slowly(15 * time.Second) // for what must happen: a connection, a process's end

const (
	machine = "kep3545-8" // 8 NUMA nodes of 16 CPUs: node n has 8n..8n+7 and 64+8n..64+8n+7
	perNode = 16
	nrNodes = 8
)

// slowly is d, or more when numafitd runs under a tool that is slow.
func slowly(d time.Duration) time.Duration {
	if os.Getenv("NUMAFITD_UNDER") != "" {
		return 10 * d
	}
	return d
}

type node struct {
	*testing.T
	dir        string
	socket     string        // that numafitd is told of
	timeout    time.Duration // of requests
	plugins    string        // where the runtime looks for plugins to start itself
	runtime    *nri.Adaptation
	daemon     *exec.Cmd
	settings   []string
	pods       map[string]*nri.PodSandbox
	containers map[string]*nri.Container
	connected  chan string // the names of plugins, as they get into the chain
	lines      chan string // the runtime's log
	updated    []string    // containers that the last answer updated
	adjusted   *nri.ContainerAdjustment
	syncErr    error
	syncFail   int        // so many times the runtime fails before it calls Synchronize
	lock       sync.Mutex // of all above; the runtime synchronizes on its own goroutine
}

// newNode starts the runtime, then numafitd with these settings, and waits until they are connected.
func newNode(t *testing.T, settings ...string) *node {
	n := makeNode(t, settings...)
	n.startRuntime()
	n.startDaemon()
	n.waitConnected()
	return n
}

func makeNode(t *testing.T, settings ...string) *node {
	dir, err := os.MkdirTemp("", "nf")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{T: t, dir: dir, socket: filepath.Join(dir, "nri.sock"),
		timeout: slowly(2 * time.Second), plugins: filepath.Join(dir, "none"), settings: settings, pods: map[string]*nri.PodSandbox{},
		containers: map[string]*nri.Container{}, connected: make(chan string, 16), lines: make(chan string, 4096)}
	t.Cleanup(func() {
		n.stopDaemon()
		if n.runtime != nil {
			n.runtime.Stop()
		}
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("numafitd said:\n%s", text[max(0, len(text)-16384):])
		}
		os.RemoveAll(dir)
	})
	return n
}

func (n *node) startRuntime() {
	log.Set(&listener{n: n})
	nri.SetPluginRegistrationTimeout(slowly(5 * time.Second))
	nri.SetPluginRequestTimeout(n.timeout)
	runtime, err := nri.New("interop", nriVersion, n.synchronize,
		func(context.Context, []*nri.ContainerUpdate) ([]*nri.ContainerUpdate, error) { return nil, nil },
		nri.WithSocketPath(filepath.Join(n.dir, "nri.sock")), nri.WithPluginPath(n.plugins),
		nri.WithPluginConfigPath(n.plugins))
	if err == nil {
		setVersion(runtime, nriVersion)
		err = runtime.Start()
	}
	if err != nil {
		n.Fatal(err)
	}
	n.runtime = runtime
}

// relay passes on what comes to the socket until it is cut: when a runtime's process ends, its
// connections do too, but the package leaves them open at its Stop().
func (n *node) relay(socket, to string) (cut func()) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		n.Fatal(err)
	}
	var ends []net.Conn
	var lock sync.Mutex
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				in.Close()
				continue
			}
			lock.Lock()
			ends = append(ends, in, out)
			lock.Unlock()
			go io.Copy(in, out)
			go func() { io.Copy(out, in); out.Close() }()
		}
	}()
	return func() {
		listener.Close()
		lock.Lock()
		defer lock.Unlock()
		for _, c := range ends {
			c.Close()
		}
	}
}

// setVersion makes a runtime that tells plugins its NRI version tell this one: the package takes it
// from what Go knows of a program's modules, and of a test's it knows nothing.
func setVersion(runtime *nri.Adaptation, version string) {
	field := reflect.ValueOf(runtime).Elem().FieldByName("nriVersion")
	if field.IsValid() {
		*(*string)(field.Addr().UnsafePointer()) = version
	}
}

// command is numafitd's command line, with the tool that it shall run under.
func (n *node) command() []string {
	args := append(strings.Fields(os.Getenv("NUMAFITD_UNDER")), os.Getenv("NUMAFITD"), "--set", "machine="+machine,
		"--set", "nri.socketPath="+n.socket, "--set", "runDirectory="+filepath.Join(n.dir, "run"), "--set", "metrics.address=")
	for _, s := range n.settings {
		args = append(args, "--set", s)
	}
	return args
}

func (n *node) startDaemon() {
	args := n.command()
	out, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.Fatal(err)
	}
	defer out.Close()
	daemon := exec.Command(args[0], args[1:]...)
	daemon.Stdout, daemon.Stderr = out, out
	if err := daemon.Start(); err != nil {
		n.Fatal(err)
	}
	n.daemon = daemon
}

// stopDaemon ends numafitd as systemd and the kubelet do; it has to leave in good order.
func (n *node) stopDaemon() {
	if n.daemon == nil {
		return
	}
	timer := time.AfterFunc(patience, func() { n.daemon.Process.Kill() })
	defer timer.Stop()
	n.daemon.Process.Signal(syscall.SIGTERM)
	if err := n.daemon.Wait(); err != nil {
		n.Errorf("numafitd after SIGTERM: %v", err)
	}
	n.daemon = nil
}

func (n *node) killDaemon() {
	n.daemon.Process.Kill()
	n.daemon.Wait()
	n.daemon = nil
}

func (n *node) waitConnected() string {
	n.Helper()
	select {
	case name := <-n.connected:
		n.lock.Lock()
		defer n.lock.Unlock()
		if n.syncErr != nil {
			n.Fatalf("Synchronize: %v", n.syncErr)
		}
		return name
	case <-time.After(patience):
		n.Fatal("numafitd is not connected")
		return ""
	}
}

// waitLine waits until the runtime logs a line with these words.
func (n *node) waitLine(words string) {
	n.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line := <-n.lines:
			if strings.Contains(line, words) {
				return
			}
		case <-deadline:
			n.Fatalf("the runtime did not log %q", words)
		}
	}
}

// waitLog waits until numafitd logs these words for the nth time, and returns how long it took.
func (n *node) waitLog(nth int, words string) time.Duration {
	n.Helper()
	start := time.Now()
	for time.Since(start) < patience {
		if text, _ := os.ReadFile(filepath.Join(n.dir, "log")); strings.Count(string(text), words) >= nth {
			return time.Since(start)
		}
		time.Sleep(2 * time.Millisecond) // a file cannot be awaited
	}
	n.Fatalf("numafitd did not log %q", words)
	return 0
}

func (n *node) signal(s syscall.Signal) {
	if err := n.daemon.Process.Signal(s); err != nil {
		n.Fatal(err)
	}
}

// listener is the runtime's logger: the package tells of a plugin that is in its chain in no other way.
type listener struct{ n *node }

func (l *listener) line(_ context.Context, format string, args ...interface{}) {
	text := fmt.Sprintf(format, args...)
	if _, name, ok := strings.Cut(text, `plugin "`); ok && strings.Contains(name, `" connected`) {
		l.n.connected <- name[:strings.Index(name, `"`)]
	}
	select {
	case l.n.lines <- text:
	default: // nobody waits for one
	}
}
func (l *listener) Debugf(c context.Context, f string, a ...interface{}) { l.line(c, f, a...) }
func (l *listener) Infof(c context.Context, f string, a ...interface{})  { l.line(c, f, a...) }
func (l *listener) Warnf(c context.Context, f string, a ...interface{})  { l.line(c, f, a...) }
func (l *listener) Errorf(c context.Context, f string, a ...interface{}) { l.line(c, f, a...) }

func (n *node) synchronize(ctx context.Context, plugin nri.SyncCB) error {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.syncFail > 0 {
		n.syncFail--
		return errors.New("the runtime cannot list what runs")
	}
	var pods []*nri.PodSandbox
	var containers []*nri.Container
	for _, p := range n.pods {
		pods = append(pods, p)
	}
	for _, c := range n.containers {
		containers = append(containers, c)
	}
	updates, err := plugin(ctx, pods, containers)
	n.syncErr = err
	n.apply(updates, "")
	return err
}

// apply puts updates into force as containerd does, and insists on what it would choke on.
func (n *node) apply(updates []*nri.ContainerUpdate, creating string) {
	n.updated = nil
	seen := map[string]bool{}
	for _, u := range updates {
		c := n.containers[u.GetContainerId()]
		if c == nil || seen[u.GetContainerId()] || u.GetContainerId() == creating {
			n.Errorf("update of container %q: unknown, twice, or the one being created", u.GetContainerId())
			continue
		}
		seen[u.GetContainerId()] = true
		n.updated = append(n.updated, u.GetContainerId())
		place(c, u.GetLinux().GetResources().GetCpu())
	}
}

func place(c *nri.Container, cpu *nri.LinuxCPU) {
	if cpu.GetCpus() != "" {
		c.Linux.Resources.Cpu.Cpus = cpu.GetCpus()
	}
	if cpu.GetMems() != "" {
		c.Linux.Resources.Cpu.Mems = cpu.GetMems()
	}
}

// want is what a container asks for, in Kubernetes' words.
type want struct {
	qos      string // "", "burstable", "besteffort": the cgroup below kubepods; "" is Guaranteed
	milli    int64
	memory   int64
	huge1Gi  uint64
	baggage  int               // bytes of environment, to make messages large
	pod, id  string            // the same pod and another id: a restarted container
	external string            // the cpuset that it comes with
	notes    map[string]string // the pod's annotations
}

// container makes the sandbox and container that the kubelet would ask the runtime for.
func (n *node) container(name string, w want) (*nri.PodSandbox, *nri.Container) {
	if w.pod == "" {
		w.pod = name
	}
	if w.id == "" {
		w.id = "ctr-" + name
	}
	p := n.pods["sb-"+w.pod]
	if p == nil {
		p = &nri.PodSandbox{Id: "sb-" + w.pod, Name: w.pod, Uid: "uid-" + w.pod, Namespace: "default",
			Annotations: w.notes, Linux: &nri.LinuxPodSandbox{CgroupParent: filepath.Join("/kubepods", w.qos, "poduid-"+w.pod)}}
	}
	cpu := &nri.LinuxCPU{Shares: nri.UInt64(max(2, uint64(w.milli)*1024/1000)), Cpus: w.external}
	memory := &nri.LinuxMemory{}
	if w.qos == "" {
		cpu.Quota, cpu.Period = nri.Int64(w.milli*100), nri.UInt64(uint64(100000))
		memory.Limit = nri.Int64(w.memory)
	}
	r := &nri.LinuxResources{Cpu: cpu, Memory: memory, HugepageLimits: []*nri.HugepageLimit{
		{PageSize: "2MB", Limit: 0}, {PageSize: "1GB", Limit: w.huge1Gi}}}
	c := &nri.Container{Id: w.id, PodSandboxId: p.Id, Name: "main", State: nri.ContainerState_CONTAINER_RUNNING,
		Env: []string{"BAGGAGE=" + strings.Repeat("x", w.baggage)}, Annotations: map[string]string{},
		Linux: &nri.LinuxContainer{Resources: r, CgroupsPath: p.Linux.CgroupParent + "/" + w.id}}
	return p, c
}

// sandbox is container, and the sandbox runs.
func (n *node) sandbox(name string, w want) (*nri.PodSandbox, *nri.Container) {
	p, c := n.container(name, w)
	if n.pods[p.Id] == nil {
		if err := n.runtime.RunPodSandbox(context.Background(), &nri.RunPodSandboxRequest{Pod: p}); err != nil {
			n.Fatal(err)
		}
		n.pods[p.Id] = p
	}
	return p, c
}

// ask calls CreateContainer and puts the answer into force.
func (n *node) ask(ctx context.Context, p *nri.PodSandbox, c *nri.Container) error {
	c.State = nri.ContainerState_CONTAINER_CREATED
	reply, err := n.runtime.CreateContainer(ctx, &nri.CreateContainerRequest{Pod: p, Container: c})
	if err != nil {
		return err
	}
	n.apply(reply.Update, c.Id)
	n.adjusted = reply.GetAdjust()
	place(c, reply.GetAdjust().GetLinux().GetResources().GetCpu())
	for k, v := range reply.GetAdjust().GetAnnotations() {
		c.Annotations[k] = v
	}
	n.containers[c.Id] = c
	return nil
}

// create takes a container through all that the runtime calls until it runs.
func (n *node) create(name string, w want) (*nri.Container, error) {
	ctx := context.Background()
	p, c := n.sandbox(name, w)
	if err := n.ask(ctx, p, c); err != nil {
		return nil, err
	}
	if err := n.runtime.PostCreateContainer(ctx, &nri.PostCreateContainerRequest{Pod: p, Container: c}); err != nil {
		return nil, err
	}
	if err := n.runtime.StartContainer(ctx, &nri.StartContainerRequest{Pod: p, Container: c}); err != nil {
		return nil, err
	}
	c.State = nri.ContainerState_CONTAINER_RUNNING
	return c, n.runtime.PostStartContainer(ctx, &nri.PostStartContainerRequest{Pod: p, Container: c})
}

func (n *node) mustCreate(name string, w want) *nri.Container {
	n.Helper()
	c, err := n.create(name, w)
	if err != nil {
		n.Fatalf("%s is refused: %v", name, err)
	}
	n.check()
	return c
}

func (n *node) stop(c *nri.Container) {
	n.Helper()
	delete(n.containers, c.Id)
	reply, err := n.runtime.StopContainer(context.Background(),
		&nri.StopContainerRequest{Pod: n.pods[c.PodSandboxId], Container: c})
	if err != nil {
		n.Fatal(err)
	}
	n.apply(reply.Update, c.Id)
	n.check()
}

func (n *node) remove(c *nri.Container) {
	n.Helper()
	delete(n.containers, c.Id)
	err := n.runtime.RemoveContainer(context.Background(),
		&nri.RemoveContainerRequest{Pod: n.pods[c.PodSandboxId], Container: c})
	if err != nil {
		n.Fatal(err)
	}
}

// check looks for what must never be: a CPU that is one container's own and in another's cpuset.
func (n *node) check() {
	n.Helper()
	owner := map[int]string{}
	for id, c := range n.containers {
		for cpu := range own(n, c) {
			if owner[cpu] != "" {
				n.Fatalf("CPU %d belongs to %s and to %s", cpu, owner[cpu], id)
			}
			owner[cpu] = id
		}
	}
	for id, c := range n.containers {
		for cpu := range cpus(n, c) {
			if owner[cpu] != "" && owner[cpu] != id {
				n.Fatalf("%s runs on CPU %d, which belongs to %s", id, cpu, owner[cpu])
			}
		}
	}
}

type set map[int]bool

func parse(n *node, list string) set {
	s := set{}
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if list != "" && (err != nil || err2 != nil) {
			n.Fatalf("%q is not a kernel list", list)
		}
		for i := lo; list != "" && i <= hi; i++ {
			s[i] = true
		}
	}
	return s
}

func cpus(n *node, c *nri.Container) set { return parse(n, c.Linux.Resources.Cpu.Cpus) }

// nodesOf are the NUMA nodes that the CPUs lie on.
func nodesOf(s set) set {
	nodes := set{}
	for cpu := range s {
		nodes[cpu%(nrNodes*perNode/2)/(perNode/2)] = true
	}
	return nodes
}

func (s set) equal(o set) bool {
	for i := range s {
		if !o[i] {
			return false
		}
	}
	return len(s) == len(o)
}

func (s set) disjoint(o set) bool {
	for i := range s {
		if o[i] {
			return false
		}
	}
	return true
}
