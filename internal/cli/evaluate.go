package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/evaluate"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Evaluation measures on files.
type Evaluation struct {
	LoCoMo      func(ctx context.Context, file io.Reader, opts evaluate.RetrievalOptions) (evaluate.LoCoMoReport, error)
	LongMemEval func(ctx context.Context, file io.Reader, opts evaluate.RetrievalOptions) (evaluate.LongMemEvalReport, error)
	// Embedder is what makes vectors, by the name that --embedder takes; nil for words
	// alone.
	Embedder func(name string) (evaluate.Embedder, error)
	// Tests runs memory tests; the files that they name are in dir.
	Tests func(ctx context.Context, tests io.Reader, dir fs.FS) (evaluate.TestReport, error)
	// Distil imports a conversation into a fresh agent, checkpoints it and scores
	// the items. near is how many lines an item's evidence may be off.
	Distil func(ctx context.Context, conversation, labels io.Reader, near int) (evaluate.DistillReport, error)
}

// EvaluateTests runs memory tests.
func EvaluateTests(e Evaluation) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "evaluate/tests FILE", Short: "Run memory tests: what must and must not be recalled; status 1 if one fails", Args: cobra.ExactArgs(1),
			Long: "Tell fresh agents what the file says, and check what they recall. Nothing of your own memory is touched, and no model is asked:\n" +
				"turns are distilled by rules. docs/TESTING.md describes the file.",
			Example: "  openclawssy evaluate tests testdata/memory-tests.yaml\n  openclawssy evaluate tests ci/memory.yaml --json",
			RunE: func(c *cobra.Command, args []string) error {
				return measure(c, r, args[0], func(ctx context.Context, in io.Reader) (any, error) {
					rep, err := e.Tests(ctx, in, os.DirFS(filepath.Dir(args[0])))
					return testsView{rep}, err
				})
			},
		}
	}
}

// testsView shows a report of memory tests: a line a test, and what is wrong.
type testsView struct{ evaluate.TestReport }

func (v testsView) Text() string {
	var sb strings.Builder
	for _, t := range v.Tests {
		if t.Passed {
			fmt.Fprintf(&sb, "ok    %s\n", clean(t.Name))
			continue
		}
		fmt.Fprintf(&sb, "FAIL  %s (agent %s)\n", clean(t.Name), t.Agent)
		for _, why := range t.Why {
			fmt.Fprintf(&sb, "      %s\n", clean(why))
		}
		for _, line := range strings.Split(t.Block, "\n") {
			if line != "" {
				fmt.Fprintf(&sb, "      | %s\n", clean(line))
			}
		}
	}
	fmt.Fprintf(&sb, "%d of %d memory tests passed\n", v.Passed, v.Passed+v.Wrong)
	return sb.String()
}

// EvaluateLoCoMo measures retrieval on a LoCoMo file.
func EvaluateLoCoMo(e Evaluation) Command {
	return func(r *Runner) *cobra.Command {
		var control bool
		var hops int
		var embedders []string
		c := &cobra.Command{
			Use: "evaluate/locomo FILE", Short: "Measure recall on a file of the LoCoMo benchmark", Args: cobra.ExactArgs(1),
			Long: "Put each conversation into a fresh agent and each question through recall. Figures are counted over passages, without abstention and deadline;\n" +
				"as_shipped is an installation as it comes. --control gives each question the evidence of another: what chance reaches.\n" + embedderHelp,
			Example: "  openclawssy evaluate locomo locomo10.json\n  openclawssy evaluate locomo locomo10.json --embedder none,lsa\n  openclawssy evaluate locomo locomo10.json --control --json",
			RunE: func(c *cobra.Command, args []string) error {
				return compare(c, r, e, args[0], embedders, func(ctx context.Context, in io.Reader, by evaluate.Embedder) (any, error) {
					opts := retrievalOptions(ctx, control)
					opts.Hops, opts.Embedder = hops, by
					rep, err := e.LoCoMo(ctx, in, opts)
					return locomoView{rep}, err
				})
			},
		}
		embedderFlag(c, &embedders)
		c.Flags().BoolVar(&control, "control", false, "score against the evidence of other questions of the same conversation")
		c.Flags().IntVar(&hops, "hops", 0, "0 to 2: steps in the graph that recall may take as it is shipped")
		return c
	}
}

// EvaluateLongMemEval measures retrieval on a LongMemEval file.
func EvaluateLongMemEval(e Evaluation) Command {
	return func(r *Runner) *cobra.Command {
		var control bool
		var embedders []string
		c := &cobra.Command{
			Use: "evaluate/longmemeval FILE", Short: "Measure recall on a file of the LongMemEval benchmark", Args: cobra.ExactArgs(1),
			Long:    "Put each haystack into a fresh agent and each question through recall; sessions are ranked by their best passages.\n" + embedderHelp,
			Example: "  openclawssy evaluate longmemeval longmemeval_s.json --json",
			RunE: func(c *cobra.Command, args []string) error {
				return compare(c, r, e, args[0], embedders, func(ctx context.Context, in io.Reader, by evaluate.Embedder) (any, error) {
					opts := retrievalOptions(ctx, control)
					opts.Embedder = by
					return e.LongMemEval(ctx, in, opts)
				})
			},
		}
		embedderFlag(c, &embedders)
		c.Flags().BoolVar(&control, "control", false, "score against the evidence of other questions")
		return c
	}
}

