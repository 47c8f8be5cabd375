package e2e

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Called as "runc" this program stands between the runtime and the real one. It writes down what
// runc is asked for, and takes the cpusets out of it: they are those of a machine that this one is
// not, and its kernel would refuse them. CRI-O asks for low OOM scores, too, which not everybody may
// have, and cannot be told not to.

const (
	askedFile   = "asked"        // beside the link that is called
	cpusetsStay = "cpusets-stay" // if it is there, too, they are this machine's
	annotation  = "numafit.io/placement"
)

// The annotations of containerd and CRI-O that say "sandbox" or "container".
var kinds = []string{"io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"}

// asked is one line of askedFile.
type asked struct {
	At                         string // when: for a person
	Op, ID, CPUs, Mems         string
	Placement, Kind, Pod, Name string // annotations, on create; the last two are containerd's
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "runc" {
		if err := standIn(os.Args); err != nil {
			io.WriteString(os.Stderr, "runc of the test: "+err.Error()+"\n")
			os.Exit(1)
		}
	}
	if filepath.Base(os.Args[0]) == clockProgram {
		io.WriteString(os.Stderr, "clock: "+runClock(os.Args).Error()+"\n") // it never ends else
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func standIn(args []string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	if slices.Contains(args, "create") {
		err = stripBundle(args)
	} else if slices.Contains(args, "update") {
		err = stripInput(args)
	} else if slices.Contains(args, "delete") { // its processes have ended
		err = (&asked{Op: "delete", ID: args[len(args)-1]}).append(args[0])
	}
	if err != nil {
		return err
	}
	return syscall.Exec(runc, append([]string{"runc"}, args[1:]...), os.Environ())
}

func stripBundle(args []string) error {
	path := filepath.Join(args[slices.Index(args, "--bundle")+1], "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	spec, line := map[string]any{}, asked{Op: "create", ID: args[len(args)-1]}
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	annotations := member(spec, "annotations")
	line.Placement = str(annotations[annotation])
	line.Pod, line.Name = str(annotations["io.kubernetes.cri.sandbox-name"]), str(annotations["io.kubernetes.cri.container-name"])
	for _, kind := range kinds {
		line.Kind += str(annotations[kind])
	}
	delete(member(spec, "process"), "oomScoreAdj")
	line.take(member(member(spec, "linux"), "resources"), args[0])
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	return line.append(args[0])
}

// stripInput does the same with the resources of an update, which come on stdin.
func stripInput(args []string) error {
	resources, line := map[string]any{}, asked{Op: "update", ID: args[len(args)-1]}
	if err := json.NewDecoder(os.Stdin).Decode(&resources); err != nil {
		return err
	}
	line.take(resources, args[0])
	rest, err := os.CreateTemp(filepath.Dir(args[0]), "update")
	if err != nil {
		return err
	}
	os.Remove(rest.Name())
	if err := json.NewEncoder(rest).Encode(resources); err != nil {
		return err
	}
	if _, err := rest.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := syscall.Dup3(int(rest.Fd()), 0, 0); err != nil {
		return err
	}
	return line.append(args[0])
}

func (a *asked) take(resources map[string]any, self string) {
	if !hasHugetlb() { // CRI-O asks for limits of it all the same
		delete(resources, "hugepageLimits")
	}
	cpu := member(resources, "cpu")
	a.CPUs, a.Mems = str(cpu["cpus"]), str(cpu["mems"])
	if _, err := os.Stat(filepath.Join(filepath.Dir(self), cpusetsStay)); err == nil {
		return
	}
	delete(cpu, "cpus")
	delete(cpu, "mems")
}

// hasHugetlb: the kernel has the cgroup controller, in either version.
func hasHugetlb() bool {
	_, err := os.Stat("/sys/fs/cgroup/hugetlb")
	controllers, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	return err == nil || slices.Contains(strings.Fields(string(controllers)), "hugetlb")
}

func (a *asked) append(self string) error {
	a.At = time.Now().UTC().Format(time.RFC3339Nano)
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(self), askedFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(text, '\n'))
	return err
}

// member is the object below that key; an empty one, to look into, when there is none.
func member(object map[string]any, key string) map[string]any {
	m, _ := object[key].(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m
}

func str(v any) string {
	s, _ := v.(string)
	return s
}
