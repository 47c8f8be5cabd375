package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// What runtimes of each version do to a plugin, one test for each of it.

// What differs between versions: each is read off the messages that the version built in here has, so
// that a new version says for itself what it can do.
var (
	chunks        = has[nri.SynchronizeRequest]("More") // in several messages; timeouts are told as well
	failurePolicy = has[nri.ConfigureResponse]("FailurePolicy")
	memoryPolicy  = has[nri.LinuxContainerAdjustment]("MemoryPolicy")
)

func has[message any](field string) bool {
	_, is := reflect.TypeFor[message]().FieldByName(field)
	return is
}

func (t *tap) only(n *node, method string) answer {
	n.Helper()
	list := t.answered(method)
	if len(list) != 1 {
		n.Fatalf("%d answers to %s", len(list), method)
	}
	return list[0]
}

func TestRegisterReplyMayComeAfterSynchronize(t *testing.T) {
	for _, until := range []string{"Configure", "Synchronize", "CreateContainer"} {
		t.Run("after "+until, func(t *testing.T) {
			n := makeNode(t)
			var wire *tap
			passed := false
			wire = newTappedNode(n, func(stream uint32) bool { // called with the tap's lock
				for _, a := range wireAnswers(&wire) {
					passed = passed || a.method == until
				}
				return stream == runtimeStream && !passed
			})
			n.mustCreate("db", guaranteed(4))
			n.waitLog(1, "nri-registered")
			n.mustCreate("web", shared)
		})
	}
}

func wireAnswers(t **tap) []answer {
	if *t == nil {
		return nil
	}
	return (*t).answers
}

func TestEventMaskSuitsTheVersion(t *testing.T) {
	n := makeNode(t)
	wire := newTappedNode(n, nil)
	reply := wire.only(n, "Configure").payload
	if mask := number(reply, 2); mask == 0 || mask&^0x7ff != 0 {
		t.Errorf("events 0x%x: NRI before 0.10 knows none above 0x7ff, and 0 is all", mask)
	}
}

func TestNothingSubscribedIsUnimplemented(t *testing.T) {
	n := makeNode(t)
	wire := newTappedNode(n, nil)
	c := n.mustCreate("db", guaranteed(4))
	ctx, p := context.Background(), n.pods[c.PodSandboxId]
	_, err := n.runtime.UpdateContainer(ctx, &nri.UpdateContainerRequest{Pod: p, Container: c,
		LinuxResources: &nri.LinuxResources{Cpu: &nri.LinuxCPU{Shares: nri.UInt64(uint64(77))}}})
	if err != nil {
		t.Error(err)
	}
	n.stop(c)
	n.remove(c)
	if err := n.runtime.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: p}); err != nil {
		t.Error(err)
	}
	if err := n.runtime.RemovePodSandbox(ctx, &nri.RemovePodSandboxRequest{Pod: p}); err != nil {
		t.Error(err)
	}
	asked := wire.answered("")
	if len(asked) < 2+9 { // Configure, Synchronize, and the events of a pod's life that we want
		t.Errorf("only %d calls: %v", len(asked), asked)
	}
	for _, a := range asked {
		if a.status != 0 {
			t.Errorf("%s is answered with status %d", a.method, a.status)
		}
	}
}

