package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// What container runtimes make of the files of a claim, and what programs in its containers read, by the
// code that they have for it.

const (
	uid     = "a1c3ee55-4ca0-4fb0-9732-1e353b9cc659"
	within  = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/mine/"
	ourFile = "/numafit.io-metadata.json"
)

// inject gives a container these shares of the claim.
func inject(t *testing.T, shares ...string) *oci.Spec {
	root := t.TempDir()
	dir := filepath.Join(root, "cdi")
	out, err := exec.Command(os.Getenv("DRA_PEER"), "write", dir, filepath.Join(root, "metadata")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	specs, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if errs := specs.GetErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	var devices []string
	for _, s := range shares {
		devices = append(devices, "numafit.io/claim="+uid+"-"+s)
	}
	spec := &oci.Spec{Process: &oci.Process{}}
	if unresolved, err := specs.InjectDevices(spec, devices...); err != nil || unresolved != nil {
		t.Fatal(unresolved, err)
	}
	return spec
}

func TestAContainerHasAVariableForEachOfItsShares(t *testing.T) {
	name := "NUMAFIT_CLAIM_NUMA_NODE_" + strings.ReplaceAll(uid, "-", "_") + "_"
	if env := inject(t, "0").Process.Env; !slices.Equal(env, []string{name + "0=2"}) {
		t.Error(env)
	}
	env := inject(t, "0", "1", "2").Process.Env
	if slices.Sort(env); !slices.Equal(env, []string{name + "0=2", name + "1=3", name + "2=8"}) {
		t.Error(env)
	}
}

func TestAContainerReadsTheMetadataOfItsRequests(t *testing.T) {
	type device struct {
		request, name string
		node          int64
	}
	want := map[string][]device{
		within + "numa" + ourFile:  {{"numa", "numa2", 2}, {"numa", "numa8", 8}},
		within + "other" + ourFile: {{"other/large", "numa3", 3}},
	}
	mounts := inject(t, "0", "1", "2").Mounts
	if len(mounts) != len(want) {
		t.Fatal(mounts)
	}
	for _, m := range mounts {
		text, err := os.ReadFile(m.Source)
		if err != nil {
			t.Fatal(err)
		}
		var got metadata.DeviceMetadata
		var invalid error
		if err := devicemetadata.DecodeMetadataFromStream(json.NewDecoder(strings.NewReader(string(text))), &got,
			devicemetadata.DecodeMetadataWithValidationResult(&invalid)); err != nil || invalid != nil {
			t.Fatal(err, invalid)
		}
		if got.Name != "pod-numa-x7k2p" || got.Namespace != "default" || string(got.UID) != uid ||
			got.Generation != 1 || got.PodClaimName == nil || *got.PodClaimName != "mine" || len(got.Requests) != 1 {
			t.Errorf("%s", text)
		}
		var devices []device
		for _, d := range got.Requests[0].Devices {
			node := d.Attributes["resource.kubernetes.io/numaNode"].IntValue
			if d.Driver != driver || d.Pool != "n1" || node == nil {
				t.Fatalf("%s", text)
			}
			devices = append(devices, device{got.Requests[0].Name, d.Name, *node})
		}
		if !slices.Equal(devices, want[m.Destination]) {
			t.Errorf("%s: %v", m.Destination, devices)
		}
	}
}
