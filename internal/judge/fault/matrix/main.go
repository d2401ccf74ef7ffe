// Command matrix runs the fault matrix: `make fault` is it. Every row runs in a
// process of its own; the two lanes run beside each other, and the rows that
// measure time run after them. It prints a table, and leaves matrix.json and the
// log of each row in the folder of results.
//
// The exit status is 1 if a row failed, said nothing, or none was run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// patience is how long a row may take before it counts as hung, on a machine that
// is busy with other things too.
const patience = 30 * time.Minute

func main() {
	rows := flag.String("rows", "", "only these rows, such as F1,F4; all if empty")
	scale := flag.Int("scale", 100, "per cent of the whole work")
	results := flag.String("results", "", "folder for matrix.json and the logs; a new one if empty")
	strict := flag.Bool("strict", false, "fail also where something could not be done for want of root or a tool")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := run(ctx, *rows, *scale, *results, *strict)
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// run runs the rows and reports whether all is well.
func run(ctx context.Context, only string, scale int, dir string, strict bool) (bool, error) {
	chosen, err := choose(only)
	if err != nil {
		return false, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fault-"); err != nil {
			return false, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	began := time.Now()
	binaries, err := build(ctx, chosen, dir)
	if err != nil {
		return false, err
	}
	fmt.Printf("%d rows at %d %% of their scale, built in %s; logs in %s\n", len(chosen), scale, time.Since(began).Round(time.Second), dir)
	began = time.Now()
	var mu sync.Mutex
	done := map[string]fault.Result{}
	lane := func(name fault.Lane) {
		for _, row := range chosen {
			if row.Lane != name || ctx.Err() != nil {
				continue
			}
			res := one(ctx, row, binaries[row.Package], scale, dir)
			mu.Lock()
			done[row.ID] = res
			fmt.Printf("%-4s %-8s %5.0f s, %.0f of a core  %s\n", res.ID, res.Outcome, res.Seconds, res.CPU, res.Line())
			mu.Unlock()
		}
	}
	var lanes sync.WaitGroup
	lanes.Go(func() { lane(fault.CPU) })
	lanes.Go(func() { lane(fault.Disk) })
	lanes.Wait()
	lane(fault.Alone)
	table := []fault.Result{}
	for _, row := range chosen {
		if res, ran := done[row.ID]; ran {
			table = append(table, res)
		}
	}
	show(table, scale, time.Since(began))
	text, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(dir, "matrix.json"), append(text, '\n'), 0o600); err != nil {
		return false, err
	}
	return verdict(table, strict), ctx.Err()
}

// choose returns the rows of these IDs.
func choose(only string) ([]fault.Row, error) {
	all := fault.Matrix()
	if only == "" {
		return all, nil
	}
	var out []fault.Row
	for id := range strings.SplitSeq(only, ",") {
		at := slices.IndexFunc(all, func(r fault.Row) bool { return r.ID == strings.TrimSpace(id) })
		if at < 0 {
			return nil, fmt.Errorf("there is no row %q", id)
		}
		out = append(out, all[at])
	}
	return out, nil
}

// build builds the test binary of each package that has a row.
func build(ctx context.Context, rows []fault.Row, dir string) (map[string]string, error) {
	out := map[string]string{}
	for _, row := range rows {
		if out[row.Package] != "" {
			continue
		}
		binary := filepath.Join(dir, strings.ReplaceAll(row.Package, "/", "-")+".test")
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags=sqlite_fts5,fault", "-o", binary, "./"+row.Package)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w", row.Package, err)
		}
		out[row.Package] = binary
	}
	return out, nil
}

// one runs one row, and says what it left.
func one(ctx context.Context, row fault.Row, binary string, scale int, dir string) fault.Result {
	began := time.Now()
	missing := fault.Result{Row: row, Outcome: fault.Missing, Scale: scale, Figures: []fault.Figure{}}
	left := filepath.Join(dir, row.ID+".json")
	if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
		missing.Without = []string{err.Error()}
		return missing
	}
	logged, err := os.Create(filepath.Join(dir, row.ID+".log"))
	if err != nil {
		missing.Without = []string{err.Error()}
		return missing
	}
	cmd := exec.CommandContext(ctx, binary, "-test.run=^TestFault"+row.ID+"$", "-test.v", "-test.timeout="+patience.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = filepath.FromSlash(row.Package)
	cmd.Env = append(os.Environ(), fault.ScaleVar+"="+fmt.Sprint(scale), fault.ResultsVar+"="+dir)
	cmd.Stdout, cmd.Stderr = logged, logged
	runErr := cmd.Run()
	if err := logged.Close(); err != nil {
		runErr = errors.Join(runErr, err)
	}
	missing.Seconds = time.Since(began).Seconds()
	var res fault.Result
	text, err := os.ReadFile(left)
	if err == nil {
		err = json.Unmarshal(text, &res)
	}
	if err != nil {
		missing.Without = []string{fmt.Sprintf("it left no result (%v); see %s", runErr, logged.Name())}
		return missing
	}
	res.Row = row
	res.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	// What fails after the row has told its result fails it all the same.
	if runErr != nil && res.Outcome != fault.Failed {
		res.Outcome = fault.Failed
		res.Without = append(res.Without, fmt.Sprintf("its process ended with %v", runErr))
	}
	return res
}

// show prints the table.
func show(table []fault.Result, scale int, took time.Duration) {
	fmt.Printf("\n| # | Fault | Outcome | Figures | s | of a core |\n|---|---|---|---|---|---|\n")
	for _, r := range table {
		fmt.Printf("| %s | %s | %s | %s | %.0f | %.0f |\n", r.ID, r.Title, r.Outcome, strings.ReplaceAll(r.Line(), "|", "\\|"), r.Seconds, r.CPU)
	}
	fmt.Printf("\n%s, at %d %% of the scale, in %s\n", tally(table), scale, took.Round(time.Second))
}

// tally counts outcomes in words.
func tally(table []fault.Result) string {
	if len(table) == 0 {
		return "nothing was run"
	}
	var parts []string
	for _, o := range []fault.Outcome{fault.Passed, fault.Partly, fault.Skipped, fault.Failed, fault.Missing} {
		n := 0
		for _, r := range table {
			if r.Outcome == o {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, ", ")
}

// verdict reports whether all that could be run is well, and something was.
func verdict(table []fault.Result, strict bool) bool {
	ran := 0
	for _, r := range table {
		switch r.Outcome {
		case fault.Failed, fault.Missing:
			return false
		case fault.Partly, fault.Skipped:
			if strict {
				return false
			}
		}
		if r.Outcome != fault.Skipped {
			ran++
		}
	}
	return ran > 0
}