func TestOversizeFrameEndsTheConnectionOnly(t *testing.T) {
	n := makeNode(t)
	wire := newTappedNode(n, nil)
	db := n.mustCreate("db", guaranteed(4))
	before := db.Linux.Resources.Cpu.Cpus
	wire.slip([]byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	n.waitLog(1, "a frame of 4294967295 bytes")
	n.waitConnected()
	if db.Linux.Resources.Cpu.Cpus != before {
		t.Errorf("db ran on %s, now on %s", before, db.Linux.Resources.Cpu.Cpus)
	}
	n.mustCreate("other", guaranteed(4))
}

func TestRepliesOfMoreThan4KBAndMoreThan1MB(t *testing.T) {
	for _, c := range []struct{ containers, least int }{{100, 4 << 10}, {8000, 1 << 20}} {
		t.Run(fmt.Sprint(c.containers, " updates"), func(t *testing.T) { replyWithUpdates(t, c.containers, c.least) })
	}
}

func replyWithUpdates(t *testing.T, nr, least int) {
	n := makeNode(t, "sharedPoolStep=0")
	n.timeout *= 4            // a build with sanitizers is slow
	for i := 0; i < nr; i++ { // none of them is placed yet
		w := shared
		w.pod, w.id = fmt.Sprint("pod", i/10), fmt.Sprintf("%0120d", i)
		p, c := n.container("", w)
		c.Name = fmt.Sprint("part", i%10)
		n.pods[p.Id], n.containers[c.Id] = p, c
	}
	wire := newTappedNode(n, nil)
	synced := wire.answered("Synchronize")
	if got := len(synced[len(synced)-1].payload); got < least || len(n.updated) != nr {
		t.Errorf("the answer to Synchronize: %d bytes, %d updates", got, len(n.updated))
	}
	n.mustCreate("db", guaranteed(8))
	if got := len(wire.only(n, "CreateContainer").payload); got < least || len(n.updated) != nr {
		t.Errorf("the answer to CreateContainer: %d bytes, %d updates", got, len(n.updated))
	}
}

// With one pod and many large containers, NRI since 0.7 sends empty chunks until its own time is up.
func TestEndlessEmptyChunksAreTolerated(t *testing.T) {
	n := makeNode(t)
	for i := 0; i < 1000; i++ {
		w := shared
		w.pod, w.id, w.baggage = "one", fmt.Sprint("ctr", i), 6000
		p, c := n.container("", w)
		c.Name = fmt.Sprint("part", i)
		n.pods[p.Id], n.containers[c.Id] = p, c
	}
	n.startRuntime()
	n.startDaemon()
	if chunks {
		n.waitLine("failed to synchronize plugin")
		n.lock.Lock()
		for _, c := range n.containers {
			c.Env = nil
		}
		n.syncErr = nil
		n.lock.Unlock()
	}
	n.waitConnected()
	n.mustCreate("late", guaranteed(2))
}

func TestWithoutSynchronizeItReconnects(t *testing.T) {
	n := makeNode(t)
	fails := 2
	if !chunks {
		fails = 1 // there nothing but our own 77 s end a connection that is not synchronized
	}
	defer func(was time.Duration) { patience = was }(patience)
	patience = slowly(2 * time.Minute)
	n.startRuntime()
	n.syncFail = fails
	nri.SetPluginRegistrationTimeout(300 * time.Millisecond) // of that the others are told
	nri.SetPluginRequestTimeout(slowly(time.Second))
	n.startDaemon()
	n.waitLog(1, "event=nri-configured")
	if !chunks {
		n.waitLog(1, "event=nri-waiting")
	}
	before := 500 * time.Millisecond
	for i := 1; i <= fails; i++ {
		took := n.waitLog(1+i, "event=nri-configured")
		t.Logf("again after %v", took.Round(time.Millisecond))
		if took < before+200*time.Millisecond {
			t.Error("it does not wait longer each time")
		}
		before = took
	}
	for n.waitLog(1, "event=nri-synchronized"); len(n.connected) > 0; { // NRI before 0.7 says so each time
		<-n.connected
	}
	n.mustCreate("db", guaranteed(4))
}

// A caller goes away while numafitd is at work; the runtime calls again before it is done.
func TestCallerCancelledInTheMiddleOfACreate(t *testing.T) {
	n := newNode(t)
	p, gone := n.sandbox("gone", guaranteed(64))
	_, late := n.sandbox("late", guaranteed(96)) // fits only beside nothing
	n.signal(syscall.SIGSTOP)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := n.ask(ctx, p, gone); err == nil {
		t.Fatal("the cancelled create succeeds")
	}
	done := make(chan error, 1)
	go func() { // what containerd does with a container that it could not create
		c := &nri.StopContainerRequest{Pod: p, Container: gone}
		_, err := n.runtime.StopContainer(context.Background(), c)
		done <- err
	}()
	time.Sleep(50 * time.Millisecond) // so that both wait in the socket
	n.signal(syscall.SIGCONT)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n.remove(gone)
	if err := n.ask(context.Background(), n.pods[late.PodSandboxId], late); err != nil {
		t.Fatal(err)
	}
	n.check()
	if len(n.connected) != 0 {
		t.Error("it was dropped in between")
	}
}

func TestStopAndRemoveOfUnknownIds(t *testing.T) {
	n := newNode(t)
	db := n.mustCreate("db", guaranteed(4))
	ctx := context.Background()
	for _, p := range []*nri.PodSandbox{{}, {Id: "nobody"}, {Id: "sb-db"}, nil} {
		for _, id := range []string{"nobody", "ctr-d", "ctr-db2"} {
			c := &nri.Container{Id: id}
			if _, err := n.runtime.StopContainer(ctx, &nri.StopContainerRequest{Pod: p, Container: c}); err != nil {
				t.Error(err)
			}
			if err := n.runtime.RemoveContainer(ctx, &nri.RemoveContainerRequest{Pod: p, Container: c}); err != nil {
				t.Error(err)
			}
		}
		if p.GetId() == "sb-db" {
			continue
		}
		if err := n.runtime.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: p}); err != nil {
			t.Error(err)
		}
		if err := n.runtime.RemovePodSandbox(ctx, &nri.RemovePodSandboxRequest{Pod: p}); err != nil {
			t.Error(err)
		}
	}
	if other := n.mustCreate("other", guaranteed(4)); !cpus(n, other).disjoint(cpus(n, db)) {
		t.Errorf("%s given to another", other.Linux.Resources.Cpu.Cpus)
	}
}

