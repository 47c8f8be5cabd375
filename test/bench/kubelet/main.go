// kubelet-bench measures what numafitd costs the kubelet, and the node: its device plugin beside one
// that does nothing, asked in turns by one grpc-go client as the kubelet asks; how soon the kubelet
// sees what the runtime has created; and the daemon's footprint, with the runtime alone and with
// every service of the kubelet on.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/containerd/nri/pkg/log"
)

const (
	cpusAsked   = 2 // by each container
	machineCPUs = 1024
	patience    = 30 * time.Second
	settle      = 2 * time.Second // after a start, before what it costs to be idle is looked at
)

var (
	numafitd   = flag.String("numafitd", "", "the daemon")
	nothing    = flag.String("nothing", "", "the device plugin that does nothing")
	dir        = flag.String("dir", "", "where sockets, logs and numafitd's journal are: on a tmpfs, as /run is")
	machine    = flag.String("machine", "", "what numafitd is to believe that it runs on")
	nrCreates  = flag.Int("creates", 200, "containers to create behind NRI and to see in the kubelet's list")
	nrAllocate = flag.Int("allocate", 400, "containers to allocate devices for, in each life of the plugins")
	nrLives    = flag.Int("lives", 3, "of the plugins")
	pause      = flag.Duration("pause", time.Millisecond, "before each request, as the kubelet has other work in between")
	idle       = flag.Duration("idle", 20*time.Second, "how long wake-ups are counted")
	jsonFile   = flag.String("json", "", "append each row to this file")
)

// annotation is how a container that has tokens of numafitd comes to its NRI half.
const annotation = "numafit.io/allocated"

var running []*process

func check(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "kubelet-bench:", err)
	for _, p := range running {
		text, _ := os.ReadFile(p.log)
		fmt.Fprintf(os.Stderr, "%s:\n%s\n", p.title, text[max(0, len(text)-4096):])
		p.Process.Kill()
	}
	os.Exit(1)
}

// series of figures, by name.
type series map[string][]float64

func (s series) add(name string, value float64) { s[name] = append(s[name], value) }

// timed adds what the request took, in ns.
func (s series) timed(name string, request func() error) {
	time.Sleep(*pause)
	from := time.Now()
	err := request()
	s.add(name, float64(time.Since(from)))
	if err != nil {
		check(fmt.Errorf("%s: %w", name, err))
	}
}

// daemon starts numafitd behind a runtime side of its own; with a kubelet, all its services are on.
func daemon(title string, r *runtimeSide, k *kubelet) *process {
	run := filepath.Join(*dir, "run")
	check(os.RemoveAll(run)) // as on a node that it has never seen
	words := []string{*numafitd, "--set", "machine=" + *machine, "--set", "runDirectory=" + run, "--set", "metrics.address=",
		"--set", "reservedSystemCPUs=0", "--set", "nri.socketPath=" + r.socket}
	if k != nil {
		words = append(words, "--set", "kubeletRootDirectory="+k.root, "--set", "devicePlugin.enabled=true",
			"--set", "podResources.enabled=true", "--set", "podsAPI.enabled=true")
	}
	p := start(title, words...)
	r.await()
	return p
}

func doNothing(k *kubelet) *process {
	return start("do-nothing (Go)", *nothing, k.plugins(), strconv.Itoa(machineCPUs))
}

// createAndSee: pods that come without devices take CPUs, and the kubelet gets a new list. What is timed
// begins with RunPodSandbox, and with StopContainer.
func createAndSee(s series, r *runtimeSide, p *plugin) {
	for i := range *nrCreates {
		pod, c := exclusive(i)
		gone := p.unhealthy()
		time.Sleep(*pause)
		from := time.Now()
		r.create(pod, c)
		s.add("create", float64(time.Since(from)))
		p.await(func() bool { return p.unhealthy() >= gone+cpusAsked })
		s.add("create-to-seen", float64(p.seen.Sub(from)))
	}
	for i := range *nrCreates {
		pod, c := exclusive(i)
		gone := p.unhealthy()
		time.Sleep(*pause)
		from := time.Now()
		r.remove(pod, c)
		p.await(func() bool { return p.unhealthy() <= gone-cpusAsked })
		s.add("remove-to-seen", float64(p.seen.Sub(from)))
	}
}

// allocate does for each container what the kubelet does when it admits its pod. Then the same
// devices are given once more, as to the container after an init container.
func allocate(plugins []*plugin, all []series) {
	given := make([][][]string, len(plugins))
	for i := range *nrAllocate {
		for k := range plugins {
			at := (i + k) % len(plugins) // in turns, who is first
			ids := plugins[at].prefer(all[at], cpusAsked)
			plugins[at].allocate(all[at], "allocate", ids)
			given[at] = append(given[at], ids)
		}
	}
	for i := range *nrAllocate {
		for at, p := range plugins {
			p.allocate(all[at], "allocate-again", given[at][i])
		}
	}
}

func main() {
	flag.Parse()
	connected := make(listener, 1)
	log.Set(connected)
	r := startRuntime(filepath.Join(*dir, "nri.sock"), connected)
	ours, theirs := startKubelet(filepath.Join(*dir, "kubelet")), startKubelet(filepath.Join(*dir, "peer"))
	ours.annotation = annotation
	alone, every, peer := series{}, series{}, series{}

	fmt.Fprintln(os.Stderr, "counting numafitd's wake-ups, with the runtime alone")
	d := daemon("numafitd, NRI only", r, nil)
	d.footprint(alone)
	d.stop()
	for life := range *nrLives {
		d, n := daemon("numafitd, every service", r, ours), doNothing(theirs)
		p, q := ours.plugin(), theirs.plugin()
		if life == 0 {
			fmt.Fprintln(os.Stderr, "counting its wake-ups, with every service on")
			d.footprint(every)
			n.footprint(peer)
			createAndSee(every, r, p)
			fmt.Fprintln(os.Stderr, "asking device plugins")
		}
		used, usedThere := d.cpuTime(), n.cpuTime()
		allocate([]*plugin{p, q}, []series{every, peer})
		every.add("cpu-per-pod", (d.cpuTime()-used)/float64(*nrAllocate))
		peer.add("cpu-per-pod", (n.cpuTime()-usedThere)/float64(*nrAllocate))
		every.add("rss-after", d.memory("Rss"))
		peer.add("rss-after", n.memory("Rss"))
		p.close()
		q.close()
		d.stop()
		n.stop()
	}
	report(alone, every, peer)
}
