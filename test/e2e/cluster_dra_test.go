package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Plain pods whose GPUs come from a DRA driver, of which the kubelet's Topology Manager knows nothing:
// whoever creates the container after the claim was prepared is the only one who can put it beside
// its GPU.

const (
	draPods    = 50
	draBatches = 5 // with restarts in between
	draCPUs    = 2 // of each pod
	draClass   = "gpu"
	oneGPU     = "one-gpu" // a template of claims
	withClaims = "components/device-claims"
)

func TestClusterDRADevices(t *testing.T) {
	// An answer that waits needs several turns of numafitd's loop, which may have little of a busy
	// machine: pods have no more weight than one process outside.
	c := newClusterOf(t, options{machine: this, timeout: "10s"})
	c.policy = "restricted"
	c.patch = slices.DeleteFunc(c.patch, func(p any) bool { // they are those of deploy/: a second may be short
		return strings.Contains(p.(map[string]any)["path"].(string), "Probe/")
	})
	c.components = []string{withClaims}
	c.patch = append(c.patch, map[string]any{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--set=deviceClaims.wait=1500ms"})
	c.createDRAObjects()
	driver := c.startDRA(madeUpGPUs())
	for _, step := range []struct {
		name string
		do   func(*cluster)
	}{
		{"restricted: each pod lies beside its GPU, through restarts", func(c *cluster) {
			c.installAll()
			c.allBesideTheirGPUs(driver)
			c.checkDRARights()
		}},
		{"best-effort: likewise", func(c *cluster) {
			c.setPolicy("best-effort")
			c.allBesideTheirGPUs(driver)
		}},
		{"without waiting: who is not beside its GPU says so", func(c *cluster) {
			c.patch = c.patch[:len(c.patch)-1]
			c.kubectl("apply", "-k", c.overlay())
			c.awaitRollout()
			c.apartOnlyIfUnknown()
		}},
		{"with the setting off: the same pods, for the figure", func(c *cluster) {
			c.components = nil
			c.kubectl("apply", "-k", c.overlay())
			c.awaitRollout()
			c.createBatch(0, draPods)
			c.logFigure("off")
		}},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.T = t
			step.do(c)
			c.drain()
		}) {
			break
		}
	}
	c.T = t
}

// createDRAObjects are a class of the driver's devices, and a template for claims of one.
func (c *cluster) createDRAObjects() {
	c.Helper()
	c.createObject("/apis/resource.k8s.io/v1/deviceclasses", map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
		"metadata": map[string]any{"name": draClass},
		"spec":     map[string]any{"selectors": []any{map[string]any{"cel": map[string]any{"expression": `device.driver == "` + draDriver + `"`}}}}})
	c.createTemplate(oneGPU, nil, map[string]any{"name": "gpu", "exactly": map[string]any{"deviceClassName": draClass}})
}

func (c *cluster) setPolicy(policy string) {
	c.Helper()
	c.policy = policy
	c.kubectl("apply", "-k", c.overlay())
	c.kubectl("-n", numafit, "rollout", "restart", daemonSet)
	c.awaitRollout()
}

// createBatch has that many pods run, all at once.
func (c *cluster) createBatch(first, nr int) {
	c.Helper()
	for i := first; i < first+nr; i++ {
		c.createObject(podsPath, podWithClaim(fmt.Sprint("gpu-", i), guaranteed, oneGPU, want{name: "app", milli: draCPUs * 1000, memory: 16 * mi}))
	}
	c.await(fmt.Sprintf("pods %d to %d to run", first, first+nr-1), func() bool {
		running := 0
		for _, p := range c.allPods() {
			if p.Status.Phase == "Running" && p.ready() {
				running++
			}
		}
		return running == first+nr
	})
}

// drain takes all pods away, however long that takes on a busy machine, as long as some go.
func (c *cluster) drain() {
	c.Helper()
	c.ask("DELETE", podsPath, nil, nil)
	for left := len(c.allPods()); left > 0; {
		before := left
		c.await("more pods to go", func() bool { left = len(c.allPods()); return left < before })
	}
	c.look()
}

// gpuNodesOfPods are the NUMA nodes of the GPUs that the pods' claims have come to.
func (c *cluster) gpuNodesOfPods() map[string]int {
	c.Helper()
	var all struct{ Items []draClaim }
	nodes := map[string]int{}
	if status := c.ask("GET", claimsPath, nil, &all); status != http.StatusOK {
		c.Fatalf("the claims are not told: %d", status)
	}
	for _, claim := range all.Items {
		for _, result := range claim.Status.Allocation.Devices.Results {
			gpu, err := strconv.Atoi(strings.TrimPrefix(result.Device, "gpu"))
			c.must(err)
			for _, p := range claim.Status.ReservedFor {
				nodes[p.Name] = draNode(gpu)
			}
		}
	}
	return nodes
}

// apart are the pods of which CPUs or memory are on another NUMA node than their GPU.
func (c *cluster) apart() (apart []string, nr int) {
	c.Helper()
	nodes := c.gpuNodesOfPods()
	for _, h := range c.settled().running() {
		gpuNode, has := nodes[h.Pod]
		if !has {
			continue
		}
		nr++
		beside := h.Mems == strconv.Itoa(gpuNode)
		for cpu := range c.set(h.CPUs) {
			beside = beside && nodeOf(cpu) == gpuNode
		}
		if !beside {
			apart = append(apart, h.Pod)
			c.Logf("%s has CPUs %s and memory of %s, its GPU is on NUMA node %d", h.Pod, h.CPUs, h.Mems, gpuNode)
		}
	}
	return apart, nr
}

