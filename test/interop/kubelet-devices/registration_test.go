package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// How numafitd comes to be known to the kubelet's device manager, and stays so.

const idle = "device-plugin.example/idle"

func TestTheRigServesAPluginThatDoesNothing(t *testing.T) {
	r := newRigWith(t, "restricted", nil) // numafitd without the kubelet's services
	v := r.startVendor(idle, 128, "-each", "16")
	p := newPod("web", ask{name: "main", cpus: 1, others: some(idle, 24)})
	r.mustAdmit(p)
	if held := r.kubelet.held(p, "main", idle); len(held) != 24 {
		t.Errorf("it has %v", held)
	}
	annotations, err := r.kubelet.annotations(p, containerOf(p, "main"))
	if err != nil || len(strings.Split(annotations["device-plugin.example/allocated"], ",")) != 24 {
		t.Errorf("annotations %v, %v", annotations, err)
	}
	if rows := r.kubelet.list(); len(rows) != 24 || rows[0].ResourceName != idle || len(rows[0].Topology.Nodes) != 1 {
		t.Errorf("PodResources: %v", rows)
	}
	if all, healthy := r.kubelet.capacity(cpuResource); all != 0 || healthy != 0 {
		t.Errorf("%d, %d of %s, which nobody serves", all, healthy, cpuResource)
	}
	r.kubelet.stop()
	r.kubelet.start()
	v.kubelet.waitHealthy(idle, 128)
}

func TestRegistersAndShowsATokenForEachCPUThatIsNotReserved(t *testing.T) {
	r := newRig(t, "none", "reservedSystemCPUs=0-1,64,8")
	if all, healthy := r.kubelet.capacity(cpuResource); all != 124 || healthy != 124 {
		t.Errorf("capacity %d, allocatable %d", all, healthy)
	}
	if on := r.kubelet.healthyOn(cpuResource); on != [nrNodes]int{13, 15, 16, 16, 16, 16, 16, 16} {
		t.Errorf("on each node: %v", on)
	}
	form := regexp.MustCompile(`^node([0-7])-00[01][0-9]$`)
	for id, device := range healthyDevices(r.kubelet.devices)[cpuResource] {
		m := form.FindStringSubmatch(id)
		if m == nil || m[1] != fmt.Sprint(device.Topology.Nodes[0].ID) || len(device.Topology.Nodes) != 1 {
			t.Errorf("%q of %v", id, device.Topology)
		}
	}
}

func TestTheSharedPoolsMinimumIsNotGivenOut(t *testing.T) {
	r := newRig(t, "none", "sharedPoolMinimum=3")
	if all, healthy := r.kubelet.capacity(cpuResource); all != 127 || healthy != 125 {
		t.Errorf("capacity %d, allocatable %d", all, healthy)
	}
}

func TestTokensKeepTheirNamesOverRestartsOfTheDaemon(t *testing.T) {
	r := newRig(t, "none", "reservedSystemCPUs=0-1")
	before := r.healthyIDs()
	p := tokenPod("db", 4)
	c := r.mustRun(p)
	for _, kill := range []bool{false, true} {
		if kill {
			r.killDaemon()
		} else {
			r.stopDaemon()
		}
		r.kubelet.waitHealthy(cpuResource, 0)
		r.startDaemon()
		r.waitConnected()
		took := r.waitTokens()
		t.Logf("back %v after the daemon was connected", took.Round(time.Millisecond))
		if now := r.healthyIDs(); now != before {
			t.Errorf("they were %s, and are %s", before, now)
		}
		r.followsTokens(p, c)
	}
}

// healthyIDs are the names of all healthy tokens.
func (r *rig) healthyIDs() string {
	ids := map[string]bool{}
	for id := range healthyDevices(r.kubelet.devices)[cpuResource] {
		ids[id] = true
	}
	return fmt.Sprint(ids)
}

