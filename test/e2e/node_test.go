package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// A node: containerd or CRI-O with a root, a state and sockets of its own, numafitd as its NRI plugin,
// and what a kubelet would ask of it through CRI.

var (
	patience = 120 * time.Second // for what must happen; an emulated machine is slow
	again    = 10 * time.Millisecond
)

const (
	eight = "kep3545-8" // 8 NUMA nodes of 16 CPUs: node n has 8n..8n+7 and 64+8n..64+8n+7
	this  = "this"      // the machine that we run on
)

// quickly finds a server that comes back.
var quickly = grpc.ConnectParams{MinConnectTimeout: time.Second,
	Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond}}

var version = os.Getenv("CONTAINERD_VERSION") // "v2.4.2"

type options struct {
	machine  string
	settings []string // of numafitd
	required bool     // containerd holds containers back without numafitd
	timeout  string   // that the runtime gives a plugin; "": its default
	kubelet  *kubeletOptions
}

type node struct {
	*testing.T
	options
	dir     string
	server  *process // the runtime
	daemon  *process
	runtime cri.RuntimeServiceClient
	pods    map[string]*pod // by name

	kubeletProcess *process
	port           int      // of the kubelet
	covered        []string // paths that something is mounted over
	lister         resources.PodResourcesListerClient
}

// newNode starts the runtime, then numafitd, and waits until they are connected.
func newNode(t *testing.T, o options) *node {
	if o.timeout == "" {
		o.timeout = "2s"
	}
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{T: t, options: o, dir: dir, pods: map[string]*pod{}}
	t.Cleanup(n.end)
	if n.kubelet != nil {
		n.prepareKubelet()
	}
	n.must(writeImage(n.path("image.tar")))
	if crio != "" {
		n.prepareCRIO()
		n.startRuntime()
	} else {
		n.must(os.WriteFile(n.path("containerd.toml"),
			[]byte(containerdConfig(version, dir, n.runc(), o.timeout, o.required)), 0o600))
		n.startRuntime()
		n.run(os.Getenv("CONTAINERD")+"/ctr", "-a", n.path("containerd.sock"), "-n", "k8s.io",
			"images", "import", n.path("image.tar"))
	}
	n.startDaemon()
	if n.kubelet != nil {
		n.startKubelet()
	}
	return n
}

// truly: the machine is this one, and runc is asked for what the runtime asks for.
func (n *node) truly() bool { return n.machine == this && n.kubelet == nil }

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// runc is this program, unless the machine is this one and not made up. CRI-O needs it there, too.
func (n *node) runc() string {
	real, err := exec.LookPath("runc")
	n.must(err)
	if n.truly() && crio == "" {
		return real
	}
	if n.truly() {
		n.must(os.WriteFile(n.path(cpusetsStay), nil, 0o600))
	}
	self, err := os.Executable()
	n.must(err)
	n.must(os.Symlink(self, n.path("runc")))
	return n.path("runc")
}

func (n *node) startRuntime() {
	n.Helper()
	if crio != "" {
		n.server = n.start(filepath.Join(crio, "crio"), "--config", n.path("crio.conf"), "--config-dir", n.path("crio.d"))
	} else {
		n.server = n.start(filepath.Join(os.Getenv("CONTAINERD"), "containerd"), "--config", n.path("containerd.toml"))
	}
	n.connect()
}

