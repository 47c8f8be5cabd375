package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// patience is for a connection and for a request. NRI's own 2 s are not kept to: what takes longer
// is to show as a figure.
const patience = 30 * time.Second

// plugin is one of those measured: a process, and a runtime side of its own that asks it alone.
type plugin struct {
	title, name string
	command     []string // but for the log, all there is to start it
	pins        bool     // every answer to a create must carry a cpuset
	run         string   // the directory that it keeps its state in, if any, as it sees it
	journal     string   // the same, as we do
	twin        system   // one that nobody looks at
	cgroups     system   // the tree that its containers are in
	confined    bool     // it looks at that
	dir         string
	runtime     *nri.Adaptation
	process     *exec.Cmd
	started     chan struct{} // closed once there is a process
	said        bytes.Buffer
	connected   chan string
	own         map[string]string        // what containers have for themselves
	mutex       sync.Mutex               // of given
	present     int                      // how many shared containers Synchronize reports
	given       map[string]*nri.LinuxCPU // what it has updated those to
	sync        struct {                 // the last one
		took    time.Duration
		used    float64 // of the plugin's processor time
		updates int
		err     error
	}
	claims  bool          // some were prepared: CPUs that nobody runs on yet
	creates int           // answered since its process started
	slowest time.Duration // of all requests
	series  map[string][]float64
	calls   map[string]map[string]float64 // by kind of create, then by system call
}

// socket is where its runtime side listens.
func (p *plugin) socket() string { return filepath.Join(p.dir, p.name+".sock") }

func (p *plugin) startRuntime() {
	none := filepath.Join(p.dir, "none")
	// a name that numafitd knows as that of a runtime which forgets nothing
	side, err := nri.New("containerd", "v2.4.2", p.synchronize, p.updateUnasked, nri.WithSocketPath(p.socket()), nri.WithPluginPath(none), nri.WithPluginConfigPath(none))
	check(err)
	check(side.Start())
	p.runtime = side
}

func (p *plugin) synchronize(ctx context.Context, ask nri.SyncCB) error {
	if p.started == nil { // the runtime side's own start, for plugins that it would launch
		return nil
	}
	<-p.started
	pods, containers := sharedContainers(p.present, p.given)
	runtime.GC() // of those reported before
	used, from := p.cpuTime(), time.Now()
	updates, err := ask(ctx, pods, containers)
	p.sync.took, p.sync.used = time.Since(from), p.cpuTime()-used
	p.sync.updates, p.sync.err = len(updates), err
	p.give(updates)
	return err
}

func (p *plugin) updateUnasked(_ context.Context, updates []*nri.ContainerUpdate) ([]*nri.ContainerUpdate, error) {
	p.give(updates)
	return nil, nil
}

// give notes what containers have been updated to.
func (p *plugin) give(updates []*nri.ContainerUpdate) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, u := range updates {
		p.given[u.GetContainerId()] = u.GetLinux().GetResources().GetCpu()
	}
}

// start runs the plugin beside so many shared containers; anew: as on a node that it has never
// seen, else with what its earlier life left.
func (p *plugin) start(present int, anew bool) {
	if anew {
		p.claims = false
		p.given = map[string]*nri.LinuxCPU{}
		if p.journal != "" {
			check(os.RemoveAll(p.journal))
		}
		p.makeTree(present)
	}
	p.present, p.creates = present, 0
	p.process = exec.Command(p.command[0], p.command[1:]...)
	if p.claims && p.decides() {
		p.process.Args = append(p.process.Args, p.driver()...)
	}
	p.started = make(chan struct{})
	p.said.Reset()
	p.process.Stdout = &p.said
	log, err := os.OpenFile(filepath.Join(p.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	defer log.Close()
	p.process.Stderr = log
	check(p.process.Start())
	close(p.started)
	select {
	case <-p.connected:
	case <-time.After(patience):
		p.fail("is not connected: %v", p.sync.err)
	}
}

// makeTree makes the cgroups of the containers that are there.
func (p *plugin) makeTree(present int) {
	p.cgroups.empty()
	if !p.confined {
		return // nobody looks at them
	}
	_, containers := sharedContainers(present, nil)
	for _, c := range containers {
		p.cgroups.linkCgroup(c.Linux.CgroupsPath)
	}
}

// stop ends the process. One that does not pin counts itself how often it was asked: a runtime that
// has dropped a plugin is fast, and silent.
func (p *plugin) stop() {
	check(p.process.Process.Signal(syscall.SIGTERM))
	if err := p.process.Wait(); err != nil {
		p.fail("ended: %v", err)
	}
	if said := strings.TrimSpace(p.said.String()); !p.pins && said != strconv.Itoa(p.creates) {
		p.fail("was asked for %s of %d creates", said, p.creates)
	}
}

func (p *plugin) fail(format string, args ...any) {
	text, _ := os.ReadFile(filepath.Join(p.dir, p.name+".log"))
	fmt.Fprintf(os.Stderr, "%s\n", text[max(0, len(text)-4096):])
	check(fmt.Errorf(p.title+" "+format, args...))
}

// cpuTime is what the process has used up to now, with all its threads, in ns.
func (p *plugin) cpuTime() float64 {
	const sched = 2 // CPUCLOCK_SCHED: the clock id of a process by its pid, as in <linux/posix-timers.h>
	var ts syscall.Timespec
	clock := ^p.process.Process.Pid<<3 | sched
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(int32(clock)), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		check(errno)
	}
	return float64(ts.Nano())
}

// memory is a line of smaps_rollup ("Rss", "Pss") in bytes.
func (p *plugin) memory(line string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.process.Process.Pid))
	check(err)
	for _, l := range strings.Split(string(text), "\n") {
		if f := strings.Fields(l); len(f) == 3 && f[0] == line+":" {
			kib, err := strconv.Atoi(f[1])
			check(err)
			return float64(kib) * 1024
		}
	}
	p.fail("has no %s in smaps_rollup", line)
	return 0
}

