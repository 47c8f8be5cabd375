package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// The one image that all pods run, sandboxes too: busybox, in the form of `docker save`.

const image = "localhost/e2e:1"

// untilTold ends at once on SIGTERM: CRI-O sends it, and waits.
const untilTold = "trap exit TERM; sleep 1000000 & wait"

var applets = []string{"sh", "cat", "sleep", "dd", "grep"}

func writeImage(path string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	var files []*tar.Header
	for _, dir := range []string{"bin", "dev", "etc", "proc", "sys", "tmp"} {
		files = append(files, &tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755})
	}
	for _, name := range applets {
		files = append(files, &tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"})
	}
	layer, err := archive(append(files, file("bin/busybox", program)), program)
	if err != nil {
		return err
	}
	config := toJSON(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"/bin/sh", "-c", untilTold}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	manifest := toJSON([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	text, err := archive([]*tar.Header{file("layer.tar", layer), file("config.json", config), file("manifest.json", manifest)},
		layer, config, manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func file(name string, content []byte) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}
}

// archive writes the entries, and after each regular file the next of the contents.
func archive(entries []*tar.Header, contents ...[]byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(e); err != nil {
			return nil, err
		}
		if e.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := w.Write(contents[0]); err != nil {
			return nil, err
		}
		contents = contents[1:]
	}
	err := w.Close()
	return out.Bytes(), err
}

func toJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings: cannot be
	}
	return text
}
