package main

import (
	"maps"
	"slices"
	"strings"
)

// shrink leaves out of a question what it can without losing the difference.
func shrink(question []byte, patterns []string, differs func([]byte) bool) []byte {
	for again := true; again; {
		again = false
		for _, pattern := range patterns {
			for skip := 0; ; {
				candidate, ok := without(question, strings.Split(pattern, "."), skip)
				if !ok {
					break
				}
				if differs(candidate) {
					question, again = candidate, true
				} else {
					skip++
				}
			}
		}
	}
	return question
}

// without leaves out the element or member number skip of what the path leads to; false when there
// are not so many.
func without(question []byte, path []string, skip int) ([]byte, bool) {
	v, err := decode(question)
	if err != nil {
		return nil, false
	}
	v, found := cut(v, path, &skip)
	return encode(v), found
}

func cut(v value, path []string, skip *int) (value, bool) {
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if len(path) == 0 {
				if *skip == 0 {
					delete(x, key)
					return x, true
				}
				*skip--
			} else if path[0] == "*" || path[0] == key {
				if rest, found := cut(x[key], path[1:], skip); found {
					x[key] = rest
					return x, true
				}
			}
		}
	case []any:
		if len(path) == 0 {
			if *skip < len(x) {
				return slices.Delete(x, *skip, *skip+1), true
			}
			*skip -= len(x)
			return x, false
		}
		for i := range x {
			if rest, found := cut(x[i], path[1:], skip); found {
				x[i] = rest
				return x, true
			}
		}
	}
	return v, false
}
