// Prometheus' own parser and linter against what a real numafitd serves.
package interop

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var served = regexp.MustCompile(`event=metrics-served .*port=([0-9]+)`)

// serve starts numafitd and says where its metrics are.
func serve(t *testing.T, settings ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "numafit-metrics") // a short path: a socket's has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "config.yaml") // what tells of reloads needs a file
	if err := os.WriteFile(config, []byte("logLevel: info\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config", config, "--set", "machine=" + os.Getenv("MACHINE"), "--set", "runDirectory=" + filepath.Join(dir, "run"),
		"--set", "nri.socketPath=" + filepath.Join(dir, "nri.sock"), "--set", "metrics.address=127.0.0.1:0"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	command := exec.Command(os.Getenv("NUMAFITD"), args...)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if found := served.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return "http://127.0.0.1:" + found[1]
		}
	}
	t.Fatal("numafitd has ended")
	return ""
}

func get(t *testing.T, url string) ([]byte, http.Header) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err)
	}
	return body, answer.Header
}

var modes = [][]string{{"mode=manage"}, {"mode=shadow"}, {"mode=off"}, {"devicePlugin.enabled=true"}}

func TestParserReadsEveryFamily(t *testing.T) {
	for _, settings := range modes {
		t.Run(strings.Join(settings, ","), func(t *testing.T) {
			body, header := get(t, serve(t, settings...)+"/metrics")
			if format := expfmt.ResponseFormat(header); format.FormatType() != expfmt.TypeTextPlain {
				t.Error(header)
			}
			parser := expfmt.NewTextParser(model.LegacyValidation)
			families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if told := bytes.Count(body, []byte("# TYPE ")); len(families) != told || told < 20 {
				t.Errorf("%d families of %d", len(families), told)
			}
			for name, family := range families {
				if family.GetHelp() == "" || family.GetType() == dto.MetricType_UNTYPED {
					t.Error(name)
				}
				for _, metric := range family.GetMetric() {
					checkHistogram(t, name, metric.GetHistogram())
				}
			}
		})
	}
}

func checkHistogram(t *testing.T, name string, h *dto.Histogram) {
	if h == nil {
		return
	}
	buckets := h.GetBucket()
	for i := range buckets[1:] {
		if buckets[i].GetUpperBound() >= buckets[i+1].GetUpperBound() ||
			buckets[i].GetCumulativeCount() > buckets[i+1].GetCumulativeCount() {
			t.Error(name, buckets[i], buckets[i+1])
		}
	}
	if buckets[len(buckets)-1].GetCumulativeCount() != h.GetSampleCount() {
		t.Error(name, h)
	}
}

func TestLinterHasNothingToSay(t *testing.T) {
	for _, settings := range modes {
		t.Run(strings.Join(settings, ","), func(t *testing.T) {
			body, _ := get(t, serve(t, settings...)+"/metrics")
			problems, err := promlint.New(bytes.NewReader(body)).Lint()
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range problems {
				t.Error(problem.Metric, problem.Text)
			}
		})
	}
}

func TestLinterWouldSaySomething(t *testing.T) {
	problems, err := promlint.New(strings.NewReader("# HELP a_ms a\n# TYPE a_ms counter\na_ms 1\n")).Lint()
	if err != nil || len(problems) == 0 {
		t.Fatal(problems, err)
	}
}
