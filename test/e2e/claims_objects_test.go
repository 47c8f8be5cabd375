package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Objects of claims for CPUs and memory: what is asked for, and what became of it.

const (
	numaDriver   = "numafit.io"
	numaClass    = "numafit.io"
	wholeClass   = "numafit.io-whole-cores"
	asDRADriver  = "components/dra-driver"
	numaSlice    = slicesPath + "/" + nodeName + "-" + numaDriver
	templates    = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
	beside       = "beside" // a container that does not name its pod's claim
	claimMemory  = "64Mi"
	podClaim     = "cpus" // its name in the pod
	jobsPath     = "/apis/batch/v1/namespaces/default/jobs"
	claimMetaDir = "/var/lib/kubelet/plugins/" + numaDriver + "/metadata"
)

// asksFor is a request for CPUs and memory of one NUMA node.
func asksFor(name, class string, cpus int) map[string]any {
	return map[string]any{"name": name, "exactly": map[string]any{"deviceClassName": class, "capacity": map[string]any{
		"requests": map[string]string{"cpu": fmt.Sprint(cpus), "memory": claimMemory}}}}
}

// asksForGPU is a request for a GPU on that NUMA node.
func asksForGPU(numaNode int) map[string]any {
	where := fmt.Sprintf(`device.attributes["resource.kubernetes.io"].numaNode == %d`, numaNode)
	return map[string]any{"name": "gpu", "exactly": map[string]any{"deviceClassName": draClass,
		"selectors": []any{map[string]any{"cel": map[string]any{"expression": where}}}}}
}

func (c *cluster) createObject(path string, object map[string]any) {
	c.Helper()
	if status := c.ask("POST", path, toJSON(object), nil); status != http.StatusCreated {
		c.Fatalf("%s is not created: %d: %s", path, status, toJSON(object))
	}
}

// createTemplate makes a template of claims; more: constraints and config of its devices.
func (c *cluster) createTemplate(name string, more map[string]any, requests ...map[string]any) {
	c.Helper()
	devices := map[string]any{"requests": requests}
	for key, value := range more {
		devices[key] = value
	}
	c.createObject(templates, map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"spec": map[string]any{"devices": devices}}})
}

// parameters are those of numafit.io, for all requests of a claim.
func parameters(values map[string]any) map[string]any {
	all := map[string]any{"apiVersion": "numafit.io/v1", "kind": "ClaimParameters"}
	for key, value := range values {
		all[key] = value
	}
	return map[string]any{"config": []any{map[string]any{"opaque": map[string]any{"driver": numaDriver, "parameters": all}}}}
}

func onOneNUMANode(requests ...string) map[string]any {
	return map[string]any{"constraints": []any{map[string]any{"requests": requests, "matchAttribute": "resource.kubernetes.io/numaNode"}}}
}

// podWithClaim asks for a claim, which all its containers name but for one called beside.
func podWithClaim(name, qos, template string, containers ...want) map[string]any {
	var p map[string]any
	if err := json.Unmarshal(manifest(name, qos, nil, containers), &p); err != nil {
		panic(err)
	}
	spec := member(p, "spec")
	spec["resourceClaims"] = []any{map[string]any{"name": podClaim, "resourceClaimTemplateName": template}}
	for _, container := range spec["containers"].([]any) {
		if one := container.(map[string]any); one["name"] != beside {
			member(one, "resources")["claims"] = []any{map[string]any{"name": podClaim}}
		}
	}
	return p
}

// claims has the cluster make a pod of one container with a claim by that template.
func (c *cluster) claims(name, template string) {
	c.Helper()
	c.createObject(podsPath, podWithClaim(name, bestEffort, template, want{name: "main"}))
}

// claimOf is the claim that was made for the pod.
func (c *cluster) claimOf(pod string) draClaim {
	c.Helper()
	for _, claim := range c.allClaims() {
		if claim.Metadata.Annotations["resource.kubernetes.io/pod-claim-name"] == podClaim && strings.HasPrefix(claim.Metadata.Name, pod+"-"+podClaim+"-") {
			return claim
		}
	}
	c.Fatalf("no claim was made for pod %s", pod)
	return draClaim{}
}

func (c *cluster) allClaims() []draClaim {
	c.Helper()
	var all struct{ Items []draClaim }
	if status := c.ask("GET", claimsPath, nil, &all); status != http.StatusOK {
		c.Fatalf("the claims cannot be listed: %d", status)
	}
	return all.Items
}

