package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// numafitd as the DRA driver numafit.io: claims of CPUs and memory of one NUMA node, allocated by a real
// scheduler and prepared through a real kubelet. What containers have is what runc was asked for.

const (
	claimCPUs  = 4
	claimFour  = "four" // the template of that
	atRestCPUs = 16     // of a NUMA node; node 0 has a reserved one less
)

func TestClusterDRADriver(t *testing.T) {
	c := newClusterOf(t, options{machine: this, timeout: "10s", kubelet: &kubeletOptions{more: map[string]any{
		"crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "1s"}}}}) // numafitd is killed often
	c.patch = slices.DeleteFunc(c.patch, func(p any) bool { // on a busy machine a second may be short
		return strings.Contains(p.(map[string]any)["path"].(string), "Probe/")
	})
	c.components = []string{asDRADriver}
	c.createDRAObjects()
	gpus := c.startDRA(madeUpGPUs())
	for _, step := range []struct {
		name string
		do   func(*cluster)
	}{
		{"the node's slice is published", (*cluster).publishesSlice},
		{"a claim is four CPUs of the NUMA node that the scheduler chose", (*cluster).givesWhatIsClaimed},
		{"a container that dies comes back on the same CPUs", (*cluster).keepsThroughRestart},
		{"a claim with a GPU lies beside it", (*cluster).liesBesideGPU},
		{"several containers share a claim that says so, and no other", (*cluster).sharesIfToldTo},
		{"whole cores", (*cluster).givesWholeCores},
		{"a Job of pods with claims", (*cluster).runsJob},
		{"a claim holds CPUs before its pod starts", (*cluster).holdsBeforeStart},
		{"a plain pod's CPUs are not offered", (*cluster).offersWhatIsLeft},
		{"a claim waits for CPUs that are being freed", (*cluster).waitsForRoom},
		{"a claim ends while numafitd is away", (*cluster).endsWhileAway},
		{"times", (*cluster).takesTimes},
		{"the page's examples run", (*cluster).runsExamples},
		{"requests beside a claim give nothing", (*cluster).givesRequestsNothing},
		{"a storm of pods, with the kubelet and numafitd killed", func(c *cluster) { c.stormsWithClaims(gpus) }},
		{"only the component's rights were used", (*cluster).checkClaimRights},
		{"slices of others cannot be written", (*cluster).mayNotWriteOthers},
		{afterReboot, (*cluster).bootsAgain},
	} {
		if step.name == afterReboot && os.Getenv("DRA_FULL") == "" {
			continue // the kubelet waits for 78 s
		}
		if !t.Run(step.name, func(t *testing.T) {
			c.T = t
			step.do(c)
			c.drain()
			c.isAtRest()
			c.endLostAll()
		}) {
			break
		}
	}
	c.T = t
}

// publishesSlice also makes the templates.
func (c *cluster) publishesSlice() {
	c.installAll()
	c.createTemplate(claimFour, nil, asksFor(podClaim, numaClass, claimCPUs))
	c.await("the slice", func() bool { _, is := c.published(); return is })
	p, _ := c.published()
	if s := p.Spec; s.Driver != numaDriver || s.NodeName != nodeName || s.Pool.Name != nodeName || s.Pool.ResourceSliceCount != 1 ||
		len(s.Devices) != madeNodes || len(p.Metadata.OwnerReferences) != 1 || p.Metadata.OwnerReferences[0].Kind != "Node" {
		c.Fatalf("the slice is %+v", p)
	}
	for i, d := range p.Spec.Devices {
		wanted := map[string]int{"resource.kubernetes.io/numaNode": i, "socket": i * madeSockets / madeNodes,
			"l3Caches": coresPerNode / coresPerCache, "threadsPerCore": madeCPUs / madeCores}
		for name, value := range wanted {
			if is := d.Attributes[name].Int; is == nil || *is != value {
				c.Errorf("attribute %s of %s is not %d: %+v", name, d.Name, value, d)
			}
		}
		if d.Name != fmt.Sprint("numa", i) || !d.AllowMultipleAllocations || len(d.Attributes) != len(wanted) {
			c.Errorf("device %d is %+v", i, d)
		}
	}
	c.isAtRest()
}

// isAtRest waits until nothing is held for claims, or left of them, and everything is offered.
func (c *cluster) isAtRest() {
	c.Helper()
	wanted := map[string]string{}
	for n := range madeNodes {
		wanted[fmt.Sprint("numa", n)] = fmt.Sprintf("cpu %d, memory %dGi", atRestCPUs, madeMemoryKB>>20)
	}
	wanted["numa0"] = fmt.Sprintf("cpu %d, memory %dGi", atRestCPUs-1, madeMemoryKB>>20)
	c.awaitOrder("everything to be given back", func() string {
		c.endLost()
		claims, files, s, offered := c.allClaims(), claimFiles(), c.status(), c.capacities()
		held := 0
		for _, n := range s.Nodes {
			held += n.Held
		}
		if len(claims)+len(files)+len(s.Claims)+held != 0 || !maps.Equal(offered, wanted) {
			return fmt.Sprintf("claims %v, files %v, held %v and %d CPUs, offered %v", claims, files, s.Claims, held, offered)
		}
		return ""
	})
}

func (c *cluster) givesWhatIsClaimed() {
	c.createObject(podsPath, podWithClaim("claim-one", bestEffort, claimFour, want{name: "main"}, want{name: beside}))
	c.runsOnClaim("claim-one", claimCPUs)
	claim := c.claimOf("claim-one")
	s := c.share(claim, podClaim)
	if s.cpus != fmt.Sprint(claimCPUs) || s.id == "" {
		c.Errorf("the claim came to %+v", s)
	}
	if all := c.life("claim-one", beside); len(all.of) != madeCPUs-claimCPUs {
		c.Errorf("who does not name the claim is to share the pool: %v", all)
	}
	c.checkPodResources("claim-one", claim, s)
	c.checkMetadata("claim-one", claim, s)
	c.checkNothingIsShared()
}

func (c *cluster) checkPodResources(pod string, claim draClaim, s share) {
	c.Helper()
	shown := c.dynamicResources(pod)
	if len(shown) != 1 || shown[0].ClaimName != claim.Metadata.Name || len(shown[0].ClaimResources) != 1 {
		c.Fatalf("PodResources says of %s: %v", pod, shown)
	}
	r := shown[0].ClaimResources[0]
	if r.DriverName != numaDriver || r.PoolName != nodeName || r.DeviceName != s.device || r.GetShareId() != s.id ||
		len(r.CdiDevices) != 1 || r.CdiDevices[0].Name != numaDriver+"/claim="+claim.Metadata.UID+"-0" {
		c.Errorf("PodResources says %v of share %+v", r, s)
	}
}

// checkMetadata: the container finds its claim's NUMA node, without asking anybody.
func (c *cluster) checkMetadata(pod string, claim draClaim, s share) {
	c.Helper()
	id := c.pods[pod].containers["main"]
	shown := c.inside(id, "sh", "-c", "echo $NUMAFIT_CLAIM_NUMA_NODE_"+strings.ReplaceAll(claim.Metadata.UID, "-", "_"))
	if strings.TrimSpace(shown) != strconv.Itoa(s.numaNode) {
		c.Errorf("the environment has NUMA node %q, the claim came to %s", shown, s.device)
	}
	file := "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/" + podClaim + "/" + podClaim + "/" + numaDriver + "-metadata.json"
	var metadata struct{ Kind string }
	if text := c.inside(id, "cat", file); json.Unmarshal([]byte(text), &metadata) != nil || metadata.Kind != "DeviceMetadata" || !strings.Contains(text, s.device) {
		c.Errorf("the metadata are %s", text)
	}
}

// keepsThroughRestart: another claim comes while the container is dead, when nothing but the ledger
// says that its CPUs are not free.
func (c *cluster) keepsThroughRestart() {
	c.claims("claim-dies", claimFour)
	before := c.runsOnClaim("claim-dies", claimCPUs)
	c.killContainer("claim-dies")
	c.claims("claim-next", claimFour)
	next := c.runsOnClaim("claim-next", claimCPUs)
	c.awaitOrder("the container to run again", func() string {
		p := c.pod("claim-dies")
		if !p.ready() || p.Status.ContainerStatuses[0].RestartCount != 1 {
			return fmt.Sprintf("%+v", p.Status)
		}
		return ""
	})
	if again := c.life("claim-dies", "main"); again.cpus != before.cpus || again.mems != before.mems {
		c.Errorf("%v was %v", again, before)
	}
	if next.mems != before.mems {
		c.Errorf("%v and %v are to fill one NUMA node first", before, next)
	}
	c.checkNothingIsShared()
}

func (c *cluster) killContainer(pod string) {
	c.Helper()
	c.must(syscall.Kill(c.pid(c.pods[pod].containers["main"]), syscall.SIGKILL))
}

// liesBesideGPU: the same without the constraint is elsewhere, so that it is the constraint that counts.
func (c *cluster) liesBesideGPU() {
	const gpuNode = 5
	cpus := asksFor(podClaim, numaClass, claimCPUs)
	c.createTemplate("with-gpu", onOneNUMANode(podClaim, "gpu"), cpus, asksForGPU(gpuNode))
	c.createTemplate("with-gpu-anywhere", nil, cpus, asksForGPU(gpuNode))
	c.claims("claim-gpu", "with-gpu")
	c.claims("claim-apart", "with-gpu-anywhere")
	c.checkOnNode(c.runsOnClaim("claim-gpu", claimCPUs), claimCPUs, gpuNode)
	if apart := c.runsOnClaim("claim-apart", claimCPUs); apart.mems == strconv.Itoa(gpuNode) {
		c.Errorf("without a constraint a claim is to come to the first NUMA node: %v", apart)
	}
	c.checkNothingIsShared()
}

func (c *cluster) sharesIfToldTo() {
	cpus := asksFor(podClaim, numaClass, claimCPUs)
	c.createTemplate("shared", parameters(map[string]any{"shared": true}), cpus)
	two := []want{{name: "main"}, {name: "second"}}
	c.createObject(podsPath, podWithClaim("claim-shared", bestEffort, "shared", two...))
	c.createObject(podsPath, podWithClaim("claim-alone", bestEffort, claimFour, two...))
	first := c.runsOnClaim("claim-shared", claimCPUs)
	if second := c.life("claim-shared", "second"); second.cpus != first.cpus || second.mems != first.mems {
		c.Errorf("%v and %v are to be on the same CPUs", first, second)
	}
	c.await("the event of the second container", func() bool { return c.eventSaying("claim-alone", "shared: true") != "" })
	c.Logf("the event: %s", c.eventSaying("claim-alone", "shared: true"))
	c.look()
	c.checkOnNode(c.life("claim-alone", "main"), claimCPUs, c.share(c.claimOf("claim-alone"), podClaim).numaNode)
	if second := c.lives().of("claim-alone", "second"); len(second) != 0 {
		c.Errorf("%v is to be refused", second)
	}
	c.checkNothingIsShared()
}

// givesWholeCores: an odd number of CPUs is refused with words, so that it is the class that counts.
func (c *cluster) givesWholeCores() {
	c.createTemplate("cores", nil, asksFor(podClaim, wholeClass, claimCPUs))
	c.createTemplate("odd-cores", nil, asksFor(podClaim, wholeClass, claimCPUs-1))
	c.createTemplate("odd", nil, asksFor(podClaim, numaClass, claimCPUs-1))
	c.claims("claim-odd-cores", "odd-cores")
	c.claims("claim-odd", "odd")
	c.runsOnClaim("claim-odd", claimCPUs-1)
	c.claims("claim-cores", "cores")
	cpus := c.runsOnClaim("claim-cores", claimCPUs).of
	for cpu := range cpus {
		if !cpus[(cpu+madeCores)%madeCPUs] {
			c.Errorf("of the core of CPU %d the other thread is not there: %v", cpu, cpus)
		}
	}
	c.await("the event", func() bool { return c.event("FailedPrepareDynamicResources", "claim-odd-cores") != "" })
	if said := c.event("FailedPrepareDynamicResources", "claim-odd-cores"); !strings.Contains(said, "whole cores") {
		c.Errorf("3 CPUs of whole cores are refused so: %s", said)
	}
	c.checkNothingIsShared()
}

func (c *cluster) runsJob() {
	const completions = 6
	p := podWithClaim("", bestEffort, claimFour, want{name: "main", args: []string{"sleep 1"}})
	member(p, "spec")["restartPolicy"] = "Never"
	delete(p, "apiVersion")
	delete(p, "kind")
	c.createObject(jobsPath, map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "claim-job"},
		"spec": map[string]any{"completions": completions, "parallelism": 3, "backoffLimit": 0, "template": p}})
	c.await("the Job to be complete", func() bool {
		var job struct {
			Status struct{ Succeeded, Failed int }
		}
		c.ask("GET", jobsPath+"/claim-job", nil, &job)
		if job.Status.Failed != 0 {
			c.Fatalf("the Job: %+v", job)
		}
		return job.Status.Succeeded == completions
	})
	nr := 0
	for _, a := range c.allAsked() {
		if a.Op == "create" && a.Kind == "container" && strings.HasPrefix(a.Pod, "claim-job-") {
			nr++
			if len(c.set(a.CPUs)) != claimCPUs {
				c.Errorf("a pod of the Job was created so: %+v", a)
			}
		}
	}
	if nr != completions {
		c.Errorf("%d containers were created for %d pods", nr, completions)
	}
	c.isAtRest() // its pods are there still
	c.kubectl("delete", "job", "claim-job")
	c.checkNothingIsShared()
}

// holdsBeforeStart: who shares the pool has lost the claim's CPUs, although no container runs on them.
func (c *cluster) holdsBeforeStart() {
	c.runs("pool", burstable, batch...)
	all := len(c.life("pool", "batch").of)
	p := podWithClaim("claim-never", bestEffort, claimFour, want{name: "main"})
	member(p, "spec")["containers"].([]any)[0].(map[string]any)["image"] = "localhost/not-there:1"
	c.createObject(podsPath, p)
	c.await("the image to be missed", func() bool { return c.eventSaying("claim-never", "not-there") != "" })
	c.await("the pool to be without the claim's CPUs", func() bool { return len(c.life("pool", "batch").of) == all-claimCPUs })
	without := c.life("pool", "batch").of
	numaNode := c.share(c.claimOf("claim-never"), podClaim).numaNode
	for cpu := range madeCPUs {
		if !without[cpu] && nodeOf(cpu) != numaNode {
			c.Errorf("the pool lacks CPU %d, the claim has CPUs of NUMA node %d", cpu, numaNode)
		}
	}
	c.claims("claim-other", claimFour)
	for cpu := range c.runsOnClaim("claim-other", claimCPUs).of {
		if !without[cpu] {
			c.Errorf("CPU %d is both claims'", cpu)
		}
	}
	c.delete("claim-never")
	c.delete("claim-other")
	c.await("the pool to have all again", func() bool { return len(c.life("pool", "batch").of) == all })
}

func (c *cluster) offersWhatIsLeft() {
	before := c.cpusOffered()
	c.runs("plain-db", guaranteed, db...)
	numaNode, err := strconv.Atoi(c.life("plain-db", "db").mems)
	c.must(err)
	wanted := before
	wanted[numaNode] -= 4
	c.await("the slice to say so", func() bool { return c.cpusOffered() == wanted })
	c.claims("claim-beside", claimFour) // it is not counted twice
	c.runsOnClaim("claim-beside", claimCPUs)
	if now := c.cpusOffered(); now != wanted {
		c.Errorf("with a claim %v are offered, without it %v", now, wanted)
	}
	c.delete("plain-db")
	c.await("the slice to be as before", func() bool { return c.cpusOffered() == before })
	c.checkNothingIsShared()
}

// withSetting has numafitd restarted with one more, and without it in the end.
func (c *cluster) withSetting(setting string, do func()) {
	c.Helper()
	before := c.patch
	apply := func() {
		c.kubectl("apply", "-k", c.overlay())
		c.awaitRollout()
		c.await("numafitd to be registered", func() bool { return c.status().DRADriver.Registration == "up" })
	}
	c.patch = append(slices.Clip(before), map[string]any{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--set=" + setting})
	apply()
	do()
	c.patch = before
	apply()
}

// waitsForRoom: with a fixed share the scheduler may allocate what plain pods have.
func (c *cluster) waitsForRoom() {
	c.withSetting("claims.capacity=share", func() {
		half := [madeNodes]int{}
		for n := range half {
			half[n] = atRestCPUs / 2
		}
		half[0]-- // of 15
		c.await("half of each NUMA node to be offered", func() bool { return c.cpusOffered() == half })
		perPod := int64(atRestCPUs - 1)
		fill := map[string]string{} // the pod that has it, by NUMA node
		for i := range madeNodes {
			name := fmt.Sprint("plain-", i)
			c.runs(name, guaranteed, want{name: "main", milli: perPod * 1000, memory: 16 * mi})
			fill[c.life(name, "main").mems] = name
		}
		c.claims("claim-waits", claimFour)
		c.await("it to be allocated", func() bool {
			claims := c.allClaims()
			return len(claims) == 1 && len(claims[0].Status.Allocation.Devices.Results) == 1
		})
		time.Sleep(5 * time.Second)
		p, failed := c.pod("claim-waits"), c.event("FailedPrepareDynamicResources", "claim-waits")
		if p.Status.Phase != "Pending" || failed != "" {
			c.Errorf("it is to wait: %+v, %s", p.Status, failed)
		}
		began := time.Now()
		c.delete(fill[strconv.Itoa(c.share(c.claimOf("claim-waits"), podClaim).numaNode)])
		c.runsOnClaim("claim-waits", claimCPUs)
		c.Logf("it runs %.1f s after the pod was deleted that had its CPUs", time.Since(began).Seconds())
		c.checkNothingIsShared()
		c.drain()
	})
}

// endsWhileAway: a pod with a claim is deleted while numafitd is nowhere; the kubelet tries again.
func (c *cluster) endsWhileAway() {
	c.claims("claim-ends", claimFour)
	c.claims("claim-stays", claimFour)
	c.runsOnClaim("claim-ends", claimCPUs)
	before := c.runsOnClaim("claim-stays", claimCPUs)
	nowhere := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"nowhere": "x"}}}}}
	c.kubectl("-n", numafit, "patch", daemonSet, "--type=merge", "--patch", string(toJSON(nowhere)))
	c.await("numafitd to be gone", func() bool { return len(c.daemonPods().Items) == 0 })
	c.ask("DELETE", podsPath+"/claim-ends", nil, nil)
	c.await("its container to end", func() bool { return len(c.lives().of("claim-ends", "main")) == 0 })
	c.kubectl("apply", "-k", c.overlay())
	c.kubectl("-n", numafit, "patch", daemonSet, "--type=json", "--patch", `[{"op": "remove", "path": "/spec/template/spec/nodeSelector/nowhere"}]`)
	c.awaitRollout()
	c.await("the pod to go", func() bool { return c.ask("GET", podsPath+"/claim-ends", nil, nil) == http.StatusNotFound })
	c.look()
	c.await("one claim to be held", func() bool { return len(c.status().Claims) == 1 })
	if now := c.life("claim-stays", "main"); now.cpus != before.cpus {
		c.Errorf("%v was %v", now, before)
	}
	c.checkNothingIsShared()
}

