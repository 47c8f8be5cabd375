package interop

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
)

// A storm of pods with ResourceClaims, by numafitd itself: claims of a real API server, prepared and
// unprepared as a kubelet does, through a daemon that is killed and a journal that is lost. Figures,
// and no judgement of times: the machine is anything.

const (
	stormNodes   = 64
	stormPerNode = 16 // CPUs
	stormAtOnce  = 32 // calls of the kubelet that are under way
	stormInOne   = 100
	stormLongest = 2 * time.Minute // all claims, on a busy machine
)

// stormClaims leaves a few CPUs to the shared pool.
var stormClaims = slowClaims(1000)

// slowClaims is fewer when numafitd runs under a tool that is slow.
func slowClaims(nr int) int {
	if os.Getenv("NUMAFITD_UNDER") != "" {
		return nr / 10
	}
	return nr
}

type storm struct {
	*rig
	kubelet, cdi string // directories
	claims       []*dra.Claim
	node         map[string]int // a claim's NUMA node, by its name
	client       dra.DRAPluginClient
}

// newStorm starts numafitd on a machine with 1,024 CPUs.
func newStorm(t *testing.T) *storm {
	s := &storm{rig: prepareRig(t), node: map[string]int{}}
	s.kubelet, s.cdi = filepath.Join(s.dir, "kubelet"), filepath.Join(s.dir, "cdi")
	for _, d := range []string{"plugins", "plugins_registry"} {
		if err := os.MkdirAll(filepath.Join(s.kubelet, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config, err := adminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	s.settings = append(s.settings, "machine="+s.writeMachine(), "reservedSystemCPUs=0", "nodeResourceTopology.enabled=false",
		"kubeletRootDirectory="+s.kubelet, "claims.enabled=true", "claims.cdiDirectory="+s.cdi, "apiServer.kubeconfig="+config)
	s.startRuntime()
	s.start(1)
	return s
}

// writeMachine has NUMA node n with CPUs 8n to 8n+7, and their hyperthreads 512 above.
func (s *storm) writeMachine() string {
	const half = stormPerNode / 2
	text := "machine storm\n"
	for n := range stormNodes {
		cpu, twin := n*half, (stormNodes+n)*half
		text += fmt.Sprintf("node %d memory 64Gi cpus %d-%d,%d-%d socket %d smt 2\n", n, cpu, cpu+half-1, twin, twin+half-1, n/8)
	}
	path := filepath.Join(s.dir, "storm.machine")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// start starts numafitd for the nth time.
func (s *storm) start(nth int) {
	s.Helper()
	s.startDaemon()
	s.waitConnected()
	s.waitLog(nth, "claims-plugin-offered")
	c, err := grpc.NewClient("unix://"+filepath.Join(s.kubelet, "plugins", "numafit.io", "dra.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	s.client = dra.NewDRAPluginClient(c)
}

// inParallel calls do(0) to do(nr-1), so many at a time, and fails with the first error.
func (s *storm) inParallel(nr, atOnce int, do func(i int) error) {
	s.Helper()
	var all sync.WaitGroup
	next, failed := make(chan int), make(chan error, nr)
	for range atOnce {
		all.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range nr {
		next <- i
	}
	close(next)
	all.Wait()
	close(failed)
	for err := range failed {
		s.Fatalf("%v (and %d more)", err, len(failed))
	}
}

// allocate creates the claims as the scheduler leaves them.
func (s *storm) allocate() {
	s.Helper()
	claims := s.kube.ResourceV1().ResourceClaims("default")
	s.Cleanup(func() {
		claims.DeleteCollection(background, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "of=" + s.name})
	})
	s.claims = make([]*dra.Claim, stormClaims)
	for i := range stormClaims {
		s.node[fmt.Sprint("storm-", i)] = (i + 1) % stormNodes // node 0 has the reserved CPU
	}
	s.inParallel(stormClaims, 8, func(i int) error {
		name := fmt.Sprint("storm-", i)
		c, err := claims.Create(background, &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": s.name}},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
				{Name: "numa", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "numafit.io"}}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		share := types.UID(fmt.Sprintf("c3bc7fae-d7d5-40d3-b803-%012d", i))
		c.Status = resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{Request: "numa", Driver: "numafit.io", Pool: s.name,
					Device: fmt.Sprint("numa", s.node[name]), ShareID: &share,
					ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
						"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}}}},
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{
				{Resource: "pods", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint("pod-uid-", i))}},
		}
		_, err = claims.UpdateStatus(background, c, metav1.UpdateOptions{})
		s.claims[i] = &dra.Claim{Namespace: "default", Name: name, Uid: string(c.UID)}
		return err
	})
}

// calls are the kubelet's for these claims: one for each, and a last one for many.
func calls(claims []*dra.Claim) (list [][]*dra.Claim) {
	many := min(stormInOne, len(claims)/2)
	for _, c := range claims[many:] {
		list = append(list, []*dra.Claim{c})
	}
	return append(list, claims[:many])
}

// prepare has all claims prepared; it returns how long each call for one claim took.
func (s *storm) prepare() []time.Duration {
	s.Helper()
	list := calls(s.claims)
	took := make([]time.Duration, len(list))
	s.inParallel(len(list), stormAtOnce, func(i int) error {
		ctx, cancel := context.WithTimeout(background, stormLongest)
		defer cancel()
		start := time.Now()
		out, err := s.client.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: list[i]})
		took[i] = time.Since(start)
		if err != nil {
			return err
		}
		for _, c := range list[i] {
			if err := s.isPrepared(c, out.Claims[c.Uid]); err != nil {
				return err
			}
		}
		return nil
	})
	return took[:len(took)-1]
}

// isPrepared checks the answer for a claim, and its files.
func (s *storm) isPrepared(c *dra.Claim, a *dra.NodePrepareResourceResponse) error {
	if a == nil || a.Error != "" || len(a.Devices) != 1 {
		return fmt.Errorf("%s: the answer is %v", c.Name, a)
	}
	d, cdi := a.Devices[0], "numafit.io/claim="+c.Uid+"-0"
	if d.PoolName != s.name || d.DeviceName != fmt.Sprint("numa", s.node[c.Name]) || !slices.Equal(d.CdiDeviceIds, []string{cdi}) {
		return fmt.Errorf("%s: the device is %v", c.Name, d)
	}
	text, err := os.ReadFile(filepath.Join(s.cdi, "numafit.io-claim_"+c.Uid+".json"))
	if err == nil && !strings.Contains(string(text), c.Uid+"-0") {
		err = fmt.Errorf("%s: the CDI file is %s", c.Name, text)
	}
	return err
}

func (s *storm) unprepare() {
	s.Helper()
	list := calls(s.claims)
	s.inParallel(len(list), stormAtOnce, func(i int) error {
		ctx, cancel := context.WithTimeout(background, stormLongest)
		defer cancel()
		out, err := s.client.NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: list[i]})
		if err != nil {
			return err
		}
		for _, c := range list[i] {
			if a := out.Claims[c.Uid]; a == nil || a.Error != "" {
				return fmt.Errorf("%s: the answer is %v", c.Name, a)
			}
		}
		return nil
	})
}

// held is the CPU of each claim; each has one of its NUMA node that no other claim has.
func (s *storm) held() map[string]int {
	s.Helper()
	held, claimOf := map[string]int{}, map[int]string{}
	for _, c := range s.status().Claims {
		cpu, err := strconv.Atoi(c.CPUs)
		if err != nil || c.Node != fmt.Sprint(s.node[c.Claim]) || cpu%(stormNodes*stormPerNode/2)/(stormPerNode/2) != s.node[c.Claim] {
			s.Fatalf("%s has CPUs %q of NUMA node %s, and is to have one of %d", c.Claim, c.CPUs, c.Node, s.node[c.Claim])
		}
		if other := claimOf[cpu]; other != "" {
			s.Fatalf("CPU %d is held by %s and by %s", cpu, other, c.Claim)
		}
		held[c.Claim], claimOf[cpu] = cpu, c.Claim
	}
	return held
}

func (s *storm) holdsAll() map[string]int {
	s.Helper()
	held := s.held()
	if len(held) != stormClaims {
		s.Fatalf("%d claims are held, not %d", len(held), stormClaims)
	}
	return held
}

// offered is what the node's ResourceSlice has of each device.
func (s *storm) offered() string {
	o, err := s.kube.ResourceV1().ResourceSlices().Get(background, s.name+"-numafit.io", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	capacity := map[string]string{}
	for _, d := range o.Spec.Devices {
		capacity[d.Name] = fmt.Sprint(asJSON(d.Capacity), len(d.Taints))
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		list = append(list, name+": "+capacity[name])
	}
	return strings.Join(list, "\n")
}

// until waits for what has no event.
func (s *storm) until(what string, longest time.Duration, true func() bool) time.Duration {
	s.Helper()
	start := time.Now()
	for !true() {
		if time.Since(start) > longest {
			s.Fatalf("not so: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// procStat are fields of /proc/PID/stat behind the name, from the state on.
func (s *storm) procStat() []string {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.daemon.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	return strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
}

// used is the processor time of numafitd.
func (s *storm) used() time.Duration {
	s.Helper()
	const utime, stime, tick = 14 - 3, 15 - 3, 10 * time.Millisecond // USER_HZ
	fields, sum := s.procStat(), 0
	for _, i := range []int{utime, stime} {
		ticks, err := strconv.Atoi(fields[i])
		if err != nil {
			s.Fatal(err)
		}
		sum += ticks
	}
	return time.Duration(sum) * tick
}

func (s *storm) rss() string {
	s.Helper()
	const rss = 24 - 3
	pages, err := strconv.Atoi(s.procStat()[rss])
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf("%.1f MB", float64(pages*os.Getpagesize())/1e6)
}

// leftFiles are those of claims, for containers and their runtime.
func (s *storm) leftFiles() []string {
	list, _ := filepath.Glob(filepath.Join(s.cdi, "*"))
	more, _ := filepath.Glob(filepath.Join(s.kubelet, "plugins", "numafit.io", "metadata", "*"))
	return append(list, more...)
}

func TestAStormOfClaims(t *testing.T) {
	s := newStorm(t)
	var offer string
	s.until("the slice is there", patience, func() bool { offer = s.offered(); return strings.Count(offer, "numa") == stormNodes })
	s.allocate()
	before, rss := s.used(), s.rss()
	start := time.Now()
	took := s.prepare()
	all, prepared := time.Since(start), s.used()-before
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(100 * time.Microsecond) }
	fmt.Printf("figure: Prepare of one claim, %d at once: p50 %v, p99 %v; of all %d: %v\n", stormAtOnce, at(50), at(99),
		stormClaims, all.Round(time.Millisecond))
	fmt.Printf("figure: numafitd without a claim %s, with %d claims %s\n", rss, stormClaims, s.rss())
	held := s.holdsAll()

	s.killDaemon()
	start = time.Now()
	s.start(2)
	if now := s.holdsAll(); !maps.Equal(now, held) {
		t.Errorf("held is %v after a restart, and %v before", now, held)
	}
	fmt.Printf("figure: killed, and %d claims held again by the journal: %v\n", stormClaims, time.Since(start).Round(time.Millisecond))

	s.killDaemon()
	if err := os.Remove(filepath.Join(s.dir, "run", "journal")); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	s.start(3)
	s.until("all are restored", stormLongest, func() bool { return strings.Count(s.logged(), "claim-restored") == stormClaims })
	fmt.Printf("figure: killed, and %d claims held again without the journal: %v, %v of a processor\n", stormClaims,
		time.Since(start).Round(time.Millisecond), s.used())
	s.holdsAll()

	before = s.used()
	start = time.Now()
	s.unprepare()
	all, unprepared := time.Since(start), s.used()-before
	per := func(d time.Duration) time.Duration {
		return (d / time.Duration(stormClaims)).Round(10 * time.Microsecond)
	}
	fmt.Printf("figure: Unprepare of all %d: %v\n", stormClaims, all.Round(time.Millisecond))
	fmt.Printf("figure: processor time of numafitd for each claim: prepared %v, unprepared %v\n", per(prepared), per(unprepared))
	if now := s.held(); len(now) > 0 {
		t.Errorf("held is %v", now)
	}
	for _, n := range s.status().Nodes {
		if n.CPUsHeld != 0 || n.Memory[0].Free != n.Memory[0].Allocatable {
			t.Errorf("of NUMA node %d is held: %+v", n.ID, n)
		}
	}
	if left := s.leftFiles(); left != nil {
		t.Errorf("left: %q", left)
	}
	s.until("the slice is as before", patience, func() bool { return s.offered() == offer })
}