func TestStopPodSandboxWithoutContainerStops(t *testing.T) {
	n := newNode(t)
	db := n.mustCreate("db", guaranteed(120))
	if _, err := n.create("early", guaranteed(120)); err == nil {
		t.Fatal("there is room while the pod runs")
	}
	delete(n.containers, db.Id)
	p := &nri.StopPodSandboxRequest{Pod: n.pods[db.PodSandboxId]}
	if err := n.runtime.StopPodSandbox(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	n.mustCreate("late", guaranteed(120))
}

// A create that fails behind us is told by containerd with StopContainer and RemoveContainer, and
// by CRI-O with nothing until the kubelet tries again or gives the pod up.
func TestFailedCreateGivesBack(t *testing.T) {
	ctx := context.Background()
	for name, undo := range map[string]func(*node, *nri.PodSandbox, *nri.Container) error{
		"stop and remove": func(n *node, p *nri.PodSandbox, c *nri.Container) error {
			n.stop(c)
			n.remove(c)
			return nil
		},
		"remove alone": func(n *node, p *nri.PodSandbox, c *nri.Container) error { n.remove(c); return nil },
		"the pod ends": func(n *node, p *nri.PodSandbox, c *nri.Container) error {
			return n.runtime.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: p})
		},
		"it is tried again": func(n *node, p *nri.PodSandbox, c *nri.Container) error {
			again := guaranteed(120)
			again.pod, again.id = "failed", "ctr-again"
			_, c = n.sandbox("failed", again)
			if err := n.ask(ctx, p, c); err != nil {
				return err
			}
			n.stop(c)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			p, c := n.sandbox("failed", guaranteed(120))
			if err := n.ask(ctx, p, c); err != nil {
				t.Fatal(err)
			}
			delete(n.containers, c.Id)
			if err := undo(n, p, c); err != nil {
				t.Fatal(err)
			}
			n.mustCreate("late", guaranteed(120))
		})
	}
}

// While numafitd is away somebody, a kubelet with the static policy say, sets other cpusets.
func TestSynchronizeReassertsWhatWasDecided(t *testing.T) {
	n := newNode(t)
	db, web := n.mustCreate("db", guaranteed(4)), n.mustCreate("web", shared)
	before := web.Linux.Resources.Cpu.Cpus
	n.killDaemon()
	web.Linux.Resources.Cpu.Cpus = "0-127"
	n.startDaemon()
	n.waitConnected()
	if web.Linux.Resources.Cpu.Cpus != before || !cpus(n, web).disjoint(cpus(n, db)) {
		t.Errorf("web ran on %s, now on %s beside db on %s", before, web.Linux.Resources.Cpu.Cpus,
			db.Linux.Resources.Cpu.Cpus)
	}
}

func TestStuckDaemonFailsTheCreateWhereThePolicyCan(t *testing.T) {
	for _, c := range []struct {
		settings  []string
		fail, out bool // the create fails; numafitd is dropped (where it takes a failure policy)
	}{
		{nil, true, false},
		{[]string{"nri.failurePolicy=keep-and-fail"}, true, false},
		{[]string{"nri.failurePolicy=drop-and-fail"}, true, true},
		{[]string{"nri.failurePolicy=keep-and-proceed"}, false, false},
		{[]string{"nri.failurePolicy=drop-and-proceed"}, false, true},
		{[]string{"mode=off"}, false, true},
	} {
		if !failurePolicy {
			c.fail, c.out = false, true
		}
		t.Run(strings.Join(c.settings, " "), func(t *testing.T) { stuck(t, c.settings, c.fail, c.out) })
	}
}

func stuck(t *testing.T, settings []string, fail, out bool) {
	n := makeNode(t, settings...)
	wire := newTappedNode(n, nil)
	sent := len(field(wire.only(n, "Configure").payload, 3)) > 0
	if want := failurePolicy && (fail || !out); sent != want {
		t.Errorf("a failure policy is sent: %v", sent)
	}
	p, c := n.sandbox("db", guaranteed(4))
	nri.SetPluginRequestTimeout(slowly(200 * time.Millisecond))
	n.signal(syscall.SIGSTOP)
	err := n.ask(context.Background(), p, c)
	nri.SetPluginRequestTimeout(n.timeout)
	n.signal(syscall.SIGCONT)
	if (err != nil) != fail {
		t.Fatalf("the create: %v", err)
	}
	if !fail && c.Linux.Resources.Cpu.Cpus != "" {
		t.Errorf("started on %q", c.Linux.Resources.Cpu.Cpus)
	}
	if out {
		n.waitConnected()
	}
	if len(settings) > 0 && settings[0] == "mode=off" {
		return
	}
	if fail {
		n.stop(c)
		n.remove(c)
	} else if s := cpus(n, c); out && len(s) == 0 {
		t.Error("started unpinned, and not adopted afterwards")
	}
	n.mustCreate("next", guaranteed(4))
	n.mustCreate("web", shared)
	text, _ := os.ReadFile(filepath.Join(n.dir, "log"))
	if told := strings.Contains(string(text), "fail_request=1"); told != (fail && failurePolicy) {
		t.Errorf("the log tells of the failure policy: %v", told)
	}
}