// takesTimes are figures, and no more.
func (c *cluster) takesTimes() {
	c.logTimes("numafitd")
	if prepared := c.prepareTimes(); len(prepared) > 0 {
		c.Logf("figure: Prepare, by the log of numafitd: p50 %d ms, p99 %d ms of %d", prepared[len(prepared)/2],
			prepared[len(prepared)*99/100], len(prepared))
	}
	c.logPrepare("numafitd", numaDriver, calls{})
}

// logTimes are those of pods one after another, of which every second one has a claim.
func (c *cluster) logTimes(name string) {
	c.Helper()
	const nr = 8
	took := map[string][]time.Duration{}
	for i := range nr {
		for _, kind := range []string{"pool", "claim"} {
			pod := fmt.Sprintf("%s-time-%d", kind, i)
			began := time.Now()
			if kind == "claim" {
				c.claims(pod, claimFour)
			} else {
				c.create(pod, bestEffort, want{name: "main"})
			}
			c.await(pod+" to run", func() bool { return c.pod(pod).Status.Phase == "Running" })
			took[kind] = append(took[kind], time.Since(began))
			c.delete(pod)
		}
	}
	for _, all := range took {
		slices.Sort(all)
	}
	c.Logf("figure: %s: created to Running, median of %d: %d ms without a claim, %d ms with one", name, nr,
		took["pool"][nr/2].Milliseconds(), took["claim"][nr/2].Milliseconds())
}

