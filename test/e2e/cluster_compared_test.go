package e2e

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// numafitd beside another DRA driver of CPUs, dra-driver-cpu: the same cluster, the same pods and claims,
// for deploy/docs/claims-compared.md. What the other one does wrong is insisted on, too, so that the page
// is changed when it does so no longer.

const (
	peerName    = "dra-driver-cpu v0.2.0"
	peerDriver  = "dra.cpu"
	claimOne    = "one" // the template of one CPU
	comparePool = 8     // containers that share the pool
	lateImage   = "localhost/late:1"
	stateTold   = `"end: synchronize state with the runtime"`
	prepareCall = `method_name="/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"`
)

// compared is the driver of a cluster.
type compared struct {
	*cluster
	name    string
	driver  string
	asks    func(cpus int) map[string]any // a request of a claim
	start   func()                        // returns when claims can be prepared
	pid     func() int
	restart func() // kills it; likewise
	// What is known to be wrong with it: CPUs of a claim are another's once its container has died once,
	// or once the driver was killed before its container started.
	forgetsDead, forgetsEarly bool
	emptiesPool               bool // with all CPUs in claims, who shares the pool runs on one of theirs
}

func TestClusterDRACompared(t *testing.T) {
	for _, one := range []struct {
		name string
		of   func(*cluster) *compared
	}{{"numafitd", numafitdCompared}, {peerName, peerCompared}} {
		t.Run(one.name, func(t *testing.T) {
			c := newClusterOf(t, options{machine: this, timeout: "10s", kubelet: &kubeletOptions{more: map[string]any{
				"maxPods": 250, "crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "1s"}}}})
			one.of(c).all()
		})
	}
}

func (d *compared) all() {
	t := d.T
	for _, step := range []struct {
		name string
		do   func(*compared)
	}{
		{"it is ready", (*compared).isReady},
		{"times", (*compared).takesTimes},
		{"who shares the pool", (*compared).updatesThePool},
		{"a container that dies", (*compared).comesBack},
		{"the driver is killed while claims are prepared", (*compared).startsAnew},
		{"as many claims as fit", (*compared).fillsUp},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			d.T = t
			step.do(d)
			d.drain()
			d.await("all claims to go", func() bool { return len(d.allClaims()) == 0 })
		}) {
			break
		}
	}
	d.T = t
}

func numafitdCompared(c *cluster) *compared {
	c.components = []string{asDRADriver}
	c.patch = slices.DeleteFunc(c.patch, func(p any) bool { // on a busy machine a second may be short
		return strings.Contains(p.(map[string]any)["path"].(string), "Probe/")
	})
	registered := func() {
		c.await("numafitd to be registered", func() bool { return c.status().DRADriver.Registration == "up" })
	}
	return &compared{cluster: c, name: "numafitd", driver: numaDriver,
		asks:  func(cpus int) map[string]any { return asksFor(podClaim, numaClass, cpus) },
		start: func() { c.installAll(); registered() },
		pid: func() int {
			c.look()
			return c.pid(c.pods[c.daemonPods().Items[0].Metadata.Name].containers["numafitd"])
		},
		restart: func() { c.restartNumafitd(); registered() }}
}

func peerCompared(c *cluster) *compared {
	d := &compared{cluster: c, name: peerName, driver: peerDriver, forgetsDead: true, forgetsEarly: true, emptiesPool: true}
	d.asks = func(cpus int) map[string]any {
		return map[string]any{"name": podClaim, "exactly": map[string]any{"deviceClassName": peerDriver, "capacity": map[string]any{
			"requests": map[string]string{peerDriver + "/cpu": fmt.Sprint(cpus)}}}}
	}
	starts := 0
	launch := func() {
		starts++
		c.launch("dracpu", "DRACPU", "--kubeconfig="+c.kubeconfig("admin", "admin"), "--hostname-override="+nodeName,
			"--cpu-device-mode=grouped", "--reserved-cpus=0", "--v=4")
		c.await("it to know all containers", func() bool {
			log, _ := os.ReadFile(c.path("dracpu.log"))
			return strings.Count(string(log), stateTold) == starts
		})
	}
	d.start = func() {
		c.must(os.MkdirAll(cdiFolder, 0o755))
		c.createObject("/apis/resource.k8s.io/v1/deviceclasses", map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
			"metadata": map[string]any{"name": peerDriver},
			"spec":     map[string]any{"selectors": []any{map[string]any{"cel": map[string]any{"expression": `device.driver == "` + peerDriver + `"`}}}}})
		launch()
	}
	d.pid = func() int { return c.processes["dracpu"].cmd.Process.Pid }
	d.restart = func() { c.kill("dracpu"); launch() }
	return d
}

func (d *compared) figure(format string, values ...any) {
	d.Helper()
	d.Logf("figure: %s: %s", d.name, fmt.Sprintf(format, values...))
}

// isReady: what is there before the first claim.
func (d *compared) isReady() {
	d.createTemplate(claimFour, nil, d.asks(claimCPUs))
	d.createTemplate(claimOne, nil, d.asks(1))
	began := time.Now()
	d.start()
	d.await("its slice", func() bool { return d.offers() == madeNodes*atRestCPUs-1 })
	d.Logf("it took %.1f s", time.Since(began).Seconds())
	for _, p := range d.slices() {
		device := p.Spec.Devices[0]
		d.figure("%s has the attributes %s and the capacities %s", device.Name,
			strings.Join(slices.Sorted(maps.Keys(device.Attributes)), ", "), strings.Join(slices.Sorted(maps.Keys(device.Capacity)), ", "))
	}
}

// slices are those of the driver.
func (d *compared) slices() (found []numaPool) {
	d.Helper()
	var all struct{ Items []numaPool }
	d.ask("GET", slicesPath, nil, &all)
	for _, p := range all.Items {
		if p.Spec.Driver == d.driver {
			found = append(found, p)
		}
	}
	return found
}

// offers are the CPUs that its slices have for claims.
func (d *compared) offers() (cpus int) {
	d.Helper()
	for _, p := range d.slices() {
		for _, device := range p.Spec.Devices {
			for name, of := range device.Capacity {
				if nr, err := strconv.Atoi(of.Value); err == nil && strings.HasSuffix(name, "cpu") {
					cpus += nr
				}
			}
		}
	}
	return cpus
}

func (d *compared) takesTimes() {
	d.figure("the machine's load is %s", d.read("/proc/loadavg"))
	d.logTimes(d.name)
	d.logPrepare(d.name, d.driver, calls{})
}

// calls are those of NodePrepareResources that a driver has answered, by the kubelet's metrics.
type calls struct {
	nr     int
	sum    float64        // of seconds
	atMost map[string]int // how many took so many seconds at most
}

// logPrepare is how long the driver took for each since then.
func (c *cluster) logPrepare(what, driver string, before calls) {
	c.Helper()
	now := c.prepareCalls(driver)
	nr := now.nr - before.nr
	if nr == 0 {
		c.Fatalf("the kubelet says nothing of calls of %s", driver)
	}
	below := func(part float64) float64 {
		least := math.Inf(1)
		for bound, all := range now.atMost {
			if seconds, err := strconv.ParseFloat(bound, 64); err == nil && float64(all-before.atMost[bound]) >= part*float64(nr) {
				least = min(least, seconds)
			}
		}
		return 1000 * least
	}
	c.Logf("figure: %s: NodePrepareResources, by the kubelet's metrics, %d calls: mean %.1f ms, p50 at most %.0f ms, p99 at most %.0f ms",
		what, nr, 1000*(now.sum-before.sum)/float64(nr), below(0.5), below(0.99))
}

func (c *cluster) prepareCalls(driver string) calls {
	c.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", c.port))
	c.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	c.must(err)
	all := calls{atMost: map[string]int{}}
	for _, l := range strings.Split(string(text), "\n") {
		name, is := strings.CutPrefix(l, "dra_grpc_operations_duration_seconds_")
		if !is || !strings.Contains(l, `driver_name="`+driver+`"`) || !strings.Contains(l, prepareCall) {
			continue
		}
		value, err := strconv.ParseFloat(l[strings.LastIndex(l, " ")+1:], 64)
		c.must(err)
		_, bound, _ := strings.Cut(l, `le="`)
		bound, _, _ = strings.Cut(bound, `"`)
		switch name, _, _ = strings.Cut(name, "{"); name { // of all grpc_status_code
		case "bucket":
			all.atMost[bound] += int(value)
		case "count":
			all.nr += int(value)
		case "sum":
			all.sum += value
		}
	}
	return all
}

// updatesThePool counts what runc is asked for when a claim comes, and when it goes.
func (d *compared) updatesThePool() {
	for i := range comparePool {
		d.create(fmt.Sprint("pool-", i), bestEffort, want{name: "main"})
	}
	for i := range comparePool {
		d.awaitRunning(fmt.Sprint("pool-", i))
	}
	d.awaitPool(madeCPUs)
	const nr = 4
	came, went := 0, 0
	for i := range nr {
		name := fmt.Sprint("claim-", i)
		before := d.updates()
		d.claims(name, claimFour)
		d.awaitRunning(name)
		d.awaitPool(madeCPUs - claimCPUs)
		during := d.updates()
		d.delete(name)
		d.await("its claim to go", func() bool { return len(d.allClaims()) == 0 })
		d.awaitPool(madeCPUs)
		came, went = came+during-before, went+d.updates()-during
	}
	d.figure("with %d containers that share the pool: %.1f updates of them for each claim that comes, %.1f for each that goes",
		comparePool, float64(came)/nr, float64(went)/nr)
}

// awaitPool waits until all who share the pool have so many CPUs; a reserved one is the pool's or not.
func (d *compared) awaitPool(cpus int) {
	d.Helper()
	d.awaitOrder("the pool", func() string {
		for _, one := range d.lives().running {
			if strings.HasPrefix(one.pod, "pool-") && len(one.of) != cpus && len(one.of) != cpus-1 {
				return fmt.Sprintf("%v is to have %d CPUs", one, cpus)
			}
		}
		return ""
	})
}

// updates are those of the pool's containers, up to now.
func (d *compared) updates() (nr int) {
	d.Helper()
	ours := map[string]bool{}
	for _, a := range d.allAsked() {
		switch {
		case a.Op == "create" && strings.HasPrefix(a.Pod, "pool-"):
			ours[a.ID] = true
		case a.Op == "update" && ours[a.ID]:
			nr++
		}
	}
	return nr
}

// comesBack: a container has died once and runs again before another claim comes.
func (d *compared) comesBack() {
	d.claims("claim-dies", claimFour)
	before := d.runsFour("claim-dies")
	d.killContainer("claim-dies")
	d.await("the container to run again", func() bool {
		p := d.pod("claim-dies")
		return p.ready() && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	d.claims("claim-next", claimFour)
	next := d.runsFour("claim-next")
	again := d.life("claim-dies", "main")
	d.figure("a container that died runs on %s again (%s before), the next claim's on %s: %s", again.cpus, before.cpus, next.cpus,
		d.verdict(again, next))
	if again.cpus != before.cpus {
		d.Errorf("%v was %v", again, before)
	}
	d.insist(d.forgetsDead, "a container of the first claim has died once", again, next)
}

// runsFour waits until the pod runs, on four CPUs of one NUMA node.
func (d *compared) runsFour(pod string) *life {
	d.Helper()
	d.awaitRunning(pod)
	one := d.life(pod, "main")
	nodes := map[int]bool{}
	for cpu := range one.of {
		nodes[nodeOf(cpu)] = true
	}
	if len(one.of) != claimCPUs || len(nodes) != 1 {
		d.Errorf("%v is to have %d CPUs of one NUMA node", one, claimCPUs)
	}
	return one
}

func inCommon(a, b *life) (nr int) {
	for cpu := range a.of {
		if b.of[cpu] {
			nr++
		}
	}
	return nr
}

func (d *compared) verdict(a, b *life) string {
	if nr := inCommon(a, b); nr > 0 {
		return fmt.Sprintf("%d CPUs are both claims'", nr)
	}
	return "no CPU is given twice"
}

// insist: CPUs are given twice if that is known of the driver, and else not.
func (d *compared) insist(twice bool, when string, a, b *life) {
	d.Helper()
	switch nr := inCommon(a, b); {
	case nr > 0 && !twice:
		d.Errorf("when %s: %d CPUs are both claims': %v, and %v", when, nr, a, b)
	case nr == 0 && twice:
		d.Errorf("when %s, %s gave CPUs twice until now, and does so no longer: it may have been mended; change deploy/docs/claims-compared.md", when, d.name)
	}
}

// startsAnew: one claim has a container that runs, another one's has not started yet.
func (d *compared) startsAnew() {
	d.claims("claim-runs", claimFour)
	runs := d.runsFour("claim-runs")
	p := podWithClaim("claim-early", bestEffort, claimFour, want{name: "main"})
	member(p, "spec")["containers"].([]any)[0].(map[string]any)["image"] = lateImage
	d.createObject(podsPath, p)
	d.await("its image to be missed", func() bool { return d.eventSaying("claim-early", lateImage) != "" })
	began := time.Now()
	d.restart()
	d.figure("ready %.1f s after it was killed", time.Since(began).Seconds())
	d.claims("claim-next", claimFour)
	next := d.runsFour("claim-next")
	d.figure("the driver was killed: a claim's container that ran is on %s, the next claim's on %s: %s", runs.cpus, next.cpus, d.verdict(runs, next))
	d.insist(false, "the driver was killed while the first claim's container ran", d.life("claim-runs", "main"), next)
	d.ctr("images", "tag", image, lateImage)
	early := d.runsFour("claim-early")
	d.figure("the driver was killed: a prepared claim's container that had not started is on %s, the next claim's on %s: %s", early.cpus, next.cpus,
		d.verdict(early, next))
	d.insist(d.forgetsEarly, "the driver was killed while the first claim was prepared and its container had not started", early, next)
}

// fillsUp is a claim for each CPU, each with a pod, all at once, beside a pod that shares the pool.
func (d *compared) fillsUp() {
	const nr = madeNodes*atRestCPUs - 1
	d.runs("pool", bestEffort, want{name: "main"})
	rss, used, before := d.memory(), d.processorTime(), d.prepareCalls(d.driver)
	began := time.Now()
	for i := range nr {
		d.claims(fmt.Sprint("claim-fill-", i), claimOne)
	}
	for running := 0; running < nr+1; {
		least := running
		d.await("more pods to run", func() bool {
			running = 0
			for _, p := range d.allPods() {
				if p.Status.Phase == "Running" && p.ready() {
					running++
				}
			}
			return running > least
		})
	}
	took := time.Since(began)
	owners := map[int]string{}
	for _, one := range d.lives().running {
		for cpu := range one.of {
			if owner(one.pod, one.container) == "" {
				continue
			}
			if other := owners[cpu]; other != "" || len(one.of) != 1 {
				d.Errorf("%v has CPU %d, and so has %q", one, cpu, other)
			}
			owners[cpu] = one.pod
		}
	}
	if len(owners) != nr {
		d.Errorf("%d CPUs are claims', not %d", len(owners), nr)
	}
	pool, common := d.life("pool", "main"), 0
	for cpu := range pool.of {
		if owners[cpu] != "" {
			common++
		}
	}
	d.figure("with %d CPUs in claims who shares the pool runs on %s: %d of them are claims'", nr, pool.cpus, common)
	if (common > 0) != d.emptiesPool {
		d.Errorf("%d CPUs of the pool are claims': if it was so, it may have been mended; change deploy/docs/claims-compared.md", common)
	}
	d.figure("RSS %.1f MB without a claim, %.1f MB with %d of one CPU; that many pods ran after %.0f s, for which it took %.2f s of a processor",
		rss, d.memory(), nr, took.Seconds(), (d.processorTime() - used).Seconds())
	d.logPrepare(d.name+", for these claims", d.driver, before)
}

// memory is the driver's resident set in MB.
func (d *compared) memory() float64 {
	d.Helper()
	for _, l := range strings.Split(d.read(fmt.Sprintf("/proc/%d/status", d.pid())), "\n") {
		if kib, is := strings.CutPrefix(l, "VmRSS:"); is {
			nr, err := strconv.Atoi(strings.Fields(kib)[0])
			d.must(err)
			return float64(nr) * 1024 / 1e6
		}
	}
	d.Fatal("no VmRSS")
	return 0
}

func (d *compared) processorTime() time.Duration {
	d.Helper()
	stat := d.read(fmt.Sprintf("/proc/%d/stat", d.pid()))
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	ticks := 0
	for _, f := range fields[11:13] { // utime and stime, in 1/100 s
		nr, err := strconv.Atoi(f)
		d.must(err)
		ticks += nr
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