// connect waits until the runtime answers.
func (n *node) connect() {
	n.Helper()
	conn, err := grpc.NewClient("unix://"+n.path("containerd.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(quickly))
	n.must(err)
	n.runtime = cri.NewRuntimeServiceClient(conn)
	n.await("the runtime to answer", func() bool { // after its socket is there containerd says Unavailable for a while
		ctx, cancel := soon()
		defer cancel()
		_, err := n.runtime.Version(ctx, &cri.VersionRequest{})
		return err == nil
	})
}

func (n *node) startDaemon() {
	n.Helper()
	n.launchDaemon()
	n.waitConnected()
}

func (n *node) launchDaemon() {
	n.Helper()
	args := []string{"--set", "machine=" + n.machine, "--set", "nri.socketPath=" + n.path("nri.sock"),
		"--set", "runDirectory=" + n.path("run"), "--set", "metrics.address="}
	for _, s := range n.settings {
		args = append(args, "--set", s)
	}
	n.daemon = n.start(os.Getenv("NUMAFITD"), args...)
}

// waitConnected waits until numafitd has told the runtime where everything belongs.
func (n *node) waitConnected() {
	n.Helper()
	n.daemon.await(n.T, " event=synchronized ")
}

func (n *node) killDaemon() {
	n.daemon.kill()
	n.daemon = nil
}

// end puts everything away as an operator would, and insists that nothing is left.
func (n *node) end() {
	if n.Failed() {
		for _, name := range []string{"containerd.log", "crio.log"} {
			n.Logf("%s:\n%s", name, tail(n.path(name)))
		}
		n.Logf("numafitd said:\n%s", tail(n.path("numafitd.log")))
		if n.kubelet != nil {
			n.Logf("the kubelet said:\n%s", tail(n.path("kubelet.log")))
		}
	}
	if n.server != nil {
		if n.kubelet != nil {
			n.endKubelet()
		}
		for _, p := range n.pods {
			n.removePod(p)
		}
		if n.daemon != nil && !n.Failed() {
			n.await("everything to be free", func() bool { return len(n.status().Containers) == 0 })
		}
	}
	n.daemon.stop(n.T)
	n.server.stop(n.T)
	n.uncover()
	n.checkNothingIsLeft()
	os.RemoveAll(n.dir)
}

// A process, and the lines that it writes to stderr.
type process struct {
	cmd   *exec.Cmd
	name  string
	lines chan string
	done  chan struct{} // closed at the end of its stderr
}

func (n *node) start(program string, args ...string) *process {
	n.Helper()
	p := &process{cmd: exec.Command(program, args...), name: filepath.Base(program),
		lines: make(chan string, 1024), done: make(chan struct{})}
	log, err := os.OpenFile(n.path(p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	n.must(err)
	// its shim is looked up beside containerd
	p.cmd.Env = append(os.Environ(), "PATH="+os.Getenv("CONTAINERD")+":"+os.Getenv("PATH"))
	if p.name != "numafitd" { // shims inherit it, and outlive containerd
		p.cmd.Stdout, p.cmd.Stderr = log, log
		close(p.done)
		n.must(p.cmd.Start())
		log.Close()
		return p
	}
	stderr, err := p.cmd.StderrPipe()
	n.must(err)
	n.must(p.cmd.Start())
	go func() {
		defer close(p.done)
		defer log.Close()
		for s := bufio.NewScanner(stderr); s.Scan(); {
			fmt.Fprintln(log, s.Text())
			select {
			case p.lines <- s.Text():
			default: // nobody waits for one
			}
		}
	}()
	return p
}

func (p *process) await(t *testing.T, words string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case line := <-p.lines:
			if strings.Contains(line, words) {
				return
			}
		case <-p.done:
			t.Fatalf("%s has ended, and did not say %q", p.name, words)
		case <-late:
			t.Fatalf("%s did not say %q", p.name, words)
		}
	}
}

// stop ends it as systemd and the kubelet do; it has to leave in good order.
func (p *process) stop(t *testing.T) {
	if p == nil {
		return
	}
	timer := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%s after SIGTERM: %v", p.name, err)
	}
}

// runs: nobody has ended it yet.
func (p *process) runs() bool { return p.cmd.ProcessState == nil }

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
	p.cmd.Wait()
}

func (n *node) run(program string, args ...string) string {
	n.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		n.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// await looks again and again: for what the kernel or another process does there is no event.
func (n *node) await(what string, done func() bool) {
	n.Helper()
	began := time.Now()
	for ; !done(); time.Sleep(again) {
		if time.Since(began) > patience {
			n.Fatalf("waited for %s in vain", what)
		}
	}
	if took := time.Since(began); took > time.Second {
		n.Logf("%s took %.1f s", what, took.Seconds())
	}
}

// awaitOrder waits until nothing is amiss, and says what still is when that takes too long.
func (n *node) awaitOrder(what string, amiss func() string) {
	n.Helper()
	last := ""
	defer func() {
		if last != "" {
			n.Logf("waited for %s, and still: %s", what, last)
		}
	}()
	n.await(what, func() bool {
		last = amiss()
		return last == ""
	})
}

func tail(path string) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-16384):])
}
