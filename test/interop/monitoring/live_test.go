package interop

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A real Prometheus between the dashboards and the programs.

// quietOnly are metrics that there are only on a machine whose interrupts may be moved.
var quietOnly = []string{"numafit_quiet_failing"}

type prometheus struct {
	*testing.T
	address string
}

type sample struct {
	Metric map[string]string
	Value  [2]any
}

// ask has an answer of its HTTP API in into.
func (p prometheus) ask(path string, values url.Values, into any) error {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get("http://" + p.address + path + "?" + values.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return err
	}
	if body.Status != "success" {
		return fmt.Errorf("%s: %s", body.Status, body.Error)
	}
	return json.Unmarshal(body.Data, into)
}

func (p prometheus) query(expr string) []sample {
	p.Helper()
	var vector struct{ Result []sample }
	if err := p.ask("/api/v1/query", url.Values{"query": {expr}}, &vector); err != nil {
		p.Errorf("%s: %v", expr, err)
	}
	return vector.Result
}

func (p prometheus) eventually(what string, holds func() bool) {
	p.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("not in 30 s: %s", what)
		}
	}
}

// scraping is a Prometheus that scrapes numafitd as components/podmonitor has it done, with the label node,
// and once more without, as the instance plain; and numafit-extender. It has our alerts.
func scraping(t *testing.T, dir, daemon, extender string) prometheus {
	t.Helper()
	config := fmt.Sprintf(`global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
- job_name: numafitd
  static_configs: [{targets: [%q], labels: {node: worker-1}}]
- job_name: without-node
  static_configs: [{targets: [%q], labels: {instance: plain}}]
- job_name: numafit-extender
  static_configs: [{targets: [%q], labels: {node: control-1}}]
`, ruleFile(t), daemon, daemon, extender)
	file := filepath.Join(dir, "prometheus.yaml")
	write(t, file, config)
	p := prometheus{t, freePort(t)}
	started(t, filepath.Join(os.Getenv("PROMETHEUS"), "prometheus"), "--config.file="+file, "--web.listen-address="+p.address,
		"--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--log.level=warn")
	p.eventually("all targets are up", func() bool {
		var vector struct{ Result []sample }
		return p.ask("/api/v1/query", url.Values{"query": {"up == 1"}}, &vector) == nil && len(vector.Result) == 3
	})
	return p
}

// asks is a scheduler's request for each verb.
func asks(t *testing.T, extender string) {
	t.Helper()
	for _, verb := range []string{"filter", "prioritize", "preempt", "bind"} {
		answer, err := http.Post("http://"+extender+"/"+verb, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
}

// live is a Prometheus that has seen a day of numafitd.
func live(t *testing.T) prometheus {
	t.Helper()
	dir := folder(t)
	daemonAt := daemon(t, dir)
	extenderAt := extender(t, dir)
	p := scraping(t, dir, daemonAt, extenderAt)
	play(t, dir, "hints")
	play(t, dir, "demo")
	asks(t, extenderAt)
	for _, grown := range []string{`numafit_topology_manager_admission_errors_total`, `numafit_scheduler_hints_total`,
		`numafit_extender_requests_total`} {
		p.eventually(grown+" grows", func() bool { return len(p.query("sum(increase("+grown+"[5m])) > 0")) == 1 })
	}
	return p
}

var named = regexp.MustCompile(`\b(numafit|process)_[a-z0-9_]+`)

// There is one Prometheus for all of these cases: they change nothing.
func TestAPrometheusThatScrapesTheRealPrograms(t *testing.T) {
	p := live(t)
	t.Run("has every metric that is named", func(t *testing.T) {
		var names []string
		if err := p.ask("/api/v1/label/__name__/values", nil, &names); err != nil {
			t.Fatal(err)
		}
		if missing := missing(t, names); len(missing) > 0 {
			t.Error(missing)
		}
	})
	for file, d := range dashboards(t) {
		for title, chosen := range map[string][2]string{"by node": {"worker-1|control-1", "127.*"}, "by instance": {".*", "plain"}} {
			t.Run(file+" has data in each panel, "+title, func(t *testing.T) { p.shows(t, d, chosen) })
		}
	}
	t.Run("shows what the machine has", p.showsTheMachine)
	t.Run("knows the values of the variables", func(t *testing.T) {
		for name, series := range map[string]string{"node": "numafit_build_info", "instance": `numafit_build_info{node=~"worker-1"}`} {
			var values []string
			if err := p.ask("/api/v1/label/"+name+"/values", url.Values{"match[]": {series}}, &values); err != nil || len(values) != 1 {
				t.Error(name, values, err)
			}
		}
	})
	t.Run("has series for each alert's expression", p.hasSeriesOfAlerts)
	t.Run("evaluates the alerts, and those fire that have a reason", p.alertsFire)
}

// missing are metrics that are named in dashboards, rules or the manual's page, and are not among names.
func missing(t *testing.T, names []string) (list []string) {
	t.Helper()
	for _, file := range []string{"components/alerts/prometheusrule.yaml", "components/dashboards/node.json",
		"components/dashboards/fleet.json", "docs/operating.md"} {
		text, err := os.ReadFile(filepath.Join(os.Getenv("DEPLOY"), file))
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics", file, len(found))
		}
		for _, name := range found {
			if !slices.Contains(names, name) && !slices.Contains(quietOnly, name) {
				list = append(list, file+": "+name)
			}
		}
	}
	return list
}

// shows asks each query of a dashboard: it succeeds and has values, except those about quiet CPUs.
func (p prometheus) shows(t *testing.T, d dashboard, chosen [2]string) {
	nr := 0
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			expr := substituted(t, q.Expr, chosen[0], chosen[1])
			nr++
			var vector struct{ Result []sample }
			if err := p.ask("/api/v1/query", url.Values{"query": {expr}}, &vector); err != nil {
				t.Errorf("%q: %s: %v", panel.Title, expr, err)
				continue
			}
			absent := slices.ContainsFunc(quietOnly, func(name string) bool { return strings.Contains(expr, name) })
			if numbers := numbers(vector.Result); (numbers == 0) != absent {
				t.Errorf("%q: %d values of %d: %s", panel.Title, numbers, len(vector.Result), expr)
			}
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if _, is := vector.Result[0].Metric[label[1]]; !is && chosen[1] != "plain" {
					t.Errorf("%q: no label %s", panel.Title, label[1])
				}
			}
		}
	}
	t.Logf("figure: %d queries of %s", nr, d.Title)
}

