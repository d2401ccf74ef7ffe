package main

import (
	"testing"

	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

func TestVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		outcomes     []fault.Outcome
		good, strict bool
	}{
		"nothing":         {nil, false, false},
		"all passed":      {[]fault.Outcome{fault.Passed, fault.Passed}, true, true},
		"one failed":      {[]fault.Outcome{fault.Passed, fault.Failed}, false, false},
		"one is missing":  {[]fault.Outcome{fault.Passed, fault.Missing}, false, false},
		"one was skipped": {[]fault.Outcome{fault.Passed, fault.Skipped}, true, false},
		"a part skipped":  {[]fault.Outcome{fault.Partly}, true, false},
		"all skipped":     {[]fault.Outcome{fault.Skipped, fault.Skipped}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var table []fault.Result
			for _, o := range tc.outcomes {
				table = append(table, fault.Result{Outcome: o})
			}
			if verdict(table, false) != tc.good || verdict(table, true) != tc.strict {
				t.Errorf("verdict %v, strict %v", verdict(table, false), verdict(table, true))
			}
		})
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != len(fault.Matrix()) {
		t.Errorf("%d rows, %v", len(all), err)
	}
	if _, err := choose("F99"); err == nil {
		t.Error("a row that there is not was found")
	}
	first := fault.Matrix()[0].ID
	if some, err := choose(first); err != nil || len(some) != 1 || some[0].ID != first {
		t.Errorf("%+v, %v", some, err)
	}
}