func (c *cluster) logFigure(what string) {
	c.Helper()
	apart, nr := c.apart()
	c.Logf("figure: %s: %d of %d pods are not beside their GPU; %s", what, len(apart), nr, c.draFigures())
}

// allBesideTheirGPUs restarts the kubelet, which deletes all slices, and numafitd while pods come.
func (c *cluster) allBesideTheirGPUs(driver *draPlugin) {
	c.Helper()
	for batch := range draBatches {
		c.createBatch(batch*draPods/draBatches, draPods/draBatches)
		switch batch {
		case 0:
			c.restartKubelet(driver)
		case 2:
			c.restartNumafitd()
		case 3:
			c.restartKubelet(driver)
			c.restartNumafitd()
		}
	}
	apart, nr := c.apart()
	c.Logf("figure: %s: %d of %d pods are not beside their GPU; %s", c.policy, len(apart), nr, c.draFigures())
	if len(apart) != 0 || nr != draPods {
		c.Errorf("of %d pods %v are not beside their GPU", nr, apart)
	}
	c.explains()
}

func (c *cluster) restartKubelet(driver *draPlugin) {
	c.Helper()
	before := driver.isRegistered()
	c.kubeletProcess.kill()
	c.startKubelet()
	c.await("the driver to be registered anew", func() bool { return driver.isRegistered() > before })
	c.await("its slices", driver.isPublished)
	c.awaitNode()
}

func (c *cluster) restartNumafitd() {
	c.Helper()
	c.look()
	pods := c.daemonPods().Items
	before := pods[0].Status.ContainerStatuses[0].RestartCount
	c.must(syscall.Kill(c.pid(c.pods[pods[0].Metadata.Name].containers["numafitd"]), syscall.SIGKILL))
	c.await("the kubelet to start it again", func() bool {
		pods := c.daemonPods().Items
		return len(pods) == 1 && pods[0].ready() && pods[0].Status.ContainerStatuses[0].RestartCount > before
	})
}

// explains: what was given since numafitd started is in the journal, and explain has it; deciding
// again comes to the same.
func (c *cluster) explains() {
	c.Helper()
	said := c.kubectl("-n", numafit, "exec", daemonSet, "--", "numafit", "explain", fmt.Sprint("gpu-", draPods-1))
	if !strings.Contains(said, "("+draDriver+") on NUMA node") {
		c.Errorf("explain says:\n%s", said)
	}
	if said, err := c.tryKubectl("-n", numafit, "exec", daemonSet, "--", "numafit", "replay", "/run/numafit/journal"); err != nil {
		c.Errorf("replay: %v\n%s", err, said)
	}
}

// apartOnlyIfUnknown: without waiting a pod may be created before its GPU is known.
func (c *cluster) apartOnlyIfUnknown() {
	c.Helper()
	c.createBatch(0, draPods)
	apart, nr := c.apart()
	c.Logf("figure: without waiting: %d of %d pods are not beside their GPU; %s", len(apart), nr, c.draFigures())
	for _, pod := range apart {
		said := c.kubectl("-n", numafit, "exec", daemonSet, "--", "numafit", "explain", pod)
		if !strings.Contains(strings.Join(strings.Fields(said), " "), "not all devices of its claims were looked at") {
			c.Errorf("explain says of %s:\n%s", pod, said)
		}
	}
}

// checkDRARights: of resource.k8s.io numafitd reads slices, and nothing else.
func (c *cluster) checkDRARights() {
	c.Helper()
	watched := 0
	for _, e := range c.audit() {
		switch {
		case e.ObjectRef.APIGroup != "resource.k8s.io":
		case e.ObjectRef.Resource == "resourceslices" && (e.Verb == "list" || e.Verb == "watch"):
			watched++
		default:
			c.Errorf("numafitd asked for %+v", e)
		}
	}
	if watched == 0 {
		c.Error("numafitd did not watch slices")
	}
}

// draFigures are how long hooks took, and how much memory numafitd has, by its metrics.
func (c *cluster) draFigures() string {
	c.Helper()
	answer, err := http.Get("http://127.0.0.1:9465/metrics")
	c.must(err)
	defer answer.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if name, value, is := strings.Cut(lines.Text(), " "); is && !strings.HasPrefix(name, "#") {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	hook := func(name string) string {
		nr := values[`numafit_nri_request_duration_seconds_count{request="`+name+`"}`]
		sum := values[`numafit_nri_request_duration_seconds_sum{request="`+name+`"}`]
		return fmt.Sprintf("%s %.0f of %.3f ms", name, nr, 1000*sum/max(nr, 1))
	}
	return fmt.Sprintf("since numafitd started: %s, %s; %.0f answers waited %.3f s in all; unknown: %.0f not shown yet, %.0f not published; RSS %.1f MB",
		hook("RunPodSandbox"), hook("CreateContainer"), values["numafit_device_claims_waits_total"], values["numafit_device_claims_wait_seconds_total"],
		values[`numafit_device_claims_unknown_total{why="not-shown-yet"}`], values[`numafit_device_claims_unknown_total{why="not-published"}`],
		values["process_resident_memory_bytes"]/1e6)
}
