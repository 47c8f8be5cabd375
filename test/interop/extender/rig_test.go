package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// A cluster in which numafit-extender is what kube-scheduler asks: the control plane is that of the
// rig of the API server, the nodes are made up (machine_test.go), and each test has its own.

const topologyGroup = "topology.node.k8s.io"

var (
	topologyResource = schema.GroupVersionResource{Group: topologyGroup, Version: "v1alpha2", Resource: topologyCRD}
	patience         = 60 * time.Second // for what must happen, on a busy machine
	background       = context.Background()
	atOnce           = int64(0)
)

func (c *controlPlane) topologies() dynamic.ResourceInterface {
	return c.dynamic.Resource(topologyResource)
}

type rig struct {
	*testing.T
	*controlPlane
	dir, prefix string
	lock        sync.Mutex // of what follows
	changed     *sync.Cond
	machines    map[string]*machine
	pods        map[types.UID]*v1.Pod
	nodesOf     map[types.UID][]string // every node that a pod was ever bound to
	started     int                    // pods
	noReports   bool
	over        bool // the test is
	extenders   []*extender
}

func newRig(t *testing.T) *rig {
	if extenderAccount.name == "" {
		if err := theControlPlane.installExtender(); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{T: t, controlPlane: theControlPlane, dir: t.TempDir(), prefix: objectName(t.Name()) + "-",
		machines: map[string]*machine{}, pods: map[types.UID]*v1.Pod{}, nodesOf: map[types.UID][]string{}}
	r.changed = sync.NewCond(&r.lock)
	ctx, stop := context.WithCancel(background)
	go r.watchPods(ctx)
	t.Cleanup(func() { r.clear(); stop() })
	return r
}

// objectName is a test's name as Kubernetes allows names to be.
func objectName(name string) string {
	const longest = 40
	name = strings.TrimPrefix(name, "Test")
	if at := strings.LastIndex(name, "/"); at >= 0 {
		name = name[at+1:]
	}
	return strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name[:min(len(name), longest)])), "-")
}

// clear takes away what the test has left in the cluster.
func (r *rig) clear() {
	r.lock.Lock()
	r.over = true
	r.lock.Unlock()
	at := metav1.DeleteOptions{GracePeriodSeconds: &atOnce}
	r.kube.CoreV1().Pods("default").DeleteCollection(background, at, metav1.ListOptions{})
	r.kube.CoreV1().Nodes().DeleteCollection(background, at, metav1.ListOptions{})
	r.topologies().DeleteCollection(background, at, metav1.ListOptions{})
	r.kube.CoreV1().Events("default").DeleteCollection(background, at, metav1.ListOptions{})
}

// watchPods keeps r.pods, and tells machines of their pods; from the start again whenever the server ends it.
func (r *rig) watchPods(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		pods := r.kube.CoreV1().Pods("default")
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		r.replace(list.Items)
		w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*v1.Pod); ok && e.Type == watch.Deleted {
				r.gone(p)
			} else if ok {
				r.seen(p)
			}
		}
	}
}

func (r *rig) replace(list []v1.Pod) {
	there := map[types.UID]bool{}
	for i := range list {
		there[list[i].UID] = true
		r.seen(&list[i])
	}
	r.lock.Lock()
	var gone []*v1.Pod
	for uid, p := range r.pods {
		if !there[uid] {
			gone = append(gone, p)
		}
	}
	r.lock.Unlock()
	for _, p := range gone {
		r.gone(p)
	}
}

func (r *rig) seen(p *v1.Pod) {
	r.lock.Lock()
	defer r.lock.Unlock()
	defer r.changed.Broadcast()
	r.pods[p.UID] = p
	m := r.machines[p.Spec.NodeName]
	if p.Spec.NodeName != "" && !slices.Contains(r.nodesOf[p.UID], p.Spec.NodeName) {
		r.nodesOf[p.UID] = append(r.nodesOf[p.UID], p.Spec.NodeName)
	}
	switch {
	case m == nil:
	case p.DeletionTimestamp != nil: // the kubelet would end it now
		m.leave(p.UID)
		go r.kube.CoreV1().Pods(p.Namespace).Delete(background, p.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &atOnce, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	case p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded:
		m.leave(p.UID)
	default:
		m.arrive(p)
	}
}

func (r *rig) gone(p *v1.Pod) {
	r.lock.Lock()
	defer r.lock.Unlock()
	defer r.changed.Broadcast()
	delete(r.pods, p.UID)
	if m := r.machines[p.Spec.NodeName]; m != nil {
		m.leave(p.UID)
	}
}

// await waits until it is so; looked at whenever a pod has changed. If it does not come, more tells more.
func (r *rig) await(what string, so func() bool, more ...func() string) {
	r.Helper()
	r.lock.Lock()
	defer r.lock.Unlock()
	tick := time.AfterFunc(patience, r.changed.Broadcast)
	defer tick.Stop()
	for end := time.Now().Add(patience); !so(); r.changed.Wait() {
		if time.Now().After(end) {
			text := r.tail()
			for _, m := range more {
				text = m() + text
			}
			r.Fatalf("not so: %s\n%s", what, text)
		}
	}
}

// eventually waits for what nobody tells.
func (r *rig) eventually(what string, so func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if so() {
			return
		}
	}
	r.Fatalf("not so: %s\n%s", what, r.tail())
}