// showsTheMachine compares single figures with what kep3545-8 is, whose runtime has gone.
func (p prometheus) showsTheMachine(t *testing.T) {
	list := dashboards(t)
	for _, c := range []struct {
		file, title string
		wanted      func(sum float64) bool
	}{
		{"node.json", "Runtime connected", func(sum float64) bool { return sum == 0 }},
		{"node.json", "CPUs now", func(sum float64) bool { return sum == 128 }},
		{"node.json", "CPUs by state", func(sum float64) bool { return sum == 128 }},
		{"node.json", "Cannot be written", func(sum float64) bool { return sum == 0 }},
		{"node.json", "Time the runtime waited", func(sum float64) bool { return sum > 0 }},
		{"node.json", "Fragmentation over time", func(sum float64) bool { return sum >= 0 && sum < 1 }},
		{"node.json", "Free CPUs and the largest container", func(sum float64) bool { return sum > 0 && sum <= 128+16 }},
		{"fleet.json", "Fragmentation over time", func(sum float64) bool { return sum >= 0 && sum < 1 }},
		{"fleet.json", "Nodes", func(sum float64) bool { return sum == 1 }},
		{"fleet.json", "Not connected", func(sum float64) bool { return sum == 1 }},
		{"fleet.json", "Versions", func(sum float64) bool { return sum == 1 }},
		{"fleet.json", "Settings files in force", func(sum float64) bool { return sum == 1 }},
		{"fleet.json", "CPUs by state", func(sum float64) bool { return sum == 128 }},
		{"fleet.json", "Fragmentation", func(sum float64) bool { return sum > 0 && sum < 1 }},
		{"fleet.json", "Refusals in the chosen time", func(sum float64) bool { return sum > 1 && sum < 30 }},
		{"fleet.json", "Requests", func(sum float64) bool { return sum > 0 }},
	} {
		if sum := p.sum(t, list[c.file], c.title); !c.wanted(sum) {
			t.Errorf("%s, %q: %v", c.file, c.title, sum)
		}
	}
}

// sum is that of all values which the first panel of that title has.
func (p prometheus) sum(t *testing.T, d dashboard, title string) (sum float64) {
	t.Helper()
	at := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == title && p.Type != "row" })
	if at < 0 {
		t.Fatalf("there is no panel %q", title)
	}
	for _, q := range d.Panels[at].Targets {
		for _, s := range p.query(substituted(t, q.Expr, "worker-1", "127.*")) {
			value, err := strconv.ParseFloat(s.Value[1].(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			if !math.IsNaN(value) {
				sum += value
			}
		}
	}
	return sum
}

// numbers counts the samples that are no NaN.
func numbers(samples []sample) (nr int) {
	for _, s := range samples {
		if s.Value[1] != "NaN" {
			nr++
		}
	}
	return nr
}

// hasSeriesOfAlerts asks what each alert compares.
func (p prometheus) hasSeriesOfAlerts(t *testing.T) {
	for _, a := range alerts(t) {
		compared := regexp.MustCompile(` (==|>) [0-9]+$`).ReplaceAllString(a.Expr, "")
		if compared == a.Expr {
			t.Errorf("%s compares nothing", a.Alert)
		}
		absent := slices.ContainsFunc(quietOnly, func(name string) bool { return strings.Contains(a.Expr, name) })
		if found := p.query(compared); (len(found) == 0) != absent {
			t.Errorf("%s: %d series of %s", a.Alert, len(found), compared)
		}
		p.query(a.Expr)
	}
}

// alertsFire looks at what Prometheus itself makes of the rules. The runtime is gone, the list of pods is not known.
func (p prometheus) alertsFire(t *testing.T) {
	states := map[string]string{}
	p.eventually("all rules are evaluated", func() bool {
		var rules struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
		if err := p.ask("/api/v1/rules", nil, &rules); err != nil {
			return false
		}
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("%s: %s", r.Name, r.LastError)
				}
				if r.Health != "ok" {
					return false
				}
				states[r.Name] = r.State
			}
		}
		return states["NumafitRefuses"] == "firing" && states["NumafitNotConnected"] == "pending"
	})
	if len(states) != len(alerts(t)) {
		t.Errorf("%d rules", len(states))
	}
	for name, wanted := range map[string]string{"NumafitExtenderNotSynced": "pending", "NumafitDrifts": "inactive",
		"NumafitSettingsRefused": "inactive", "NumafitJournalNotWritten": "inactive", "NumafitSharedPoolFails": "inactive"} {
		if states[name] != wanted {
			t.Errorf("%s is %s", name, states[name])
		}
	}
}
