package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// value is decoded JSON; numbers stay text, amounts of memory are exact.
type value = any

func decode(text []byte) (v value, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is all ours
	}
	return text
}

// member of an object, nil when there is none.
func member(v value, key string) value {
	m, _ := v.(map[string]any)
	return m[key]
}

// difference tells where two values differ first, "" when they do not.
func difference(path string, want, got value) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(merged(w, g))) {
			wv, in := w[key]
			gv, out := g[key]
			if in != out {
				return missing(path+"."+key, wv, gv, in)
			}
			if d := difference(path+"."+key, wv, gv); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: upstream %s, numafit %s", path, encode(want), encode(got))
}

func missing(path string, want, got value, wanted bool) string {
	if wanted {
		return fmt.Sprintf("%s: upstream %s, numafit has none", path, encode(want))
	}
	return fmt.Sprintf("%s: upstream has none, numafit %s", path, encode(got))
}

func merged(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
