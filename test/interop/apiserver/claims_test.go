package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ResourceSlices and ResourceClaims in a real API server, by claims_peer.c.

type slicesRig struct {
	*testing.T
	node *v1.Node
	out  string // the file with claims_peer's words
}

// claimsPeer is the program claims_peer with these arguments.
func claimsPeer(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	program := os.Getenv("CLAIMS_PEER")
	if program == "" {
		t.Fatal("CLAIMS_PEER is not set: test/interop/apiserver/run sets it")
	}
	return exec.Command(program, arguments...)
}

// publish has claims_peer keep a slice of these NUMA nodes.
func publish(t *testing.T, cpus ...string) *slicesRig {
	config, err := adminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	return publishAs(t, config, cpus...)
}

func publishAs(t *testing.T, config string, cpus ...string) *slicesRig {
	s := &slicesRig{T: t, out: filepath.Join(t.TempDir(), "out")}
	out, err := os.Create(s.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.node, err = theControlPlane.kube.CoreV1().Nodes().Create(background,
		&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: objectName(t.Name())}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	peer := claimsPeer(t, append([]string{"publish", config, s.node.Name}, cpus...)...)
	peer.Stdout, peer.Stderr = out, out
	peer.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := peer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		peer.Process.Kill()
		peer.Wait()
		if t.Failed() {
			t.Log(s.said())
		}
		theControlPlane.kube.CoreV1().Nodes().Delete(background, s.node.Name, metav1.DeleteOptions{})
		theControlPlane.kube.ResourceV1().ResourceSlices().DeleteCollection(background, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.node.Name})
	})
	return s
}

func (s *slicesRig) said() string {
	text, err := os.ReadFile(s.out)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

func (s *slicesRig) awaitSaid(what string) {
	s.Helper()
	for end := time.Now().Add(patience); !strings.Contains(s.said(), what); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it did not say %q", what)
		}
	}
}

func (s *slicesRig) name() string { return s.node.Name + "-numafit.io" }

// await polls for the slice until it is as wanted.
func (s *slicesRig) await(what string, wanted func(o *resourceapi.ResourceSlice) bool) *resourceapi.ResourceSlice {
	s.Helper()
	var last *resourceapi.ResourceSlice
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		o, err := theControlPlane.kube.ResourceV1().ResourceSlices().Get(background, s.name(), metav1.GetOptions{})
		if err == nil && wanted(o) {
			return o
		} else if err == nil {
			last = o
		}
	}
	s.Fatalf("no slice that %s; the last one is %s", what, asJSON(last))
	return nil
}

func anySlice(*resourceapi.ResourceSlice) bool { return true }

func ranged(value, usual, min, step string) resourceapi.DeviceCapacity {
	q := func(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
	return resourceapi.DeviceCapacity{Value: *q(value), RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: q(usual),
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: q(min), Step: q(step)}}}
}

// sameCapacity compares numbers, as two spellings of one are not equal for Go.
func sameCapacity(a, b resourceapi.DeviceCapacity) bool {
	spell := func(c resourceapi.DeviceCapacity) string {
		p := c.RequestPolicy
		text := c.Value.AsDec().String() + " " + p.Default.AsDec().String()
		if p.ValidRange != nil {
			text += " from " + p.ValidRange.Min.AsDec().String() + " by " + p.ValidRange.Step.AsDec().String()
		}
		for _, v := range p.ValidValues {
			text += " or " + v.AsDec().String()
		}
		return text
	}
	return a.RequestPolicy != nil && spell(*a.DeepCopy()) == spell(*b.DeepCopy())
}

