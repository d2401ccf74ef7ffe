//go:build fault && linux

package fault

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
)

// Variables that tell a child its bug, and by how much its clock is wrong.
const (
	bugVar  = "NAIVE_BUG"
	skewVar = "NAIVE_SKEW"
)

func TestMain(m *testing.M) {
	judge.MaybeChild(map[string]judge.Part{"naive": naiveLife})
	os.Exit(m.Run())
}

// TestFaultF0 judges the judge: every seeded bug must be found by the same
// battery of faults in which the memory without one is found right.
func TestFaultF0(t *testing.T) {
	r := Begin(t, "F0")
	rounds := max(12, r.N(24))
	d := NewVolume(t, 64, "commit=600")
	caught, missed := 0, []string{}
	for i, bug := range append([]string{""}, naiveBugs...) {
		dir := filepath.Join(d.Dir, fmt.Sprint("memory-", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syncDir(d.Dir); err != nil {
			t.Fatal(err)
		}
		at, found := battery(t, d, dir, bug, rounds)
		switch {
		case bug == "" && found != nil:
			t.Errorf("round %d of a memory without a bug:\n%s", at, found)
		case bug == "":
			r.Zero("false alarms", len(found))
			r.Count("rounds without a bug", rounds)
		case found != nil:
			caught++
			t.Logf("%s: round %d: %s", bug, at, strings.TrimSpace(found.String()))
		default:
			missed = append(missed, bug)
		}
	}
	r.figure("mutants caught", fmt.Sprintf("%d/%d", caught, len(naiveBugs)), fmt.Sprintf("%d/%d", len(naiveBugs), len(naiveBugs)), len(missed) > 0)
	for _, bug := range missed {
		t.Errorf("not caught: %s", bug)
	}
}

// battery lets a memory live through rounds of faults, and returns the first
// round in which it was found wrong, and how.
func battery(t *testing.T, d *Volume, dir, bug string, rounds int) (int, judge.Findings) {
	truth := &judge.Truth{}
	chance := rand.New(rand.NewPCG(1, 2))
	ack := func(line string) {
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "said":
			truth.Ack(strings.Fields(rest)...)
		case "reached":
			var seq int64
			if _, err := fmt.Sscan(rest, &seq); err != nil {
				t.Fatal(err)
			}
			truth.Reach(seq)
		}
	}
	for round := range rounds {
		skew := time.Duration(0)
		if round%4 == 3 {
			skew = -time.Hour
		}
		var under []string
		kind := round % 3
		if kind == 1 && Lacks(Strace) == "" { // dies before its Nth write, or rename, or fsync
			at := []struct {
				calls string
				most  int
			}{{"write", 150}, {"rename,renameat", 12}, {"fsync", 25}}[round/3%3]
			under = Inject{Calls: at.calls, What: "signal=KILL", When: fmt.Sprint(1 + chance.IntN(at.most))}.Command()
		}
		child := judge.StartChildUnder(t, under, "naive", dir, bugVar+"="+bug, skewVar+"="+skew.String())
		acks := 4 + chance.IntN(16)
		if under != nil {
			acks = math.MaxInt // until it has come to the call that kills it
		}
		for range acks {
			line, more := child.Ack()
			if !more {
				break
			}
			ack(line)
		}
		time.Sleep(time.Duration(chance.IntN(4000)) * time.Microsecond)
		if kind == 2 {
			d.Cut(func() { // it may have ended by the error that it got
				rest, _ := child.End()
				for _, line := range rest {
					ack(line)
				}
			})
		} else {
			for _, line := range child.Kill() {
				ack(line)
			}
		}
		if found := look(t, dir, bug, truth, round == rounds-1); len(found) > 0 {
			return round + 1, found
		}
	}
	return 0, nil
}

// look opens a memory and holds it against the truth; at the end all that is
// pending is distilled first.
func look(t *testing.T, dir, bug string, truth *judge.Truth, atEnd bool) judge.Findings {
	t.Helper()
	m, err := openNaive(dir, bug, time.Now)
	if err != nil {
		return judge.Findings{judge.Damaged: {err.Error()}}
	}
	defer func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}()
	for atEnd {
		seq, err := m.checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		atEnd = seq > 0
	}
	h, err := m.held()
	if err != nil {
		t.Fatal(err)
	}
	return truth.Check(h)
}