func TestWaitsForAKubeletThatIsNotThere(t *testing.T) {
	r := newRig(t, "none")
	r.kubelet.stop()
	root := r.kubelet.root
	r.stopDaemon()
	os.RemoveAll(root)
	r.startDaemon()
	r.waitConnected()
	r.waitLog(1, "device-plugin-no-directory")
	for _, dir := range []string{"", "device-plugins", "pod-resources", "pods-api"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	r.kubelet.start()
	t.Logf("registered %v after the kubelet's start", r.waitTokens().Round(time.Millisecond))
	p := tokenPod("db", 4)
	r.followsTokens(p, r.mustRun(p))
}

// restartKubelet is what a kubelet does that comes back: it admits again what runs.
func (r *rig) restartKubelet() time.Duration {
	r.Helper()
	_, healthy := r.kubelet.capacity(cpuResource)
	r.kubelet.stop()
	r.kubelet.start()
	took := r.kubelet.waitHealthy(cpuResource, healthy)
	for _, p := range r.kubelet.GetActivePods() {
		if result := admit(r.kubelet.topology, p); !result.Admit {
			r.Fatalf("pod %s is rejected after the restart: %s: %s", p.Name, result.Reason, result.Message)
		}
	}
	return took
}

func TestARestartedManagerFindsItsCheckpointTrue(t *testing.T) {
	for _, policy := range []string{"none", "best-effort", "restricted", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t, policy)
			db, web := tokenPod("db", 16), tokenPod("web", 3)
			r.mustRun(db)
			r.mustRun(web)
			had := r.memory(db, web)
			alone := newPod("alone", ask{name: "main", cpus: 9})
			r.mustRun(alone) // tokens that are Unhealthy at the restart
			r.kubelet.waitHealthy(cpuResource, int64(r.tokens()-9))
			r.restartKubelet()
			if now := r.memory(db, web); now != had {
				t.Errorf("they had %s and have %s", had, now)
			}
		})
	}
}

// memory is what the device manager knows of these pods: devices, and what it would tell a runtime.
func (r *rig) memory(pods ...*v1.Pod) string {
	r.Helper()
	var all []string
	for _, p := range pods {
		annotations, err := r.kubelet.annotations(p, containerOf(p, "main"))
		if err != nil || annotations[allocated] == "" {
			r.Errorf("annotations of %s: %v, %v", p.Name, annotations, err)
		}
		all = append(all, fmt.Sprint(r.kubelet.held(p, "main", cpuResource), annotations))
	}
	return strings.Join(all, "; ")
}

func TestThirtyRestartsLoseNothing(t *testing.T) {
	r := newRig(t, "restricted")
	db := tokenPod("db", 16)
	c := r.mustRun(db)
	had := r.memory(db)
	var longest time.Duration
	for range 30 {
		longest = max(longest, r.restartKubelet())
	}
	t.Logf("30 restarts, back after %v at most", longest.Round(time.Millisecond))
	if now := r.memory(db); now != had {
		t.Errorf("it had %s and has %s", had, now)
	}
	r.followsTokens(db, c)
	late := tokenPod("late", 16)
	r.followsTokens(late, r.mustRun(late))
}

func TestRegistersAgainWhenTheKubeletLetsGo(t *testing.T) {
	r := newRig(t, "none")
	for range 3 {
		r.kubelet.letGo(cpuResource, r.socketOfDaemon()) // its stream ends, and no file changes
		r.kubelet.waitHealthy(cpuResource, 0)
		t.Logf("back after %v", r.waitTokens().Round(time.Millisecond))
	}
}

// socketOfDaemon is the only one beside the kubelet's.
func (r *rig) socketOfDaemon() (path string) {
	r.Helper()
	names, _ := filepath.Glob(filepath.Join(r.kubelet.root, "device-plugins", "*.sock"))
	names = slices.DeleteFunc(names, func(n string) bool { return filepath.Base(n) == "kubelet.sock" })
	if len(names) != 1 {
		r.Fatalf("sockets %v", names)
	}
	return names[0]
}

func TestTheDirectoryIsWiped(t *testing.T) {
	for _, one := range []struct {
		name string
		wipe func(dir string) error
	}{
		{"the sockets in it", func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "*.sock"))
			for _, name := range names {
				os.Remove(name)
			}
			return err
		}},
		{"all of it", func(dir string) error {
			err := os.RemoveAll(dir)
			for errors.Is(err, syscall.ENOTEMPTY) { // numafitd has bound its socket anew meanwhile
				err = os.RemoveAll(dir)
			}
			return err
		}},
		{"while the daemon stands still", nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			r := newRig(t, "none")
			dir := filepath.Join(r.kubelet.root, "device-plugins")
			if one.wipe == nil {
				r.signal(syscall.SIGSTOP)
				r.kubelet.stop()
				r.kubelet.start()
				r.signal(syscall.SIGCONT)
			} else {
				r.kubelet.stop()
				if err := one.wipe(dir); err != nil {
					t.Fatal(err)
				}
				r.kubelet.start()
			}
			t.Logf("back after %v", r.waitTokens().Round(time.Millisecond))
			p := tokenPod("db", 4)
			r.followsTokens(p, r.mustRun(p))
		})
	}
}

func TestOurSocketIsRemovedWhileTheKubeletRuns(t *testing.T) {
	r := newRig(t, "none")
	os.Remove(r.socketOfDaemon())
	p := tokenPod("db", 4)
	r.mustAdmit(p)
	c, err := r.create(p, p.Spec.Containers[0].Name)
	// numafitd registers anew meanwhile; a container whose PreStartContainer fails is started again
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); time.Sleep(starting) {
		c, err = r.create(p, p.Spec.Containers[0].Name)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.followsTokens(p, c)
	r.restartKubelet()
}
