package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// A node: a kubelet (kubelet_test.go), a runtime (the file of that name of the NRI rig), and
// numafitd between the two.

const nriVersion = "v0.12.5"

const (
	allocated = "numafit.io/allocated"
	// A real kubelet takes 280 ms from a pod's admission to its sandbox, and then starts that. Nobody
	// tells the test what numafitd has read of it meanwhile.
	admitted = 120 * time.Millisecond
	starting = 100 * time.Millisecond
)

type rig struct {
	*node
	kubelet *kubelet
}

var services = []string{"devicePlugin.enabled=true", "podResources.enabled=true",
	"reservedSystemCPUs=127", "podsAPI.enabled=true"}

// everyToken is what the NUMA nodes have then. Some CPU is always left for the shared pool: here it
// is the reserved one.
var everyToken = [nrNodes]int{perNode, perNode, perNode, perNode, perNode, perNode, perNode, perNode - 1}

// newRig starts all three, the kubelet's Topology Manager with that policy, and waits until they know
// of each other. numafitd has all services.
func newRig(t *testing.T, policy string, settings ...string) *rig {
	return newRigWith(t, policy, nil, append(slices.Clone(services), settings...)...)
}

func newRigWith(t *testing.T, policy string, options map[string]string, settings ...string) *rig {
	r := prepareRig(t, policy, options, settings...)
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	if slices.Contains(settings, services[0]) {
		r.waitTokens()
	}
	return r
}

// prepareRig starts the kubelet alone.
func prepareRig(t *testing.T, policy string, options map[string]string, settings ...string) *rig {
	n := makeNode(t)
	root := filepath.Join(n.dir, "kubelet")
	n.settings = append(slices.Clone(settings), "kubeletRootDirectory="+root)
	logKubelet(t, filepath.Join(n.dir, "kubelet.log"))
	return &rig{n, newKubelet(t, root, policy, options)}
}

// logKubelet takes what the kubelet's parts log out of the test's own words, and shows it when the
// test has failed.
func logKubelet(t *testing.T, path string) {
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	flags.Set("logtostderr", "false")
	flags.Set("stderrthreshold", "FATAL")
	flags.Set("one_output", "true")
	klog.SetOutput(out)
	t.Cleanup(func() {
		klog.SetOutput(io.Discard)
		out.Close()
		if text, _ := os.ReadFile(path); t.Failed() {
			t.Logf("the kubelet said:\n%s", text[max(0, len(text)-8192):])
		}
	})
}

// waitTokens waits until the kubelet knows all tokens, as healthy.
func (r *rig) waitTokens() time.Duration {
	r.Helper()
	return r.kubelet.waitHealthy(cpuResource, int64(r.tokens()))
}

// tokens is how many there are that can be given out.
func (r *rig) tokens() int {
	var reserved, pool int
	for _, s := range r.settings {
		key, value, _ := strings.Cut(s, "=")
		switch n, _ := strconv.Atoi(value); key {
		case "reservedSystemCPUs":
			reserved = len(parse(r.node, value))
		case "sharedPoolMinimum":
			pool = n
		}
	}
	return nrNodes*perNode - max(reserved, pool)
}

// Pods

// ask is one container of a pod's spec. Its requests are its limits; a sidecar or an init container
// is one by its kind.
type ask struct {
	name   string
	kind   string // "", "init", "sidecar"
	cpus   int64
	milli  int64 // instead of cpus
	tokens int64
	others v1.ResourceList // of another vendor
}