// prepareTimes are in ms, of those that numafitd's log has since it started, sorted.
func (c *cluster) prepareTimes() (all []int) {
	c.Helper()
	for _, l := range strings.Split(c.daemonLog(), "\n") {
		_, ms, is := strings.Cut(l, " took_ms=")
		if !is || !strings.Contains(l, "event=claim-prepared") {
			continue
		}
		ms, _, _ = strings.Cut(ms, " ")
		took, err := strconv.Atoi(ms)
		c.must(err)
		all = append(all, took)
	}
	slices.Sort(all)
	return all
}

// runsExamples creates what deploy/docs/cpus-and-memory-by-claims.md has to copy, with an image and a class of GPUs
// that are there.
func (c *cluster) runsExamples() {
	page := c.read(filepath.Join(os.Getenv("DEPLOY"), "docs/cpus-and-memory-by-claims.md"))
	ours := strings.NewReplacer("deviceClassName: "+draDriver, "deviceClassName: "+draClass,
		"\n  resourceClaims:\n", "\n  hostNetwork: true\n  resourceClaims:\n") // there is no other network
	for i, block := range strings.Split(page, "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		text = regexp.MustCompile("image: .*").ReplaceAllString(ours.Replace(text), "image: "+image)
		path := c.path(fmt.Sprintf("example-%d.yaml", i))
		c.must(os.WriteFile(path, []byte(text), 0o600))
		c.kubectl("create", "--validate=strict", "-f", path)
	}
	wanted := map[string]int{"solver/solver": 8, "training/training": 4, "wide/wide": 12, "pair/server": 4, "pair/helper": 4, "engine/engine": 4}
	for of, nr := range wanted {
		pod, container, _ := strings.Cut(of, "/")
		c.awaitRunning(pod)
		if one := c.life(pod, container); len(one.of) != nr {
			c.Errorf("%v is to have %d CPUs", one, nr)
		}
	}
	if wide := c.life("wide", "wide"); len(c.set(wide.mems)) != 2 {
		c.Errorf("%v is to be on two NUMA nodes", wide)
	}
	if nr := len(c.allPods()); nr != len(wanted)-1 { // two containers are one pod's
		c.Errorf("the page has %d pods", nr)
	}
}