// EvaluateDistill scores what a checkpoint makes of a labelled conversation.
func EvaluateDistill(e Evaluation) Command {
	return func(r *Runner) *cobra.Command {
		near := 1
		c := &cobra.Command{
			Use: "evaluate/distill FILE LABELS", Short: "Score the items that a checkpoint makes of a labelled conversation", Args: cobra.ExactArgs(2),
			Long:    "Import the conversation into a fresh agent, run a checkpoint with the configured distiller, and score the store against the labels.",
			Example: "  openclawssy evaluate distill talk.jsonl talk.labels.json --json",
			RunE: func(c *cobra.Command, args []string) error {
				labels, closeLabels, err := r.Open(args[1])
				if err != nil {
					return err
				}
				err = measure(c, r, args[0], func(ctx context.Context, in io.Reader) (any, error) {
					return e.Distil(ctx, in, labels, near)
				})
				return errors.Join(err, closeLabels())
			},
		}
		c.Flags().IntVar(&near, "near", near, "lines that an item's evidence may be off its label")
		return c
	}
}

const embedderHelp = "--embedder names what makes the vectors that questions are held against beside their words: none, lsa (built in, trained on the\n" +
	"conversation itself), or a provider with the key, model and address that embeddings has in the configuration. Several are measured one by one."

func embedderFlag(c *cobra.Command, names *[]string) {
	c.Flags().StringSliceVar(names, "embedder", nil, "none, lsa or a provider, or several of them; the configured one if absent")
}

// compare measures once for each embedder. With one, the report is printed as it is.
func compare(c *cobra.Command, r *Runner, e Evaluation, file string, names []string, run func(context.Context, io.Reader, evaluate.Embedder) (any, error)) error {
	if len(names) == 0 {
		names = []string{""}
	}
	by := make([]evaluate.Embedder, len(names))
	for i, name := range names {
		var err error
		if by[i], err = e.Embedder(name); err != nil {
			return err
		}
	}
	return measure(c, r, file, func(ctx context.Context, in io.Reader) (any, error) {
		if len(names) == 1 {
			return run(ctx, in, by[0])
		}
		all, err := io.ReadAll(in) // it is read once for each
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		var out comparison
		for i, name := range names {
			rep, err := run(ctx, bytes.NewReader(all), by[i])
			if err != nil {
				return nil, fmt.Errorf("embedder %s: %w", name, err)
			}
			out.Runs = append(out.Runs, embedderRun{name, rep})
		}
		return out, nil
	})
}

// comparison is the same evaluation with several embedders.
type comparison struct {
	Runs []embedderRun `json:"runs"`
}

type embedderRun struct {
	Embedder string `json:"embedder"`
	Report   any    `json:"report"`
}

// Text shows the reports one below the other.
func (c comparison) Text() string {
	var sb strings.Builder
	for i, run := range c.Runs {
		if i > 0 {
			sb.WriteString("\n")
		}
		fmt.Fprintf(&sb, "embedder %s\n", run.Embedder)
		if t, isText := run.Report.(interface{ Text() string }); isText {
			sb.WriteString(t.Text())
		} else if rep, isSessions := run.Report.(evaluate.LongMemEvalReport); isSessions {
			m := rep.Overall
			fmt.Fprintf(&sb, "%d questions, session hit@1 %.3f, hit@5 %.3f, hit@10 %.3f, mrr %.3f, p50 %.1f ms\n", m.Questions, m.SessionHitAt1, m.SessionHitAt5, m.SessionHitAt10, m.SessionMRR, m.LatencyP50MS)
		}
	}
	return sb.String()
}

// measure runs an evaluation of a file with progress and prints its report.
func measure(c *cobra.Command, r *Runner, file string, run func(context.Context, io.Reader) (any, error)) error {
	in, closeIn, err := r.Open(file)
	if err != nil {
		return err
	}
	ctx, done := r.withProgress(c.Context(), c.Name())
	out, err := run(ctx, in)
	done()
	if err := errors.Join(err, closeIn()); err != nil {
		return err
	}
	return r.Print(out)
}

func retrievalOptions(ctx context.Context, control bool) evaluate.RetrievalOptions {
	return evaluate.RetrievalOptions{Control: control, Done: func(done, all int) {
		op.Report(ctx, op.Progress{Done: int64(done), Total: int64(all), Unit: "conversations"})
	}}
}

// locomoView shows a report as a table.
type locomoView struct{ evaluate.LoCoMoReport }

func (v locomoView) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%-16s %9s %6s %6s %6s %6s %6s %7s %7s %7s %7s %6s\n", "", "questions", "r@5", "r@10", "r@20", "hit@10", "mrr", "r1200t", "r2400t", "sess@1", "sess@5", "smrr")
	row := func(name string, m evaluate.Metrics) {
		fmt.Fprintf(&sb, "%-16s %9d %6.3f %6.3f %6.3f %6.3f %6.3f %7.3f %7.3f %7.3f %7.3f %6.3f\n", name, m.Questions, m.RecallAt5, m.RecallAt10, m.RecallAt20,
			m.HitAt10, m.MRR, m.RecallAt1200Tokens, m.RecallAt2400Tokens, m.SessionHitAt1, m.SessionHitAt5, m.SessionMRR)
	}
	row("categories 1-4", v.Categories1To4)
	for _, c := range []string{"1", "2", "3", "4", "5"} {
		if m, has := v.ByCategory[c]; has {
			row("category "+c, m)
		}
	}
	row("all", v.Overall)
	fmt.Fprintf(&sb, "latency of a block: p50 %.1f ms, p95 %.1f ms\n", v.Categories1To4.LatencyP50MS, v.Categories1To4.LatencyP95MS)
	if s := v.AsShipped; s != nil {
		fmt.Fprintf(&sb, "as shipped: %.3f of the evidence in the block, %.3f of blocks empty, %.3f for questions of other conversations, %.0f tokens; %d of %s took longer than the 50 ms that a turn waits\n",
			s.RecallInBlock, s.Abstained, s.Foreign, s.Tokens, s.Late, memory.Count(s.Questions, "block", "blocks"))
	}
	return sb.String()
}
