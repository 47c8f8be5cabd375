package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// Each alert's life, by promtool: it is quiet, fires once its time is over, and goes.

// life is what its metric does, step by step. From step 11 on a gauge is bad until ten steps after the alert has come,
// and a counter grows: once, or at each step if the alert waits.
type life struct {
	series    string            // without what every series has: labels of the series alone
	good, bad string            // of a gauge
	value     string            // as texts have it
	labels    map[string]string // that the alert takes over from the series, beside node and instance
}

var lives = map[string]life{
	"NumafitNotConnected":              {series: "numafit_nri_connected", good: "1", bad: "0"},
	"NumafitJournalNotWritten":         {series: "numafit_journal_write_errors_total"},
	"NumafitRefuses":                   {series: "numafit_topology_manager_admission_errors_total", value: "3"},
	"NumafitSharedPoolFails":           {series: "numafit_shared_pool_failing", good: "0", bad: "1"},
	"NumafitCFSQuotaFails":             {series: "numafit_cfs_quota_failing", good: "0", bad: "1"},
	"NumafitQuietFails":                {series: "numafit_quiet_failing", good: "0", bad: "1"},
	"NumafitDrifts":                    {series: "numafit_drifts_total", value: "3"},
	"NumafitSettingsRefused":           {series: "numafit_config_last_reload_successful", good: "1", bad: "0"},
	"NumafitSettingsWait":              {series: "numafit_config_waits", good: "0", bad: "1"},
	"NumafitNeedsRestart":              {series: "numafit_config_needs_restart", good: "0", bad: "1"},
	"NumafitCredentialsUnusable":       {series: "numafit_apiserver_credentials_usable", good: "1", bad: "0"},
	"NumafitReportBehind":              {series: "numafit_apiserver_write_behind_seconds", good: "60", bad: "150", value: "2m 30s", labels: map[string]string{"object": "NodeResourceTopology"}},
	"NumafitObservedPlacementFails":    {series: "numafit_observed_placements_total", labels: map[string]string{"result": "failed"}},
	"NumafitClaimsFail":                {series: "numafit_claims_failed_total", value: "3"},
	"NumafitExtenderNotSynced":         {series: "numafit_extender_watch_synced", good: "1", bad: "0", labels: map[string]string{"resource": "pods"}},
	"NumafitExtenderRefusesClients":    {series: "numafit_extender_clients_refused_total"},
	"NumafitExtenderCrowded":           {series: "numafit_extender_requests_crowded_out_total"},
	"NumafitExtenderBindsRefused":      {series: "numafit_extender_binds_total", labels: map[string]string{"result": "refused"}},
	"NumafitExtenderBindsUnsettled":    {series: "numafit_extender_binds_unsettled", good: "0", bad: "3", value: "3"},
	"NumafitExtenderReportsStale":      {series: "numafit_extender_nodes_stale", good: "0", bad: "2", value: "2"},
	"NumafitExtenderObjectsUnreadable": {series: "numafit_extender_objects_unreadable_total", labels: map[string]string{"resource": "noderesourcetopologies"}},
}

const instance = "10.0.0.1:9465"

// step is that of an alert's life: those that wait for hours would take promtool long by the minute.
func step(t *testing.T, a alert) time.Duration {
	if duration(t, a.For) > time.Hour {
		return time.Hour
	}
	return time.Minute
}

// duration of a text as Prometheus writes it.
func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if days, is := strings.CutSuffix(text, "d"); is {
		return 24 * duration(t, days+"h")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var window = regexp.MustCompile(`\[([0-9]+[mh])\]`)

// course is the series' values, and the steps at which the alert comes and goes.
func (l life) course(t *testing.T, a alert) (values string, comes, goes int) {
	t.Helper()
	waits := int(duration(t, a.For) / step(t, a))
	comes = 11 + waits
	if l.bad != "" {
		return fmt.Sprintf("%sx10 %sx%d %sx5", l.good, l.bad, waits+9, l.good), comes, comes + 10
	}
	looksBack := int(duration(t, window.FindStringSubmatch(a.Expr)[1]) / step(t, a))
	if waits == 0 {
		return fmt.Sprintf("0x10 3x%d", looksBack+10), comes, comes + looksBack
	}
	return fmt.Sprintf("0x10 1+1x%d %dx%d", waits+9, waits+10, looksBack+10), comes, comes + 9 + looksBack
}

type expected struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

type asked struct {
	At     string     `json:"eval_time"`
	Alert  string     `json:"alertname"`
	Alerts []expected `json:"exp_alerts"`
}

type played struct {
	Interval string              `json:"interval"`
	Series   []map[string]string `json:"input_series"`
	Asked    []asked             `json:"alert_rule_test"`
}

// expects is the alert as Prometheus sends it, its texts with what the series has in place of templates.
func (l life) expects(a alert, labels map[string]string) expected {
	e := expected{map[string]string{"severity": a.Labels["severity"]}, map[string]string{}}
	who := labels["node"]
	if who == "" {
		who = labels["instance"]
	}
	replace := []string{"{{ or $labels.node $labels.instance }}", who}
	for name, value := range labels {
		e.Labels[name] = value
		replace = append(replace, "{{ $labels."+name+" }}", value)
	}
	for name, text := range a.Annotations {
		text = strings.NewReplacer(replace...).Replace(text)
		if l.value != "" {
			text = regexp.MustCompile(`{{ \$value[^}]*}}`).ReplaceAllString(text, l.value)
		}
		e.Annotations[name] = text
	}
	return e
}

// plays is that alert's life, with the label node or without.
func (l life) plays(t *testing.T, a alert, node string) played {
	t.Helper()
	labels := map[string]string{"instance": instance}
	if node != "" {
		labels["node"] = node
	}
	for name, value := range l.labels {
		labels[name] = value
	}
	var pairs []string
	for name, value := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
	}
	values, comes, goes := l.course(t, a)
	p := played{Interval: step(t, a).String(), Series: []map[string]string{
		{"series": l.series + "{" + strings.Join(pairs, ",") + "}", "values": values}}}
	for _, at := range []int{10, comes - 1, comes, goes - 2, goes} { // Prometheus 3 looks back a sample less
		q := asked{At: (time.Duration(at) * step(t, a)).String(), Alert: a.Alert, Alerts: []expected{}}
		if at >= comes && at < goes {
			q.Alerts = append(q.Alerts, l.expects(a, labels))
		}
		p.Asked = append(p.Asked, q)
	}
	return p
}