// givesRequestsNothing: a Guaranteed pod's container has its claim's CPUs, and no others are held for it.
func (c *cluster) givesRequestsNothing() {
	c.runs("pool", burstable, batch...)
	all := len(c.life("pool", "batch").of)
	p := podWithClaim("claim-mirror", bestEffort, claimFour, want{name: "main"})
	asks := map[string]string{"cpu": fmt.Sprint(claimCPUs), "memory": claimMemory}
	resources := member(member(p, "spec")["containers"].([]any)[0].(map[string]any), "resources")
	resources["requests"], resources["limits"] = asks, asks
	c.createObject(podsPath, p)
	c.runsOnClaim("claim-mirror", claimCPUs)
	c.await("the pool to be without its CPUs", func() bool { return len(c.life("pool", "batch").of) == all-claimCPUs })
	c.checkNothingIsShared()
}

var claimRights = map[string][]string{
	"resourceclaims": {"get"},
	"resourceslices": {"get", "list", "watch", "create", "update", "delete"},
}

// checkClaimRights: of resource.k8s.io numafitd asked for what the component allows, and nothing was denied.
func (c *cluster) checkClaimRights() {
	used := map[string]int{}
	for _, e := range c.audit() {
		if e.ObjectRef.APIGroup != "resource.k8s.io" {
			continue
		}
		used[e.Verb+" "+e.ObjectRef.Resource]++
		if !slices.Contains(claimRights[e.ObjectRef.Resource], e.Verb) || e.ResponseStatus.Code == http.StatusForbidden {
			c.Errorf("numafitd asked for %+v", e)
		}
	}
	c.Logf("of resource.k8s.io were used: %v", used)
	for _, right := range []string{"get resourceclaims", "watch resourceslices", "create resourceslices", "update resourceslices"} {
		if used[right] == 0 {
			c.Errorf("numafitd did not %s", right)
		}
	}
}