func TestASliceOfEveryNumaNodeIsAccepted(t *testing.T) {
	s := publish(t, "14", "1", "-16")
	o := s.await("is there", anySlice)
	if o.Spec.Driver != "numafit.io" || o.Spec.NodeName == nil || *o.Spec.NodeName != s.node.Name ||
		o.Spec.Pool != (resourceapi.ResourcePool{Name: s.node.Name, Generation: 1, ResourceSliceCount: 1}) {
		t.Errorf("it is of %s", asJSON(o.Spec))
	}
	if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].UID != s.node.UID || o.OwnerReferences[0].Kind != "Node" {
		t.Errorf("its owners are %s", asJSON(o.OwnerReferences))
	}
	memory := ranged("66571993089", "0", "0", "4Ki") // no multiple of a step
	one := resource.MustParse("1")
	cpus := []resourceapi.DeviceCapacity{ranged("14", "1", "1", "1"),
		{Value: one, RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &one, ValidValues: []resource.Quantity{one}}},
		ranged("16", "1", "1", "1")}
	if len(o.Spec.Devices) != len(cpus) {
		t.Fatalf("%d devices", len(o.Spec.Devices))
	}
	for i, d := range o.Spec.Devices {
		if d.Name != fmt.Sprint("numa", i) || d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations {
			t.Errorf("device %d: %s", i, asJSON(d))
		}
		for name, want := range map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"cpu": cpus[i], "memory": memory,
			"hugepages_2Mi": ranged("64Mi", "0", "0", "2Mi")} {
			if !sameCapacity(d.Capacity[name], want) {
				t.Errorf("device %d: %s is %s", i, name, asJSON(d.Capacity[name]))
			}
		}
		for name, want := range map[resourceapi.QualifiedName]int64{"resource.kubernetes.io/numaNode": int64(i),
			"socket": int64(i / 2), "l3Caches": 2, "threadsPerCore": 2} {
			if got := d.Attributes[name].IntValue; got == nil || *got != want {
				t.Errorf("device %d: %s is %s", i, name, asJSON(d.Attributes[name]))
			}
		}
		if len(d.Capacity) != 3 || len(d.Attributes) != 4 || (len(d.Taints) == 1) != (i == 2) {
			t.Errorf("device %d: %s", i, asJSON(d))
		}
	}
	if taint := o.Spec.Devices[2].Taints[0]; taint.Key != "numafit.io/closed" ||
		taint.Effect != resourceapi.DeviceTaintEffectNoSchedule || taint.TimeAdded == nil {
		t.Errorf("the taint is %s", asJSON(taint))
	}
	s.stays(o)
}

// stays insists that nobody writes the slice, though it is not spelled as it was sent: for some of
// claims_peer's intervals, as there is no event to wait for.
func (s *slicesRig) stays(o *resourceapi.ResourceSlice) {
	s.Helper()
	time.Sleep(500 * time.Millisecond)
	if now := s.await("is there", anySlice); now.ResourceVersion != o.ResourceVersion {
		s.Errorf("it was written again: %s", asJSON(now.Spec))
	}
}

func TestASliceThatIsDeletedComesBack(t *testing.T) {
	s := publish(t, "4", "-4")
	slices := theControlPlane.kube.ResourceV1().ResourceSlices()
	for generation := int64(1); generation <= 3; generation++ {
		o := s.await("is the next one", func(o *resourceapi.ResourceSlice) bool { return o.Spec.Pool.Generation == generation })
		s.stays(o)
		// as the kubelet does when it starts
		if err := slices.DeleteCollection(background, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.node.Name}); err != nil {
			t.Fatal(err)
		}
	}
	s.await("is back", func(o *resourceapi.ResourceSlice) bool { return o.Spec.Pool.Generation == 4 })
}

