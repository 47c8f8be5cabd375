package interop

import (
	"fmt"
	"maps"
	"os"
)

// The settings file: what a running daemon takes, what waits for a restart, and what is wrong.

// reloadable are values for settings that a running daemon takes; "" is the default. Not every
// combination is valid: some are refused, as they should be.
var reloadable = map[string][]string{
	"onAdopt":                   {"", "place", "place", "leave"},
	"topologyManagerPolicy":     {"", "none", "best-effort", "restricted", "single-numa-node"},
	"topologyManagerScope":      {"", "container", "pod"},
	"cpuManagerPolicy":          {"", "static", "static", "static", "none"},
	"memoryManagerPolicy":       {"", "Static", "None"},
	"mergeVisitBudget":          {"", "1", "1000", "1000000"},
	"sharedPoolStep":            {"", "1", "4", "64"},
	"sharedPoolMinimum":         {"", "1", "8", "30"},
	"journalMaxBytes":           {"", "64Ki", "128Ki"},
	"journalGroup":              {"", "0"},
	"logLevel":                  {"", "debug", "warn"},
	"logFormat":                 {"", "text", "journal"},
	"refusalAction":             {"", "error"},
	"observedPlacement":         {"", `"off"`},
	"schedulerHint.mode":        {"", "off", "require"},
	"defragment.mode":           {"", "off", "auto"},
	"defragment.movable":        {"", "all"},
	"schedulerHint.repair":      {"", "false"},
	"schedulerHint.podPolicy":   {"", "true"},
	"schedulerHint.clockSkew":   {"", "0s", "1h"},
	"schedulerHint.order":       {"", "volcano,numafit", "godel"},
	"devicePlugin.reclaimAfter": {"", "1s", "1h"},
	"deviceClaims.wait":         {"", "200ms"},
	"topologyManagerPolicyOptions.prefer-closest-numa-nodes":   {"", `"true"`, `"false"`},
	"topologyManagerPolicyOptions.numa-allocation-strategy":    {"", "", "most-allocated", "least-allocated"},
	"cpuManagerPolicyOptions.align-by-socket":                  {"", "", `"true"`},
	"cpuManagerPolicyOptions.distribute-cpus-across-cores":     {"", "", `"true"`},
	"cpuManagerPolicyOptions.distribute-cpus-across-numa":      {"", "", `"true"`},
	"cpuManagerPolicyOptions.full-pcpus-only":                  {"", "", `"true"`},
	"cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache": {"", "", `"true"`},
	"cpuManagerPolicyOptions.strict-cpu-reservation":           {"", `"true"`},
	"featureGates.TopologyManagerPolicyAlphaOptions":           {"", "true", "true"},
	"featureGates.CPUManagerPolicyAlphaOptions":                {"", "true", "true"},
}

// atRestart are values for settings that count from the next start on.
var atRestart = map[string][]string{
	"reservedSystemCPUs": {`"0,64"`, `"0,64"`, `"0-1,64-65"`, `"8,72"`, `"0,64,120-127"`},
	"nri.failurePolicy":  {"", "drop-and-proceed", "drop-and-fail", "keep-and-proceed", "keep-and-fail"},
	"nri.pluginIndex":    {"", `"07"`, `"99"`},
}

// wrong is what no settings file may say.
var wrong = []string{
	"topologyManagerPolicy: restrictive\n", "mode: [manage\n", "onAdopt: place\nonAdopt: leave\n",
	"nosuchkey: 1\n", "sharedPoolMinimum: -1\n", "reservedSystemCPUs: \"0-127\"\n", "a: &a 1\n", "\x00\xff\n",
	"featureGates:\n  CPUManagerPolicyOptions: false\n", "journalMaxBytes: 1\n", "schedulerHint:\n  order: nobody\n",
}

// vary gives some of the settings other values.
func (s *soak) vary(settings map[string]string, table map[string][]string) {
	keys := sortedKeys(table)
	for range 1 + s.IntN(4) {
		key := keys[s.IntN(len(keys))]
		values := table[key]
		if s.without(key) {
			continue
		}
		if value := values[s.IntN(len(values))]; value != "" {
			settings[key] = value
		} else {
			delete(settings, key)
		}
	}
}

// isValid asks numafitd itself.
func (d *daemon) isValid(text string) bool {
	d.must(os.WriteFile(d.path("checked.yaml"), []byte(text), 0o600))
	return d.command("--check-config", "--config", d.path("checked.yaml")).Run() == nil
}

// put writes the file and waits until it is in force, or refused.
func (d *daemon) put(text string) (refused string) {
	if old, _ := os.ReadFile(d.path("numafitd.yaml")); string(old) == text {
		return ""
	}
	before, err := d.ask()
	d.report.note(fmt.Sprintf("settings: %q", text))
	d.writeConfig(text)
	if err != nil || !d.inChain() {
		return ""
	}
	d.await("the changed settings are neither in force nor refused", func(s *nodeStatus) string {
		refused = s.Config.Refused
		d.o.learn(s)
		if s.Config.Reloads+s.Config.Refusals == before.Config.Reloads+before.Config.Refusals {
			return "no reload"
		}
		return ""
	})
	return refused
}

func (s *soak) reload() {
	s.report.count("reload")
	next := maps.Clone(s.d.config)
	s.vary(next, reloadable)
	if text := yaml(next); s.d.isValid(text) {
		s.d.config = next
		if s.d.put(text) != "" { // beside what runs
			s.report.count("reload of valid settings refused")
		}
		return
	}
	s.report.count("reload of an impossible combination")
	s.reloadWrong(yaml(next))
}

func (s *soak) reloadBroken() {
	s.report.count("reload")
	s.reloadWrong(wrong[s.IntN(len(wrong))])
}

// reloadWrong changes nothing, whatever happens until somebody rewrites the file.
func (s *soak) reloadWrong(text string) {
	life := s.d.life
	if refused := s.d.put(text); refused == "" && s.d.inChain() && !s.d.isEnding() {
		s.violated("these settings are wrong, and are not refused: %q", text)
	}
	for range s.IntN(3) {
		s.churn()
	}
	if s.d.life == life {
		s.d.put(yaml(s.d.config))
	} else {
		s.d.writeConfig(yaml(s.d.config))
	}
}

// changeForRestart is done while numafitd is away.
func (s *soak) changeForRestart() {
	next := maps.Clone(s.d.config)
	s.vary(next, atRestart)
	if s.chance(2) {
		s.vary(next, reloadable)
	}
	if text := yaml(next); s.d.isValid(text) {
		s.report.count("settings changed while away")
		s.report.note(fmt.Sprintf("settings: %q", text))
		s.d.config = next
		s.d.writeConfig(text)
	}
}
