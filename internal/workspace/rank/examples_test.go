package rank_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
	"github.com/openclawssy/openclawssy/internal/workspace/rank"
)

// examplesVariable names a file of worked examples, in the form of testdata/examples.json.
const examplesVariable = "OPENCLAWSSY_SEARCH_EXAMPLES"

type examples struct {
	RankToScore [][3]float64 `json:"rank_to_score"`
	Fusion      []struct {
		V         float64
		Rank      *float64
		Wv, Wt    float64
		TextSeed  float64 `json:"text_seed"`
		TextNow   float64 `json:"text_now"`
		ScoreSeed float64 `json:"score_seed"`
		ScoreNow  float64 `json:"score_now"`
	}
	Decay []struct {
		Path, Source string
		Score        float64
		Half         float64
		Age          *float64
		Result       float64
	}
	MMR []struct {
		Case  string
		Lam   float64
		Items [][3]any
		Order [][2]any
	} `json:"mmr"`
	Chunk []struct {
		Tokens, Overlap int
		Variant         string
		Chunks          [][4]any
		Input           string
	}
}

// infinite stands for Infinity, which JSON lacks.
const infinite = 1e300

func readExamples(t *testing.T, file string) examples {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var x examples
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "Infinity", fmt.Sprint(infinite))), &x); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return x
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

// TestExamples works examples out: our own, and those of a file that the
// environment names.
func TestExamples(t *testing.T) {
	files := []string{"testdata/examples.json"}
	if file := os.Getenv(examplesVariable); file != "" {
		files = append(files, file)
	}
	for _, file := range files {
		x := readExamples(t, file)
		if len(x.RankToScore) == 0 || len(x.Fusion) == 0 || len(x.Decay) == 0 || len(x.MMR) == 0 || len(x.Chunk) == 0 {
			t.Fatalf("%s lacks some kind of example", file)
		}
		t.Run("text score", x.textScore)
		t.Run("fusion", x.fusion)
		t.Run("decay", x.decay)
		t.Run("mmr", x.mmr)
		t.Run("chunk", x.chunk)
	}
}

func (x examples) textScore(t *testing.T) {
	for _, e := range x.RankToScore {
		r := e[0]
		if r == infinite {
			r = math.Inf(1)
		}
		if seed, later := rank.Seed.TextScore(r), rank.Later.TextScore(r); !near(seed, e[1]) || !near(later, e[2]) {
			t.Errorf("rank %v: %v and %v, want %v and %v", r, seed, later, e[1], e[2])
		}
	}
}

func (x examples) fusion(t *testing.T) {
	for i, e := range x.Fusion {
		for _, era := range []rank.Era{rank.Seed, rank.Later} {
			var words []rank.Hit
			if e.Rank != nil {
				words = []rank.Hit{{ID: "x", Text: era.TextScore(*e.Rank)}}
			}
			got := rank.Fuse([]rank.Hit{{ID: "x", Vector: e.V}}, words, rank.Weights{Vector: e.Wv, Text: e.Wt})
			wantText, wantScore := e.TextNow, e.ScoreNow
			if era == rank.Seed {
				wantText, wantScore = e.TextSeed, e.ScoreSeed
			}
			if len(got) != 1 || !near(got[0].Text, wantText) || !near(got[0].Score, wantScore) {
				t.Errorf("%d, %s: %+v, want text %v and score %v", i+1, era, got, wantText, wantScore)
			}
		}
	}
}

func (x examples) decay(t *testing.T) {
	now := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	for _, e := range x.Decay {
		var changed time.Time
		if e.Age != nil {
			changed = now.Add(-time.Duration(*e.Age * 24 * float64(time.Hour)))
		}
		got := e.Score * rank.Later.Decay(e.Path, e.Source, changed, now, int(e.Half))
		if !near(got, e.Result) {
			t.Errorf("%s: %v, want %v", e.Path, got, e.Result)
		}
	}
}

func (x examples) mmr(t *testing.T) {
	for _, e := range x.MMR {
		var scores []float64
		var texts []string
		for _, item := range e.Items {
			scores, texts = append(scores, item[1].(float64)), append(texts, item[2].(string))
		}
		for i, pick := range rank.Later.MMR(scores, texts, e.Lam) {
			name, want := e.Items[pick.Index][0], e.Order[i]
			if value, known := want[1].(float64); name != want[0] || known && !near(pick.Value, value) {
				t.Errorf("%s: place %d is %v (%v), want %v", e.Case, i+1, name, pick.Value, want)
			}
		}
	}
}

func (x examples) chunk(t *testing.T) {
	for _, e := range x.Chunk {
		variant, err := chunk.ParseVariant(e.Variant)
		if err != nil {
			t.Fatal(err)
		}
		text := e.Input
		if text == "T" { // twelve lines of 28 characters
			var lines []string
			for i := 1; i <= 12; i++ {
				lines = append(lines, fmt.Sprintf("line %02d %s", i, strings.Repeat("x", 20)))
			}
			text = strings.Join(lines, "\n")
		}
		got := [][4]any{}
		for _, c := range chunk.Split(text, chunk.Options{Tokens: e.Tokens, Overlap: e.Overlap, Variant: variant}) {
			got = append(got, [4]any{float64(c.StartLine), float64(c.EndLine), float64(len([]rune(c.Text))), c.Hash()[:12]})
		}
		if fmt.Sprint(got) != fmt.Sprint(e.Chunks) {
			t.Errorf("%d/%d %s:\ngot  %v\nwant %v", e.Tokens, e.Overlap, e.Variant, got, e.Chunks)
		}
	}
}