func TestWhatOthersChangeInASliceIsPutRight(t *testing.T) {
	s := publish(t, "4", "4")
	slices := theControlPlane.kube.ResourceV1().ResourceSlices()
	first := s.await("is there", anySlice)
	for _, change := range []func(o *resourceapi.ResourceSlice){
		func(o *resourceapi.ResourceSlice) { o.Spec.Devices[0].Capacity["cpu"] = ranged("99", "1", "1", "1") },
		func(o *resourceapi.ResourceSlice) { o.Spec.Devices = o.Spec.Devices[1:] },
		func(o *resourceapi.ResourceSlice) { o.Spec.Devices[1].Taints = nil; o.OwnerReferences = nil },
		func(o *resourceapi.ResourceSlice) { o.Spec.Pool.Generation = 40 },
	} {
		o := s.await("is as it was", func(o *resourceapi.ResourceSlice) bool {
			return len(o.Spec.Devices) == 2 && len(o.OwnerReferences) == 1
		})
		change(o)
		changed, err := slices.Update(background, o, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if o.Spec.Pool.Generation == 40 {
			s.stays(changed) // everything else is as it should be
			continue
		}
		s.await("is put right", func(o *resourceapi.ResourceSlice) bool {
			return o.Spec.Pool.Generation > changed.Spec.Pool.Generation && len(o.OwnerReferences) == 1 &&
				asJSON(o.Spec.Devices) == asJSON(first.Spec.Devices)
		})
	}
	extra := first.DeepCopy()
	extra.ObjectMeta = metav1.ObjectMeta{Name: s.node.Name + "-extra"}
	if _, err := slices.Create(background, extra, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.isGone(extra.Name)
}

// isGone waits until there is no slice of that name.
func (s *slicesRig) isGone(name string) {
	s.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := theControlPlane.kube.ResourceV1().ResourceSlices().Get(background, name, metav1.GetOptions{}); err != nil {
			return
		} else if time.Now().After(end) {
			s.Fatalf("slice %s is still there", name)
		}
	}
}

// Each right is missing once, is named, and is enough when it is granted.
func TestTheRightsThatASliceTakes(t *testing.T) {
	kube, name := theControlPlane.kube, objectName(t.Name())
	role := &rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbac.PolicyRule{
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"}, Verbs: []string{"list", "watch"}}}}
	grant := func(verb, group, resource string) {
		t.Helper()
		role.Rules = append(role.Rules, rbac.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
		if _, err := kube.RbacV1().ClusterRoles().Update(background, role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := kube.CoreV1().ServiceAccounts("default").Create(background,
		&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err == nil {
		_, err = kube.RbacV1().ClusterRoles().Create(background, role, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = kube.RbacV1().ClusterRoleBindings().Create(background, &rbac.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbac.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}}}, metav1.CreateOptions{})
	}
	t.Cleanup(func() {
		kube.RbacV1().ClusterRoleBindings().Delete(background, name, metav1.DeleteOptions{})
		kube.RbacV1().ClusterRoles().Delete(background, name, metav1.DeleteOptions{})
		kube.CoreV1().ServiceAccounts("default").Delete(background, name, metav1.DeleteOptions{})
	})
	var token *authentication.TokenRequest
	if err == nil {
		token, err = kube.CoreV1().ServiceAccounts("default").CreateToken(background, name, &authentication.TokenRequest{}, metav1.CreateOptions{})
	}
	dir := t.TempDir()
	file, config := filepath.Join(dir, "token"), filepath.Join(dir, "config")
	if err == nil {
		err = os.WriteFile(file, []byte(token.Status.Token), 0o600)
	}
	if err == nil {
		err = theControlPlane.kubeconfig(config, theControlPlane.admin.Host, file)
	}
	if err != nil {
		t.Fatal(err)
	}

	s := publishAs(t, config, "4")
	s.awaitSaid("claims-slice-without-owner!: Node " + s.node.Name + ": ")
	s.awaitSaid("the right to create resourceslices.resource.k8s.io is missing")
	grant("create", "resource.k8s.io", "resourceslices")
	o := s.await("is there", anySlice)
	if len(o.OwnerReferences) != 0 {
		t.Errorf("its owners are %s", asJSON(o.OwnerReferences))
	}
	o.Spec.Devices[0].Capacity["cpu"] = ranged("99", "1", "1", "1")
	if _, err := kube.ResourceV1().ResourceSlices().Update(background, o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid("the right to update resourceslices.resource.k8s.io is missing")
	grant("update", "resource.k8s.io", "resourceslices")
	s.await("is put right", func(o *resourceapi.ResourceSlice) bool {
		return sameCapacity(o.Spec.Devices[0].Capacity["cpu"], ranged("4", "1", "1", "1"))
	})
	extra := o.DeepCopy()
	extra.ObjectMeta = metav1.ObjectMeta{Name: s.node.Name + "-extra"}
	if _, err := kube.ResourceV1().ResourceSlices().Create(background, extra, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid("the right to delete resourceslices.resource.k8s.io is missing")
	grant("delete", "resource.k8s.io", "resourceslices")
	s.isGone(extra.Name)
	grant("get", "", "nodes")
	if err := kube.ResourceV1().ResourceSlices().Delete(background, s.name(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await("has an owner", func(o *resourceapi.ResourceSlice) bool { return len(o.OwnerReferences) == 1 })
}

// getClaim is what claims_peer says of the claim.
func getClaim(t *testing.T, name string, uid types.UID) string {
	t.Helper()
	config, err := adminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	out, err := claimsPeer(t, "get", config, "default", name, string(uid)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, said, _ := strings.Cut("\n"+string(out), "\napiserver-up: ")
	if _, rest, ok := strings.Cut(said, "\n"); ok {
		return rest
	}
	return string(out)
}

func TestAClaimThatIsAllocatedIsRead(t *testing.T) {
	claims := theControlPlane.kube.ResourceV1().ResourceClaims("default")
	parameters := runtime.RawExtension{Raw: []byte(`{"apiVersion":"numafit.io/v1","kind":"ClaimParameters","wholeCores":true}`)}
	config := resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "numafit.io", Parameters: parameters}}
	name := objectName(t.Name())
	c, err := claims.Create(background, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"resource.kubernetes.io/pod-claim-name": "numa"}},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{
				{Name: "a", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "numafit.io"}},
				{Name: "b", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "numafit.io"}}},
			Config: []resourceapi.DeviceClaimConfiguration{{Requests: []string{"b"}, DeviceConfiguration: config}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claims.Delete(background, name, metav1.DeleteOptions{}) })
	if said := getClaim(t, name, c.UID); !strings.HasPrefix(said, "not now: ") || !strings.Contains(said, "not allocated yet") {
		t.Errorf("before it is allocated: %q", said)
	}

	shares := []types.UID{"c3bc7fae-d7d5-40d3-b803-77f88ffb8401", "c3bc7fae-d7d5-40d3-b803-77f88ffb8402"}
	result := func(i int, request, cpu string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Request: request, Driver: "numafit.io", Pool: "n1", Device: "numa2",
			ShareID: &shares[i], ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
				"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "hugepages_2Mi": resource.MustParse("0")}}
	}
	c.Status = resourceapi.ResourceClaimStatus{
		Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{result(0, "a", "4"), result(1, "b", "2")},
			Config: []resourceapi.DeviceAllocationConfiguration{{Source: resourceapi.AllocationConfigSourceClaim,
				Requests: []string{"b"}, DeviceConfiguration: config}}}},
		ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "pod-1"},
			{APIGroup: "batch", Resource: "jobs", Name: "j", UID: "job-1"}},
	}
	if c, err = claims.UpdateStatus(background, c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("got: \nclaim default/%s uid=%s pod-claim-name=numa\n"+
		"share request=a pool=n1 device=numa2 id=%s cpus=4 memory0=8589934592\n"+
		"share request=b pool=n1 device=numa2 id=%s cpus=2 memory0=8589934592 wholeCores\npod pod-1\n", name, c.UID, shares[0], shares[1])
	if said := getClaim(t, name, c.UID); said != want {
		t.Errorf("it says %q, not %q", said, want)
	}
	if said := getClaim(t, name, "another"); !strings.HasPrefix(said, "gone: ") {
		t.Errorf("of another uid: %q", said)
	}
	if said := getClaim(t, "nobody", "another"); !strings.HasPrefix(said, "gone: ") {
		t.Errorf("of a claim that is not there: %q", said)
	}
}
