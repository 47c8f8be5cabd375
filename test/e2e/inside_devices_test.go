package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	devices "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// What TestClusterVMDevices looks at in its node: CPUs and memory of containers that have devices of several NUMA
// nodes, by all that the kernel has. The NUMA nodes of the devices are the kernel's word, too.

const (
	certificateInside = "pki/apiserver.crt" // of the API server, in the folder of a cluster

	pciGiven   = "0x1234 0x11e8"            // vendor and device of QEMU's edu: device plugins give these
	pciClaimed = "0x1b36 0x0005"            // pci-testdev: the DRA driver gives these
	vendorGPU  = "vendor.example/gpu"       // on a NUMA node with CPUs
	superchip  = "vendor.example/superchip" // on a NUMA node that is a device's memory
	twoGPUs    = "two-gpus"                 // templates of claims
	oneChip    = "one-superchip"

	touchedMi = 16 // that a process of each container has written
)

// touches keeps a block in the memory of dd, which waits for a pipe that no process reads.
var touches = []string{fmt.Sprintf("trap exit TERM; dd if=/dev/zero bs=%dM count=1 | sleep 1000000 & wait", touchedMi)}

// nearDevices is a pod with one container of two CPUs, and where this container belongs.
type nearDevices struct {
	pod     string
	devices map[string]int // by resource
	claim   string         // the template of a claim
	cpus    map[int]int    // by NUMA node; the memory is on the same NUMA nodes
}

// publishedOn is what the DRA driver says of the device on each NUMA node. The kernel's NUMA node is the first one; of two
// devices the driver knows more, as drivers of vendors do: NUMA nodes that are as near.
var publishedOn = map[int]draDevice{
	1: {model: "gpu", nodes: []int{1}},
	2: {model: "gpu", nodes: []int{2, 0}},
	4: {model: "superchip-4", nodes: []int{4}},
	5: {model: "superchip-5", nodes: []int{5, 3}},
}

// Pods of one list run beside each other.
var (
	givenDevices = []nearDevices{
		{pod: "gpus", devices: map[string]int{vendorGPU: 2}, cpus: map[int]int{1: 1, 2: 1}},
		{pod: "superchips", devices: map[string]int{superchip: 2}, cpus: map[int]int{0: 1, 3: 1}},
	}
	claimedDevices = []nearDevices{
		{pod: "claimed", claim: twoGPUs, cpus: map[int]int{0: 1, 1: 1}}, // 0 is nearer to 1 than 2 is
		{pod: "claimed-superchip", claim: oneChip, cpus: map[int]int{3: 2}},
	}
)

func TestInClusterDevices(t *testing.T) {
	c := &cluster{node: insideCluster(t)}
	c.await("the API server's certificate", c.connect)
	c.awaitConnected()
	c.checkDevices()
	c.createDRAObjects()
	c.createTemplate(twoGPUs, nil, asksForModel("gpu", 2))
	c.createTemplate(oneChip, nil, asksForModel("superchip-5", 1))
	for resource, all := range c.givenByPlugins() {
		c.startPlugin(resource, all)
	}
	driver := c.startDRA(c.claimable())
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"restricted: devices of device plugins", func() { c.runNear(givenDevices) }},
		{"numafitd and the kubelet are killed: nothing moves", func() { c.killBoth(driver) }},
		{"then devices of claims", func() { c.drain(); c.runNear(claimedDevices) }},
		{"both are killed again: nothing moves", func() { c.killBoth(driver) }},
		{"then devices of device plugins again", func() { c.drain(); c.runNear(givenDevices); c.drain() }},
		{"best-effort: devices of device plugins", func() { c.policyInside("best-effort"); c.runNear(givenDevices) }},
		{"best-effort: devices of claims", func() { c.drain(); c.runNear(claimedDevices); c.drain() }},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.T = t
			step.do()
		}) {
			break
		}
	}
	c.T = t
}

type pciDevice struct {
	address string
	node    int // -1: no NUMA node is known
}

