package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/evaluate"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/transcript"
)

// importing is what the command import chat works with.
func (h *house) importing() cli.Importing {
	return cli.Importing{
		Import: h.importAll,
		Discover: func(ctx context.Context) ([]transcript.Found, error) {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, memory.Errorf(memory.ErrUnavailable, "look for histories: %w", err)
			}
			return transcript.Discover(ctx, home, h.getenv)
		},
	}
}

// importChat brings one history into an agent's log, and indexes it.
func (h *house) importChat(ctx context.Context, agent memory.AgentID, file io.Reader) (transcript.Report, error) {
	input := transcript.Input{Open: func() (io.ReadCloser, error) { return io.NopCloser(file), nil }}
	return h.importAll(ctx, agent, []transcript.Input{input}, time.Time{})
}

// importAll brings histories into an agent's log, and indexes them.
func (h *house) importAll(ctx context.Context, agent memory.AgentID, inputs []transcript.Input, since time.Time) (transcript.Report, error) {
	dir, err := h.home.Make(agent)
	if err != nil {
		return transcript.Report{}, err
	}
	ctx, done, err := h.hold(erasure.Import)(ctx, agent)
	if err != nil {
		return transcript.Report{}, err
	}
	defer done()
	sess, err := h.sessions(agent, dir)
	if err != nil {
		return transcript.Report{}, err
	}
	log, release, err := h.logs.write(ctx, agent)
	if err != nil {
		return transcript.Report{}, err
	}
	defer release()
	im := transcript.Importer{Agent: agent, Log: log, Sessions: sess, Redact: lateRedactor{h}, Lock: dir.Path("import.lock"), Since: since}
	rep, err := im.ImportAll(ctx, inputs)
	if err != nil {
		return rep, err
	}
	_, releaseArchive, err := h.followed(ctx, agent)
	if err != nil {
		return rep, err
	}
	releaseArchive()
	return rep, nil
}

// evaluation measures on agents of its own, which are gone afterwards.
func (h *house) evaluation() cli.Evaluation {
	return cli.Evaluation{
		LoCoMo: func(ctx context.Context, file io.Reader, o evaluate.RetrievalOptions) (evaluate.LoCoMoReport, error) {
			o.Now, o.Rerank = h.now, h.rerankerOf(h.cfg.Recall)
			return evaluate.LoCoMo(ctx, file, o)
		},
		LongMemEval: func(ctx context.Context, file io.Reader, o evaluate.RetrievalOptions) (evaluate.LongMemEvalReport, error) {
			o.Now, o.Rerank = h.now, h.rerankerOf(h.cfg.Recall)
			return evaluate.LongMemEval(ctx, file, o)
		},
		Embedder: h.evaluateBy,
		Distil:   h.evaluateDistil,
		Tests:    h.runTests,
	}
}

// evaluateBy returns what makes the vectors of an evaluation: none, lsa, a provider,
// or "" for the configured one.
func (h *house) evaluateBy(name string) (evaluate.Embedder, error) {
	section := h.cfg.Embeddings
	switch name {
	case "":
	case "none":
		return nil, nil
	default:
		section.Provider = name
	}
	switch provider := embedProvider(section, h.getenv); provider {
	case embed.Off:
		return nil, nil
	case embed.LSA:
		return evaluate.LSA, nil
	default:
		client, err := h.makeEmbeddings(section)
		if err != nil {
			return nil, err
		}
		return func(context.Context, iter.Seq2[lsa.Passage, error]) (embed.Embedder, error) {
			return client.For("evaluation"), nil
		}, nil
	}
}

// fresh returns a house of the same configuration over an empty home, and what
// ends it and removes the home.
func (h *house) fresh() (*house, func() error, error) {
	temp, err := os.MkdirTemp("", "openclawssy-evaluate-")
	if err != nil {
		return nil, nil, memory.Errorf(memory.ErrUnavailable, "make a fresh home: %w", err)
	}
	fresh := newHouse(h.now, h.getenv, h.environ)
	fresh.cfg, fresh.opts = h.cfg, h.opts
	end := func() error { return errors.Join(fresh.close(), os.RemoveAll(temp)) }
	if fresh.home, err = agents.NewHome(temp); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return fresh, end, nil
}

// runTests runs memory tests in a fresh home, offline, and with time enough for
// recall: they are about what is recalled, on machines of any speed.
func (h *house) runTests(ctx context.Context, in io.Reader, dir fs.FS) (rep evaluate.TestReport, err error) {
	tests, err := evaluate.ReadTests(in)
	if err != nil {
		return rep, err
	}
	fresh, end, err := h.fresh()
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, end()) }()
	defaults, err := config.Default()
	if err != nil {
		return rep, err
	}
	fresh.cfg.Model, fresh.cfg.Recall.DeadlineMS = defaults.Model, 60_000
	if !tests.Now.IsZero() {
		fresh.now = func() time.Time { return tests.Now }
	}
	return tests.Run(ctx, tested{fresh, fresh.checkpoints(), fresh.makeRecall()}, dir)
}

// tested is a fresh house as memory tests use it.
type tested struct {
	h      *house
	distil *checkpoint.Service
	recall *recall.Service
}

func (t tested) Tell(ctx context.Context, agent memory.AgentID, history io.Reader, distil bool) error {
	report, err := t.h.importChat(ctx, agent, history)
	if err != nil {
		return err
	}
	if report.BadCount > 0 {
		return memory.Errorf(memory.ErrInvalid, "turn %d %s", report.Bad[0].Line, report.Bad[0].Reason)
	}
	if !distil {
		return nil
	}
	_, err = t.distil.Checkpoint(ctx, agent, checkpoint.Request{})
	return err
}

func (t tested) Recall(ctx context.Context, agent memory.AgentID, req recall.Request) recall.Block {
	return t.recall.Block(ctx, agent, req)
}

func (h *house) evaluateDistil(ctx context.Context, conversation, labels io.Reader, near int) (rep evaluate.DistillReport, err error) {
	truth, err := evaluate.ReadDistillLabels(labels)
	if err != nil {
		return rep, err
	}
	fresh, end, err := h.fresh()
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if _, err := fresh.importChat(ctx, memory.DefaultAgent, conversation); err != nil {
		return rep, err
	}
	if _, err := fresh.checkpoints().Checkpoint(ctx, memory.DefaultAgent, checkpoint.Request{}); err != nil {
		return rep, err
	}
	store, release, err := fresh.items.read(ctx, memory.DefaultAgent)
	if err != nil {
		return rep, err
	}
	defer release()
	all := 0
	list, err := store.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		return rep, err
	}
	return evaluate.Distill(truth, list.Items, near), nil
}

// checkpoints makes the checkpoints of all agents.
func (h *house) checkpoints() *checkpoint.Service {
	return checkpoint.NewService(checkpoint.Options{Write: h.checkpointing, Read: h.items.read, Redact: lateRedactor{h}, Now: h.now, NewID: h.newID, Holder: process(), Ended: h.settled,
		Hold: h.hold(erasure.Files)})
}