// plain is the rule file with its alerts as text, to be changed by a test.
func plain(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(ruleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lived is what promtool says of these rules, each of which is played with the label node and without.
func lived(t *testing.T, rules string, list []alert) (string, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), rules)
	tests := map[string][]played{}
	for _, a := range list {
		for _, node := range []string{"worker-1", ""} {
			p := lives[a.Alert].plays(t, a, node)
			tests[p.Interval] = append(tests[p.Interval], p)
		}
	}
	args := []string{"test", "rules"}
	for interval, of := range tests {
		text, err := yaml.Marshal(map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": interval, "tests": of})
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(dir, interval+".yaml"))
		write(t, args[len(args)-1], string(text))
	}
	return promtool(args...)
}

func TestTheManualsCommandMakesARuleFile(t *testing.T) {
	out, err := promtool("check", "rules", ruleFile(t))
	if err != nil || !strings.Contains(out, fmt.Sprintf("%d rules found", len(alerts(t)))) {
		t.Error(out, err)
	}
	var groups ruleGroups
	if err := yaml.UnmarshalStrict([]byte(plain(t)), &groups); err != nil {
		t.Fatal(err)
	}
}

func TestEachAlertComesAfterItsTimeAndGoes(t *testing.T) {
	list := alerts(t)
	for _, a := range list {
		if lives[a.Alert].series == "" {
			t.Fatalf("there is no life of %s", a.Alert)
		}
	}
	if len(list) != len(lives) {
		t.Errorf("%d alerts, %d lives", len(list), len(lives))
	}
	if out, err := lived(t, plain(t), list); err != nil {
		t.Error(out)
	}
}

func TestAnAlertThatNoMetricMeetsWouldBeFound(t *testing.T) {
	list := alerts(t)
	for _, change := range [][3]string{
		{"NumafitNotConnected", "numafit_nri_connected ==", "numafit_nri_conected =="},
		{"NumafitSettingsWait", "for: 25h", "for: 24h"},
		{"NumafitNeedsRestart", "for: 1d", "for: 25h"},
		{"NumafitExtenderReportsStale", "numafit_extender_nodes_stale > 0", "numafit_extender_nodes_stale > 2"},
		{"NumafitReportBehind", "write_behind_seconds > 60", "write_behind_seconds >= 60"},
		{"NumafitNotConnected", "or $labels.node $labels.instance", "$labels.node"},
	} {
		rules := plain(t)
		of := slices.IndexFunc(list, func(a alert) bool { return a.Alert == change[0] })
		if broken := strings.Replace(rules, change[1], change[2], 1); broken == rules {
			t.Errorf("%s is not there", change[1])
		} else if out, err := lived(t, broken, list[of:of+1]); err == nil {
			t.Errorf("%s: %s", change[2], out)
		}
	}
}

func TestPrometheusParsesEachQueryOfTheDashboards(t *testing.T) {
	type record struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []record
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				rules = append(rules, record{fmt.Sprintf("%s:%d:%s", strings.TrimSuffix(file, ".json"), p.ID, q.RefID),
					substituted(t, q.Expr, ".*", instance)})
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, string(text))
	out, err := promtool("check", "rules", file)
	if err != nil || !strings.Contains(out, fmt.Sprintf("%d rules found", len(rules))) || len(rules) < 60 {
		t.Error(out, err)
	}
	t.Logf("figure: %d queries", len(rules))
}