// pciDevices are the machine's PCI devices of a kind (vendor and device), in the order of their addresses.
func (n *node) pciDevices(kind string) (all []pciDevice) {
	n.Helper()
	folders, _ := filepath.Glob("/sys/bus/pci/devices/*")
	for _, folder := range folders {
		if n.read(folder+"/vendor")+" "+n.read(folder+"/device") != kind {
			continue
		}
		d := pciDevice{address: filepath.Base(folder)}
		if _, err := fmt.Sscan(n.read(folder+"/numa_node"), &d.node); err != nil {
			n.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// checkDevices insists that the kernel has the devices and the distances that the cases are about.
func (c *cluster) checkDevices() {
	c.Helper()
	for _, kind := range []string{pciGiven, pciClaimed} {
		var nodes []int
		for _, d := range c.pciDevices(kind) {
			nodes = append(nodes, d.node)
		}
		if !slices.Equal(nodes, []int{1, 2, 4, 5}) {
			c.Fatalf("PCI devices %s are on NUMA nodes %v", kind, nodes)
		}
	}
	const folder = "/sys/devices/system/node/"
	if cpus, memory := c.read(folder+"has_cpu"), c.read(folder+"has_generic_initiator"); cpus != "0-3" || memory != "4-5" {
		c.Fatalf("NUMA nodes %s have CPUs, and %s are devices' memory", cpus, memory)
	}
	for node, wanted := range map[string]string{"4": "14 25 34 46 10 60", "5": "46 34 25 14 60 10"} {
		if is := c.read(folder + "node" + node + "/distance"); is != wanted {
			c.Fatalf("NUMA node %s has the distances %s, not %s", node, is, wanted)
		}
	}
}

func hasCPUs(node int) bool { return node < 4 } // checkDevices has seen to that

// givenByPlugins are devices with the NUMA node that the kernel says, by resource.
func (c *cluster) givenByPlugins() map[string][]*devices.Device {
	c.Helper()
	all := map[string][]*devices.Device{}
	for _, d := range c.pciDevices(pciGiven) {
		resource := superchip
		if hasCPUs(d.node) {
			resource = vendorGPU
		}
		all[resource] = append(all[resource], deviceOn(d.address, d.node))
	}
	return all
}

// claimable are the devices that the DRA driver publishes.
func (c *cluster) claimable() (all []draDevice) {
	c.Helper()
	for _, d := range c.pciDevices(pciClaimed) {
		device := publishedOn[d.node]
		device.name = "pci-" + strings.NewReplacer(":", "-", ".", "-").Replace(d.address)
		all = append(all, device)
	}
	return all
}

func asksForModel(model string, nr int) map[string]any {
	which := fmt.Sprintf(`device.attributes[%q].model == %q`, draDriver, model)
	return map[string]any{"name": "device", "exactly": map[string]any{"deviceClassName": draClass, "count": nr,
		"selectors": []any{map[string]any{"cel": map[string]any{"expression": which}}}}}
}

// runNear has the cluster run these pods, and insists that each lies where it belongs.
func (c *cluster) runNear(pods []nearDevices) {
	c.Helper()
	for _, p := range pods {
		w := want{name: "main", milli: 2000, memory: 64 * mi, args: touches, devices: p.devices}
		if p.claim != "" {
			c.createObject(podsPath, podWithClaim(p.pod, guaranteed, p.claim, w))
		} else {
			c.create(p.pod, guaranteed, w)
		}
	}
	for _, p := range pods {
		c.awaitRunning(p.pod)
	}
	c.checkAll()
	for _, p := range pods {
		c.checkLies(p)
	}
}

// checkLies insists that a pod's container has as many CPUs of each NUMA node as it should, and its memory there: what
// numafitd says, which checkAll has compared with the kernel, and the pages of the processes.
func (c *cluster) checkLies(p nearDevices) {
	c.Helper()
	h, mems, cpus, pages := c.held(c.pods[p.pod].containers["main"]), set{}, map[int]int{}, map[int]int{}
	for node, all := range c.numactl() {
		for cpu := range c.set(h.CPUs) {
			if all[cpu] {
				cpus[node]++
			}
		}
	}
	for node := range p.cpus {
		mems[node] = true
	}
	c.await(p.pod+" to have written its memory", func() bool {
		written := 0
		pages = c.pages(h.ID)
		for _, nr := range pages {
			written += nr
		}
		return written >= touchedMi*mi/pageBytes
	})
	for node := range pages {
		if !mems[node] {
			c.Errorf("%s has pages on NUMA nodes %v", p.pod, pages)
		}
	}
	out, _ := exec.Command("numafit", "explain", p.pod).CombinedOutput()
	c.Logf("%s: cpus %s mems %s, pages by NUMA node %v\n%s", p.pod, h.CPUs, h.Mems, pages, out)
	if !h.Exclusive || !maps.Equal(cpus, p.cpus) || !maps.Equal(c.set(h.Mems), mems) {
		c.Errorf("%s has %v CPUs on NUMA nodes and memory of %s, not %v", p.pod, cpus, h.Mems, p.cpus)
	}
}

// killBoth ends numafitd and the kubelet without a warning, one after another, and waits until all devices can be given again.
func (c *cluster) killBoth(driver *draPlugin) {
	c.Helper()
	before := picture(c.settle())
	c.signal("numafitd", syscall.SIGKILL)
	c.checkUnmoved(before)
	registered := driver.isRegistered()
	c.signal("kubelet", syscall.SIGKILL)
	c.await("the driver to be registered anew", func() bool { return driver.isRegistered() > registered })
	c.await("the driver's slices", driver.isPublished)
	for resource, all := range c.givenByPlugins() {
		c.await("the devices "+resource, func() bool { return c.allocatable(resource) == len(all) })
	}
	c.awaitNode()
	c.checkUnmoved(before)
	c.checkAll()
}

// policyInside starts numafitd anew with another policy than deviceSettings have.
func (c *cluster) policyInside(policy string) {
	c.Helper()
	c.must(os.WriteFile(settingsFile, []byte(strings.Replace(deviceSettings, "restricted", policy, 1)), 0o644))
	c.startAnew()
}
