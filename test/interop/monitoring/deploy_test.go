package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// What deploy/components has, as it is rendered and as its files are read.

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

type ruleGroups struct {
	Groups []struct {
		Name  string
		Rules []alert
	}
}

type object struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data map[string]string
	Spec ruleGroups
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               *datasource
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                datasource
	}
	Panels []json.RawMessage
}

type datasource struct{ Type, UID string }

type dashboard struct {
	ID            *int
	UID           string
	Title         string
	SchemaVersion int
	Tags          []string
	Panels        []panel
	Templating    struct {
		List []struct {
			Name, Type, AllValue string
			Query                json.RawMessage
		}
	}
}

// rendered are the objects of a folder below deploy/, as kubectl kustomize makes them.
func rendered(t *testing.T, folder string) (list []object) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range bytes.Split(text, []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(one, &o); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

func components(name string) string { return filepath.Join(os.Getenv("DEPLOY"), "components", name) }

func alerts(t *testing.T) (list []alert) {
	t.Helper()
	for _, group := range rendered(t, components("alerts"))[0].Spec.Groups {
		list = append(list, group.Rules...)
	}
	if len(list) < 9 {
		t.Fatalf("only %d alerts", len(list))
	}
	return list
}

// ruleFile is the file that the manual's command makes of the PrometheusRule.
func ruleFile(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(os.Getenv("DEPLOY"), "docs/operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^sed .* deploy/components/alerts/.*$`).Find(page)
	dir := t.TempDir()
	if err := os.Symlink(os.Getenv("DEPLOY"), filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("sh", "-ec", string(command))
	sh.Dir = dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "numafit-alerts.yaml")
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(components("dashboards"), "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	list := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(file, err)
		}
		list[filepath.Base(file)] = d
	}
	return list
}

// variables are what Grafana puts in their place; a node's name and an instance's beside them.
var variables = map[string]string{"$__rate_interval": "5m", "$__range": "1h", "$pod_cpus": "8"}

func substituted(t *testing.T, expr, node, instance string) string {
	t.Helper()
	for name, value := range variables {
		expr = strings.ReplaceAll(expr, name, value)
	}
	expr = strings.ReplaceAll(strings.ReplaceAll(expr, "$node", node), "$instance", instance)
	if strings.Contains(expr, "$") {
		t.Errorf("a variable that nobody knows: %s", expr)
	}
	return expr
}

func TestEachComponentIsRendered(t *testing.T) {
	rule := rendered(t, components("alerts"))
	if len(rule) != 1 || rule[0].APIVersion+rule[0].Kind != "monitoring.coreos.com/v1PrometheusRule" ||
		rule[0].Metadata.Namespace != "numafit-system" {
		t.Error(rule)
	}
	maps := rendered(t, components("dashboards"))
	if len(maps) != 1 || maps[0].Kind != "ConfigMap" || maps[0].Metadata.Namespace != "numafit-system" ||
		maps[0].Metadata.Labels["grafana_dashboard"] != "1" || len(maps[0].Data) != 2 {
		t.Fatal(maps)
	}
	const annotation = 256 << 10 // kubectl apply keeps the whole object in one, and the API server takes no more
	if text, err := json.Marshal(maps[0]); err != nil || len(text) > annotation*3/4 {
		t.Errorf("a ConfigMap of %d bytes: %v", len(text), err)
	} else {
		t.Logf("figure: a ConfigMap of %d bytes", len(text))
	}
	for name, text := range maps[0].Data {
		file, err := os.ReadFile(filepath.Join(components("dashboards"), name))
		if err != nil || string(file) != text {
			t.Errorf("%s is not the file: %v", name, err)
		}
	}
}

func TestAnOverlayWithAllOfThemIsRendered(t *testing.T) {
	dir := t.TempDir()
	relative, err := filepath.Rel(dir, os.Getenv("DEPLOY"))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%s/overlays/containerd]\ncomponents:\n", relative)
	for _, c := range []string{"podmonitor", "alerts", "dashboards"} {
		text += fmt.Sprintf("- %s/components/%s\n", relative, c)
	}
	write(t, filepath.Join(dir, "kustomization.yaml"), text)
	kinds := map[string]int{}
	for _, o := range rendered(t, dir) {
		kinds[o.Kind]++
	}
	if kinds["PrometheusRule"] != 1 || kinds["PodMonitor"] != 2 || kinds["ConfigMap"] != 2 || kinds["DaemonSet"] != 1 {
		t.Error(kinds)
	}
}

func TestDashboardsAreWhole(t *testing.T) {
	for file, d := range dashboards(t) {
		if d.ID != nil || d.UID != "" || d.SchemaVersion < 39 || !strings.HasPrefix(d.Title, "numafit: ") {
			t.Errorf("%s: %v %q %d %q", file, d.ID, d.UID, d.SchemaVersion, d.Title)
		}
		if first := d.Templating.List[0]; first.Name != "datasource" || first.Type != "datasource" {
			t.Errorf("%s: %v", file, first)
		}
		for _, fault := range faults(d.Panels) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

// faults are what is wrong with panels: ids, places, texts, units, data sources.
func faults(panels []panel) (list []string) {
	ids, taken := map[int]bool{}, map[[2]int]int{}
	for _, p := range panels {
		complain := func(what string) { list = append(list, fmt.Sprintf("panel %d, %q: %s", p.ID, p.Title, what)) }
		if ids[p.ID] || p.ID == 0 {
			complain("its id")
		}
		ids[p.ID] = true
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X < 0 || p.GridPos.X+p.GridPos.W > 24 {
			complain("its place")
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, is := taken[[2]int{x, y}]; is {
					complain(fmt.Sprintf("in the place of %d", other))
				}
				taken[[2]int{x, y}] = p.ID
			}
		}
		if p.Title == "" || len(p.Panels) > 0 {
			complain("no title, or panels in it")
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			complain("no description, unit or query")
		}
		if p.Datasource == nil || p.Datasource.UID != "${datasource}" {
			complain("its data source")
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Datasource.UID != "${datasource}" || refs[q.RefID] || q.LegendFormat == "" {
				complain("query " + q.RefID)
			}
			refs[q.RefID] = true
		}
	}
	return list
}

func TestAFaultyPanelWouldBeFound(t *testing.T) {
	whole := dashboards(t)["node.json"].Panels
	for what, spoil := range map[string]func(p *panel){
		"an id twice":              func(p *panel) { p.ID = whole[1].ID },
		"a place twice":            func(p *panel) { p.GridPos = whole[1].GridPos },
		"beyond the edge":          func(p *panel) { p.GridPos.X = 23 },
		"no description":           func(p *panel) { p.Description = "" },
		"no unit":                  func(p *panel) { p.FieldConfig.Defaults.Unit = "" },
		"a data source of its own": func(p *panel) { p.Datasource = &datasource{UID: "abc"} },
		"no title":                 func(p *panel) { p.Title = "" },
	} {
		spoiled := append([]panel{}, whole...)
		spoil(&spoiled[2])
		if len(faults(spoiled)) == 0 {
			t.Error(what)
		}
	}
}