// tail is what the extenders said last.
func (r *rig) tail() (text string) {
	for _, x := range r.extenders {
		text += x.logged()
	}
	return text[max(0, len(text)-10000):]
}

// serverIsAway is whether to try again.
func (r *rig) serverIsAway(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, io.ErrUnexpectedEOF) || // killed in the middle of an answer
		apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsForbidden(err)
}

// ask is what a container of a pod asks for. Its limits are its requests.
type ask struct {
	name string
	of   amounts
}

func podOf(name string, asks ...ask) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	for _, a := range asks {
		list := v1.ResourceList{}
		for name, n := range a.of {
			list[v1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
		}
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: a.name, Image: "none",
			Resources: v1.ResourceRequirements{Requests: list, Limits: list}})
	}
	return p
}

// guaranteed is a pod of one container that has so many CPUs of its own.
func guaranteed(name string, cpus int64) *v1.Pod {
	return podOf(name, ask{"web", amounts{"cpu": cpus, "memory": gi}})
}

func (r *rig) create(p *v1.Pod) *v1.Pod {
	r.Helper()
	made, err := r.kube.CoreV1().Pods(p.Namespace).Create(background, p, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return made
}

// delete ends the pod as users do: its node first, and then it is gone.
func (r *rig) delete(p *v1.Pod) {
	r.Helper()
	if err := r.kube.CoreV1().Pods(p.Namespace).Delete(background, p.Name, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	r.await(p.Name+" is gone", func() bool { return r.pods[p.UID] == nil })
}

// now is the pod as the watch has it.
func (r *rig) now(p *v1.Pod) *v1.Pod {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.pods[p.UID]
}

// bound waits until the pod is, and returns it as it is then.
func (r *rig) bound(p *v1.Pod) *v1.Pod {
	r.Helper()
	r.await(p.Name+" is bound", func() bool { return r.pods[p.UID] != nil && r.pods[p.UID].Spec.NodeName != "" })
	return r.now(p)
}

// unschedulable waits until the scheduler says why the pod cannot be placed: what is between
// "N nodes are available: " and " preemption: ".
func (r *rig) unschedulable(p *v1.Pod) (why string) {
	r.Helper()
	r.await(p.Name+" is unschedulable", func() bool {
		if r.pods[p.UID] == nil {
			return false
		}
		if node := r.pods[p.UID].Spec.NodeName; node != "" {
			r.Fatalf("%s is on %s\n%s", p.Name, node, r.tail())
		}
		for _, c := range r.pods[p.UID].Status.Conditions {
			if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
				why = c.Message
			}
		}
		return why != ""
	})
	_, why, _ = strings.Cut(why, " nodes are available: ")
	why, _, _ = strings.Cut(why, " no new claims to deallocate")
	why, _, _ = strings.Cut(why, " preemption: ")
	return strings.TrimSpace(why)
}

// nothingWasRefused insists that every pod fit where it was put, and where its hint said.
func (r *rig) nothingWasRefused() {
	r.Helper()
	if list := r.repaired(); len(list) > 0 {
		r.Errorf("the hints of %d pods did not fit:\n%s\n%s", len(list), strings.Join(list, "\n"), r.tail())
	}
}

// repaired are the pods that fit otherwise than their hints said; none may be refused.
func (r *rig) repaired() (list []string) {
	r.Helper()
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, m := range r.machines {
		list = append(list, m.repaired...)
		if len(m.refused) > 0 {
			r.Errorf("%d pods did not fit on %s, such as %s", len(m.refused), m.name, m.refused[0])
		}
	}
	return list
}

// kubeconfigOf is a file by which the extender's account reaches the API server.
func (r *rig) kubeconfigOf() string {
	r.Helper()
	token := filepath.Join(r.dir, "token")
	text, err := r.tokenOf(extenderAccount.namespace, extenderAccount.name)
	if err == nil {
		err = os.WriteFile(token, []byte(text), 0o600)
	}
	path := filepath.Join(r.dir, "extender.kubeconfig")
	if err == nil {
		err = r.kubeconfig(path, r.admin.Host, token)
	}
	if err != nil {
		r.Fatal(err)
	}
	return path
}

func figure(format string, args ...any) { fmt.Printf("figure: "+format+"\n", args...) }
