package interop

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// What tools/chart writes is what helm reads, from the archive and from a registry.

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.cncf.helm.config.v1+json"
	contentType  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

type described struct {
	MediaType, Digest string
	Size              int
	Annotations       map[string]string
}

type manifest struct {
	MediaType string
	Config    described
	Layers    []described
}

type packed struct {
	archive string // the path
	layout  string
	version string
}

func pack(t *testing.T) packed {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command(filepath.Join(os.Getenv("ROOT"), "tools/chart"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	words := strings.Fields(string(out))
	return packed{filepath.Join(dir, "numafit-"+words[1]+".tgz"), filepath.Join(dir, "oci"), words[1]}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p packed) blob(t *testing.T, digest string) []byte {
	t.Helper()
	return read(t, filepath.Join(p.layout, "blobs", strings.Replace(digest, ":", "/", 1)))
}

// manifest is the one that the index names.
func (p packed) manifest(t *testing.T) (text []byte, m manifest) {
	t.Helper()
	var index struct{ Manifests []described }
	if err := json.Unmarshal(read(t, filepath.Join(p.layout, "index.json")), &index); err != nil || len(index.Manifests) != 1 {
		t.Fatal(err, index)
	}
	if tag := index.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; tag != p.version {
		t.Errorf("its tag is %q", tag)
	}
	text = p.blob(t, index.Manifests[0].Digest)
	if err := json.Unmarshal(text, &m); err != nil || len(m.Layers) != 1 || len(text) != index.Manifests[0].Size {
		t.Fatal(err, string(text))
	}
	return text, m
}

func TestPackedTwiceTheChartIsTheSame(t *testing.T) {
	a, b := pack(t), pack(t)
	if !bytes.Equal(read(t, a.archive), read(t, b.archive)) || !bytes.Equal(read(t, a.layout+"/index.json"), read(t, b.layout+"/index.json")) {
		t.Error("it is not")
	}
}

func TestHelmRendersTheArchiveAsTheFolder(t *testing.T) {
	args := []string{"-n", namespace, "--include-crds", "--set", "extender.enabled=true"}
	folder := helm(t, append([]string{"template", "numafit", chart()}, args...)...)
	if archive := helm(t, append([]string{"template", "numafit", pack(t).archive}, args...)...); archive != folder || !strings.Contains(archive, "kind: CustomResourceDefinition") {
		t.Error("it does not")
	}
	if said := helm(t, "lint", "--strict", pack(t).archive); strings.Contains(said, "[WARNING]") {
		t.Error(said)
	}
}

// send has a registry take a blob or a manifest.
func send(t *testing.T, method, url, kind string, body []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s: %s", method, url, answer.Status, text)
	}
	return answer
}

func TestHelmPullsTheLayoutFromARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	p := pack(t)
	text, m := p.manifest(t)
	if m.MediaType != manifestType || m.Config.MediaType != configType || m.Layers[0].MediaType != contentType {
		t.Errorf("its media types are %+v", m)
	}
	for _, blob := range []described{m.Config, m.Layers[0]} {
		content := p.blob(t, blob.Digest)
		if len(content) != blob.Size {
			t.Errorf("%s has %d bytes, and is said to have %d", blob.Digest, len(content), blob.Size)
		}
		send(t, "POST", server.URL+"/v2/charts/numafit/blobs/uploads/?digest="+blob.Digest, "application/octet-stream", content)
	}
	send(t, "PUT", server.URL+"/v2/charts/numafit/manifests/"+p.version, manifestType, text)

	address, dir := "oci://"+strings.TrimPrefix(server.URL, "http://"), t.TempDir()
	helm(t, "pull", address+"/charts/numafit", "--version", p.version, "--plain-http", "-d", dir)
	if !bytes.Equal(read(t, filepath.Join(dir, filepath.Base(p.archive))), read(t, p.archive)) {
		t.Error("what is pulled is not the archive")
	}
	if said := helm(t, "show", "chart", address+"/charts/numafit", "--version", p.version, "--plain-http"); !strings.Contains(said, "appVersion: "+p.version) {
		t.Error(said)
	}

	// and what helm pushes is the same: the layer, and what the config says
	helm(t, "push", p.archive, address+"/pushed", "--plain-http")
	answer, err := http.Get(server.URL + "/v2/pushed/numafit/manifests/" + p.version)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var helms manifest
	if err := json.NewDecoder(answer.Body).Decode(&helms); err != nil {
		t.Fatal(err)
	}
	if helms.Layers[0].Digest != m.Layers[0].Digest || helms.Layers[0].MediaType != contentType || helms.Config.MediaType != configType {
		t.Errorf("helm pushes %+v", helms)
	}
	config, err := http.Get(server.URL + "/v2/pushed/numafit/blobs/" + helms.Config.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer config.Body.Close()
	var theirs, ours map[string]any
	if err := json.NewDecoder(config.Body).Decode(&theirs); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(p.blob(t, m.Config.Digest), &ours); err != nil {
		t.Fatal(err)
	}
	if asYAML(t, theirs) != asYAML(t, ours) {
		t.Errorf("helm's config:\n%s\nours:\n%s", asYAML(t, theirs), asYAML(t, ours))
	}
}