// mayNotWriteOthers tries it with a token like numafitd's, on its node.
func (c *cluster) mayNotWriteOthers() {
	token := strings.TrimSpace(c.kubectl("-n", numafit, "create", "token", "numafitd",
		"--bound-object-kind", "Pod", "--bound-object-name", c.daemonPods().Items[0].Metadata.Name))
	for _, try := range []struct {
		name, driver, node, pool string
		allowed                  bool
	}{
		{"own", numaDriver, nodeName, nodeName, true},
		{"other-driver", draDriver, nodeName, nodeName, false},
		{"other-node", numaDriver, "n2", "n2", false},
		{"other-pool", numaDriver, nodeName, "n2", false},
	} {
		path := c.path(try.name + ".json")
		c.must(os.WriteFile(path, toJSON(map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
			"metadata": map[string]any{"name": try.name}, "spec": map[string]any{"driver": try.driver, "nodeName": try.node,
				"pool":    map[string]any{"name": try.pool, "generation": 1, "resourceSliceCount": 1},
				"devices": []any{map[string]any{"name": "x"}}}}), 0o600))
		said, err := c.tryKubectl("--token="+token, "create", "--dry-run=server", "-f", path)
		if refused := strings.Contains(said, "may not write ResourceSlice"); (err == nil) != try.allowed || refused == try.allowed {
			c.Errorf("%s: %v: %s", filepath.Base(path), err, said)
		}
	}
	if said, err := c.tryKubectl("--token="+token, "delete", "--dry-run=server", "resourceslice", sliceName(0)); err == nil ||
		!strings.Contains(said, "may not write ResourceSlice") {
		c.Errorf("another driver's slice is deleted: %v: %s", err, said)
	}
}