func (p *plugin) add(series string, value float64) {
	p.series[series] = append(p.series[series], value)
}

// timed makes one request.
func (p *plugin) timed(what string, request func() error) time.Duration {
	from := time.Now()
	err := request()
	took := time.Since(from)
	if err != nil {
		p.fail("%s: %v", what, err)
	}
	p.slowest = max(p.slowest, took)
	return took
}

// begin takes a container through all that the runtime calls until it runs, as the series of this
// name. It returns its cpuset and how many other containers were updated.
func (p *plugin) begin(series string, pod *nri.PodSandbox, c *nri.Container) (cpus string, updates int) {
	ctx := context.Background()
	p.cgroups.addCgroup(pod.Linux.CgroupParent) // as the kubelet has done by then
	p.timed("RunPodSandbox", func() error { return p.runtime.RunPodSandbox(ctx, &nri.RunPodSandboxRequest{Pod: pod}) })
	cpus, updates = p.create(series, pod, c)
	p.cgroups.linkCgroup(c.Linux.CgroupsPath) // the runtime's
	p.timed("PostCreateContainer", func() error {
		return p.runtime.PostCreateContainer(ctx, &nri.PostCreateContainerRequest{Pod: pod, Container: c})
	})
	p.timed("StartContainer", func() error {
		return p.runtime.StartContainer(ctx, &nri.StartContainerRequest{Pod: pod, Container: c})
	})
	p.timed("PostStartContainer", func() error {
		return p.runtime.PostStartContainer(ctx, &nri.PostStartContainerRequest{Pod: pod, Container: c})
	})
	return cpus, updates
}

// create makes the one request of these that is measured.
func (p *plugin) create(series string, pod *nri.PodSandbox, c *nri.Container) (cpus string, updates int) {
	ctx := context.Background()
	var reply *nri.CreateContainerResponse
	used := p.cpuTime()
	took := p.timed("CreateContainer", func() (err error) {
		reply, err = p.runtime.CreateContainer(ctx, &nri.CreateContainerRequest{Pod: pod, Container: c})
		return err
	})
	p.add("create-"+series, float64(took))
	p.add("create-besides-"+series, float64(took-p.rewrite(pod)))
	p.add("create-cpu-"+series, p.cpuTime()-used)
	p.creates++
	cpus = reply.GetAdjust().GetLinux().GetResources().GetCpu().GetCpus()
	if p.pins && cpus == "" {
		p.fail("answered create %d without a cpuset", p.creates)
	}
	p.give(reply.GetUpdate())
	p.add("updates-"+series, float64(len(reply.GetUpdate())))
	if len(reply.GetUpdate()) > 0 {
		p.add("create-moving-"+series, float64(took))
	}
	return cpus, len(reply.GetUpdate())
}

// rewrite does what ours had to write for a container with CPUs of its own, once more: how long that
// takes without numafitd, and on files that are no cgroups. 0 where it writes nothing.
func (p *plugin) rewrite(pod *nri.PodSandbox) time.Duration {
	if p != ours || p.cgroups.cpus(pod.Linux.CgroupParent) == "" {
		return 0
	}
	return p.twin.write("/kubepods/burstable", p.cgroups.cpus("/kubepods/burstable")) +
		p.twin.write("/kubepods", p.cgroups.cpus(pod.Linux.CgroupParent))
}

// end takes it through all that comes after.
func (p *plugin) end(pod *nri.PodSandbox, c *nri.Container) {
	ctx := context.Background()
	p.timed("StopContainer", func() error {
		reply, err := p.runtime.StopContainer(ctx, &nri.StopContainerRequest{Pod: pod, Container: c})
		p.give(reply.GetUpdate())
		return err
	})
	p.cgroups.removeCgroup(c.Linux.CgroupsPath)
	p.timed("RemoveContainer", func() error {
		return p.runtime.RemoveContainer(ctx, &nri.RemoveContainerRequest{Pod: pod, Container: c})
	})
	p.timed("StopPodSandbox", func() error { return p.runtime.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: pod}) })
	p.timed("RemovePodSandbox", func() error { return p.runtime.RemovePodSandbox(ctx, &nri.RemovePodSandboxRequest{Pod: pod}) })
	p.cgroups.removeCgroup(pod.Linux.CgroupParent)
}
