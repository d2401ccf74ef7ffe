package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
)

// writeFile writes the file of a checkpoint, which says what its record says.
func (r *run) writeFile(ctx context.Context, record memory.Checkpoint) error {
	return r.write(ctx, record.ID+".json", record)
}

// restoreFiles writes the files that are missing, and clears half ones away: a
// crash may have come between a commit and its file, or within the file.
func (r *run) restoreFiles(ctx context.Context) error {
	records, err := r.Store.Checkpoints(ctx, 0)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return memory.Errorf(memory.ErrUnavailable, "look for checkpoint files: %w", err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
		if !strings.HasPrefix(e.Name(), ".") {
			continue
		}
		// Half a file of a run that was killed: only the holder of the lease writes here.
		if err := os.Remove(filepath.Join(r.Dir, e.Name())); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "clear half a checkpoint file: %w", err)
		}
	}
	for _, record := range records {
		if there[record.ID+".json"] {
			continue
		}
		if err := r.writeFile(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

// write writes a value under a name in the directory of checkpoints. A run that
// has lost its lease writes nothing: what it read may have been erased since.
func (r *run) write(ctx context.Context, name string, value any) error {
	ctx, done, err := r.service.opts.Hold.Begin(ctx, r.agent)
	if err != nil {
		return err
	}
	defer done()
	if err := r.Store.Fenced(ctx, r.lease); err != nil {
		return err
	}
	return writeIn(r.Dir, name, value)
}

// writeIn writes a value as JSON under a name in a directory, whole or not at all.
func writeIn(dir, name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "make the directory of checkpoints: %w", err)
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.WithTempDir(dir)); err != nil {
		return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err), "what was distilled is stored; the file is written again at the next checkpoint")
	}
	return nil
}

// keptReply is a model's answer, kept so that a run that crashed before storing
// what it says need not ask again, and so that a person can look at it.
type keptReply struct {
	At      time.Time     `json:"at"`
	Range   memory.Range  `json:"range"`
	Usage   distill.Usage `json:"usage"`
	Problem string        `json:"problem"` // why it could not be used; "" if it could
	Reply   string        `json:"reply"`   // without secrets
}

const maxKept = 1 << 20 // bytes of a reply that are kept

// replyKey names the reply to a batch by everything that the model was told,
// except the time.
func replyKey(b batch) (string, error) {
	told := b.Batch
	told.Now = time.Time{}
	system, user, err := distill.Prompt(told)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(system + "\x00" + user))
	return hex.EncodeToString(sum[:12]), nil
}

func replyName(key string) string { return filepath.Join("replies", key+".json") }

// keptReply returns the usable reply that is kept under key, if one is.
func (r *run) keptReply(key string) (keptReply, bool, error) {
	text, err := os.ReadFile(filepath.Join(r.Dir, replyName(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return keptReply{}, false, nil
	}
	if err != nil {
		return keptReply{}, false, memory.Errorf(memory.ErrUnavailable, "read a kept reply: %w", err)
	}
	var kept keptReply
	if err := json.Unmarshal(text, &kept); err != nil {
		return keptReply{}, false, nil // damaged: as good as none, and written anew
	}
	return kept, kept.Problem == "", nil
}

func (r *run) keepReply(ctx context.Context, key string, b batch, raw []byte, usage distill.Usage, problem error) error {
	kept := keptReply{At: r.service.opts.Now(), Range: b.span, Usage: usage}
	if len(raw) > maxKept {
		raw = raw[:maxKept]
	}
	kept.Reply = r.service.opts.Redact.Text(string(raw))
	if problem != nil {
		kept.Problem = r.service.opts.Redact.Text(problem.Error())
	}
	return r.write(ctx, replyName(key), kept)
}

// CopyReplies copies the kept replies of a model from one directory of checkpoints
// into another, so that a rebuild need not pay for them again.
func CopyReplies(from, to, model string) error {
	entries, err := os.ReadDir(filepath.Join(from, "replies"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "look for kept replies: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, "replies", e.Name()))
		if err != nil {
			return memory.Errorf(memory.ErrUnavailable, "read a kept reply: %w", err)
		}
		var kept keptReply
		if json.Unmarshal(text, &kept) != nil || kept.Usage.Model != model {
			continue // damaged, or of another model
		}
		kept.Usage = distill.Usage{Model: model} // what it cost was paid then
		if err := writeIn(to, filepath.Join("replies", e.Name()), kept); err != nil {
			return err
		}
	}
	return nil
}