// share is what a claim came to for that request.
type share struct {
	device, id string
	numaNode   int
	cpus       string
}

func (c *cluster) share(claim draClaim, request string) share {
	c.Helper()
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Request != request || r.Driver != numaDriver {
			continue
		}
		node, err := strconv.Atoi(strings.TrimPrefix(r.Device, "numa"))
		if err != nil || r.Pool != nodeName {
			c.Fatalf("claim %s came to device %s of pool %s", claim.Metadata.Name, r.Device, r.Pool)
		}
		return share{device: r.Device, id: r.ShareID, numaNode: node, cpus: r.ConsumedCapacity["cpu"]}
	}
	c.Fatalf("claim %s has nothing of %s for request %s: %+v", claim.Metadata.Name, numaDriver, request, claim.Status)
	return share{}
}

// runsOnClaim waits until the pod runs, and insists that its container has what its claim came to.
func (c *cluster) runsOnClaim(pod string, cpus int) *life {
	c.Helper()
	c.awaitRunning(pod)
	one := c.life(pod, "main")
	c.checkOnNode(one, cpus, c.share(c.claimOf(pod), podClaim).numaNode)
	return one
}

// numaDevice is one of the slice's.
type numaDevice struct {
	Name                     string
	AllowMultipleAllocations bool
	Attributes               map[string]struct{ Int *int }
	Capacity                 map[string]struct{ Value string }
}

type numaPool struct {
	Metadata struct {
		ResourceVersion string
		OwnerReferences []struct{ Kind, Name string }
	}
	Spec struct {
		Driver, NodeName string
		Pool             struct {
			Name               string
			Generation         int
			ResourceSliceCount int
		}
		Devices []numaDevice
	}
}

// published is the node's slice; false: there is none.
func (c *cluster) published() (p numaPool, is bool) {
	c.Helper()
	return p, c.ask("GET", numaSlice, nil, &p) == http.StatusOK
}

// capacities are what the slice says that claims may have, by device: "cpu 16, memory 64Gi".
func (c *cluster) capacities() map[string]string {
	c.Helper()
	p, _ := c.published()
	all := map[string]string{}
	for _, d := range p.Spec.Devices {
		var parts []string
		for name, of := range d.Capacity {
			parts = append(parts, name+" "+of.Value)
		}
		slices.Sort(parts)
		all[d.Name] = strings.Join(parts, ", ")
	}
	return all
}

// cpusOffered are the CPUs that the slice says claims may have, by NUMA node; -1: it is not there.
func (c *cluster) cpusOffered() (offered [madeNodes]int) {
	c.Helper()
	p, _ := c.published()
	for n := range offered {
		offered[n] = -1
		for _, d := range p.Spec.Devices {
			if d.Name == fmt.Sprint("numa", n) {
				offered[n], _ = strconv.Atoi(d.Capacity["cpu"].Value)
			}
		}
	}
	return offered
}

// dynamicResources are what PodResources says of the pod's claims.
func (c *cluster) dynamicResources(pod string) (found []*resources.DynamicResource) {
	c.Helper()
	ctx, cancel := soon()
	defer cancel()
	all, err := c.podResources().List(ctx, &resources.ListPodResourcesRequest{})
	c.must(err)
	for _, p := range all.PodResources {
		for _, container := range p.Containers {
			if p.Name == pod {
				found = append(found, container.DynamicResources...)
			}
		}
	}
	return found
}

// claimFiles are those that numafitd has written for claims.
func claimFiles() []string {
	specs, _ := filepath.Glob(filepath.Join(cdiFolder, numaDriver+"*"))
	metadata, _ := os.ReadDir(claimMetaDir)
	for _, m := range metadata {
		specs = append(specs, filepath.Join(claimMetaDir, m.Name()))
	}
	return specs
}

// eventSaying is an event about the pod with those words.
func (c *cluster) eventSaying(pod, words string) string {
	c.Helper()
	var all struct {
		Items []struct{ Reason, Message string }
	}
	c.ask("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D"+pod, nil, &all)
	for _, e := range all.Items {
		if strings.Contains(e.Message, words) {
			return e.Reason + ": " + e.Message
		}
	}
	return ""
}