func newPod(name string, asks ...ask) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default",
		UID: types.UID("uid-" + name), Annotations: map[string]string{}}}
	always := v1.ContainerRestartPolicyAlways
	for _, a := range asks {
		list := v1.ResourceList{"memory": resource.MustParse("1Gi"),
			"cpu": *resource.NewMilliQuantity(a.cpus*1000+a.milli, resource.DecimalSI)}
		if a.tokens > 0 {
			list[cpuResource] = *resource.NewQuantity(a.tokens, resource.DecimalSI)
		}
		for name, q := range a.others {
			list[name] = q
		}
		c := v1.Container{Name: a.name, Resources: v1.ResourceRequirements{Limits: list, Requests: list.DeepCopy()}}
		switch a.kind {
		case "sidecar":
			c.RestartPolicy = &always
			fallthrough
		case "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

// tokenPod has one container, "main", that asks for so many CPUs and as many tokens.
func tokenPod(name string, cpus int64) *v1.Pod {
	return newPod(name, ask{name: "main", cpus: cpus, tokens: cpus})
}

func containerOf(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func (r *rig) mustAdmit(p *v1.Pod) {
	r.Helper()
	if err := r.kubelet.admit(p); err != nil {
		r.Fatalf("pod %s is rejected: %v", p.Name, err)
	}
}

// runSandbox starts the pod's sandbox unless it runs. The kubelet takes its time before it, and
// after it.
func (r *rig) runSandbox(p *v1.Pod) error {
	sandbox, _ := r.container(p.Name, want{})
	if r.pods[sandbox.Id] != nil {
		return nil
	}
	sandbox.Annotations = p.Annotations
	time.Sleep(admitted)
	if err := r.runtime.RunPodSandbox(context.Background(), &nri.RunPodSandboxRequest{Pod: sandbox}); err != nil {
		return err
	}
	r.pods[sandbox.Id] = sandbox
	time.Sleep(starting)
	return nil
}

// createWith creates the pod's container with these annotations and that id.
func (r *rig) createWith(p *v1.Pod, name, id string, annotations map[string]string) (*nri.Container, error) {
	if err := r.runSandbox(p); err != nil {
		return nil, err
	}
	spec := containerOf(p, name)
	sandbox, c := r.container("", want{pod: p.Name, id: id, milli: spec.Resources.Requests.Cpu().MilliValue(),
		memory: spec.Resources.Requests.Memory().Value()})
	c.Name = name
	for k, v := range annotations {
		c.Annotations[k] = v
	}
	ctx := context.Background()
	if err := r.ask(ctx, sandbox, c); err != nil {
		return nil, err
	}
	if err := r.runtime.PostCreateContainer(ctx, &nri.PostCreateContainerRequest{Pod: sandbox, Container: c}); err != nil {
		return nil, err
	}
	if err := r.runtime.StartContainer(ctx, &nri.StartContainerRequest{Pod: sandbox, Container: c}); err != nil {
		return nil, err
	}
	c.State = nri.ContainerState_CONTAINER_RUNNING
	if err := r.runtime.PostStartContainer(ctx, &nri.PostStartContainerRequest{Pod: sandbox, Container: c}); err != nil {
		return nil, err
	}
	r.check()
	return c, nil
}

// create does what kubelet and runtime do for one container of a pod that was admitted.
func (r *rig) create(p *v1.Pod, name string) (*nri.Container, error) {
	annotations, err := r.kubelet.annotations(p, containerOf(p, name))
	if err != nil {
		return nil, err
	}
	return r.createWith(p, name, "ctr-"+p.Name+"-"+name, annotations)
}

func (r *rig) mustCreate(p *v1.Pod, name string) *nri.Container {
	r.Helper()
	c, err := r.create(p, name)
	if err != nil {
		r.Fatalf("container %s of pod %s is refused: %v", name, p.Name, err)
	}
	return c
}

// mustRun admits a pod and creates its only container.
func (r *rig) mustRun(p *v1.Pod) *nri.Container {
	r.Helper()
	r.mustAdmit(p)
	return r.mustCreate(p, p.Spec.Containers[0].Name)
}

// end takes the pod away: its containers, its sandbox, and then the kubelet forgets it.
func (r *rig) end(p *v1.Pod) {
	r.Helper()
	ctx := context.Background()
	sandbox := r.pods["sb-"+p.Name]
	for id, c := range r.containers {
		if sandbox != nil && c.PodSandboxId == sandbox.Id {
			r.stop(c)
			delete(r.containers, id)
			if err := r.runtime.RemoveContainer(ctx, &nri.RemoveContainerRequest{Pod: sandbox, Container: c}); err != nil {
				r.Fatal(err)
			}
		}
	}
	if sandbox != nil {
		delete(r.pods, sandbox.Id)
		if err := r.runtime.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: sandbox}); err != nil {
			r.Fatal(err)
		}
		if err := r.runtime.RemovePodSandbox(ctx, &nri.RemovePodSandboxRequest{Pod: sandbox}); err != nil {
			r.Fatal(err)
		}
	}
	r.kubelet.end(p)
}

// CPUs

// placed is what the container's numafit.io/placement annotation says.
func placed(n *node, c *nri.Container) (p struct {
	Exclusive bool
	CPUs      string
	Nodes     string
}) {
	n.Helper()
	if text := c.Annotations["numafit.io/placement"]; text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			n.Fatalf("placement of %s: %v: %q", c.Id, err, text)
		}
	}
	return p
}

// own are the CPUs that the container has for itself.
func own(n *node, c *nri.Container) set {
	if !placed(n, c).Exclusive {
		return set{}
	}
	return cpus(n, c)
}

// cpusOn is how many CPUs the container has for itself on each NUMA node.
func (r *rig) cpusOn(c *nri.Container) (on [nrNodes]int) {
	for cpu := range own(r.node, c) {
		on[cpu%(nrNodes*perNode/2)/(perNode/2)]++
	}
	return on
}

// tokensOn is how many tokens it has by the device manager's account.
func (r *rig) tokensOn(p *v1.Pod, name string) (on [nrNodes]int) {
	for _, node := range r.kubelet.held(p, name, cpuResource) {
		on[node]++
	}
	return on
}

// onlyNode is the one node that has any.
func (r *rig) onlyNode(on [nrNodes]int) int {
	r.Helper()
	found := -1
	for node, nr := range on {
		if nr > 0 && found >= 0 {
			r.Fatalf("on several nodes: %v", on)
		} else if nr > 0 {
			found = node
		}
	}
	if found < 0 {
		r.Fatal("on no node")
	}
	return found
}

// followsTokens insists that the container's CPUs are where its tokens are, as many on each node.
func (r *rig) followsTokens(p *v1.Pod, c *nri.Container) {
	r.Helper()
	want, got := r.tokensOn(p, c.Name), r.cpusOn(c)
	if want != got || want == [nrNodes]int{} {
		r.Errorf("%s/%s has tokens on %v and CPUs %s on %v", p.Name, c.Name, want, c.Linux.Resources.Cpu.Cpus, got)
	}
}

// Another vendor's plugin

type vendor struct {
	*rig
	resource string
	lines    chan string
}

// startVendor runs the plugin program for that resource and waits until the kubelet knows as many
// devices.
func (r *rig) startVendor(resource string, nr int64, args ...string) *vendor {
	r.Helper()
	v := &vendor{r, resource, make(chan string, 256)}
	c := exec.Command(os.Getenv("PLUGIN"), append([]string{"-resource", resource,
		"-directory", filepath.Join(r.kubelet.root, "device-plugins")}, args...)...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Process.Kill(); c.Wait() })
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			v.lines <- s.Text()
		}
	}()
	r.kubelet.waitHealthy(resource, nr)
	return v
}

// some is a list of one resource.
func some(name string, nr int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceName(name): *resource.NewQuantity(nr, resource.DecimalSI)}
}

// explain is what `numafit explain` tells of a container.
func (r *rig) explain(container string, args ...string) string {
	r.Helper()
	args = append([]string{"explain", "--run-directory", filepath.Join(r.dir, "run")}, append(args, container)...)
	out, err := exec.Command(os.Getenv("NUMAFIT"), args...).CombinedOutput()
	if err != nil {
		r.Fatalf("numafit explain %s: %v: %s", container, err, out)
	}
	return string(out)
}
