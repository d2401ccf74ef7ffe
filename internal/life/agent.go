package life

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strconv"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// AgentMemory is what one of this program's own agents remembers.
type AgentMemory struct {
	ID       uuid.UUID // the agent's in its archives
	Name     memory.AgentID
	Items    []memory.Item
	Episodes iter.Seq2[memory.Episode, error]
}

// ExportAgent writes an agent's own memory: its items (not those that are
// forgotten or wait for approval), and the passages of its conversations, each
// as a record. What the format has no member for stands in raw_source_format.
func ExportAgent(ctx context.Context, a AgentMemory, o ExportOptions) (x Exported, err error) {
	x.Notices = []workspace.Notice{}
	last := o.Keep.last(a.ID, func(reason string) { x.Notices = append(x.Notices, workspace.Notice{Reason: reason}) })
	if last != nil {
		defer last.Close()
	}
	e := exporting{ExportOptions: o, past: &past{}}
	if last != nil {
		e.past.checksum, e.past.createdAt = last.Manifest().Checksum, last.Manifest().CreatedAt
	}
	x.Size, err = alf.WriteFile(o.Output, func(out io.Writer) (err error) {
		w := alf.NewWriter(out, o.TempDir)
		defer func() { err = errors.Join(err, w.Close()) }()
		for _, it := range a.Items {
			if it.Status == memory.Forgotten || it.Status == memory.Quarantined {
				continue
			}
			r, err := itemRecord(a.ID, it)
			if err != nil {
				return err
			}
			if err := w.Record(r); err != nil {
				return err
			}
		}
		for episode, err := range a.Episodes {
			if err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := episodeRecord(a.ID, episode)
			if err != nil {
				return err
			}
			if err := w.Record(r); err != nil {
				return err
			}
		}
		m := alf.Manifest{Agent: alf.Agent{ID: a.ID, Name: string(a.Name), SourceRuntime: openclawssy}, RawSources: alf.List[string]{}}
		x.Manifest, err = w.Finish(m, alf.Form{CreatedAt: e.createdAt})
		return err
	})
	if err != nil {
		return Exported{}, err
	}
	if err := o.Keep.keep(a.ID, "", o.Output); err != nil {
		x.Notices = append(x.Notices, workspace.Notice{Reason: err.Error()})
	}
	return x, nil
}

// itemTypes are the memory types of kinds; others are semantic.
var itemTypes = map[string]string{
	memory.KindPreference: alf.Preference, memory.KindEvent: alf.Episodic, memory.KindPolicy: alf.Procedural, memory.KindLesson: alf.Procedural, memory.KindReminder: alf.Episodic,
}

var itemStatuses = map[memory.Status]string{memory.Active: alf.Active, memory.Superseded: alf.Superseded, memory.Archived: alf.Archived}

func itemRecord(agent uuid.UUID, it memory.Item) (*alf.Record, error) {
	raw, err := json.Marshal(struct {
		Handle     string            `json:"handle"`
		Kind       string            `json:"kind"`
		Title      string            `json:"title"`
		Importance int               `json:"importance"`
		Trust      memory.Trust      `json:"trust"`
		Version    int               `json:"version"`
		Evidence   []memory.Evidence `json:"evidence"`
	}{it.Handle, it.Kind, it.Title, it.Importance, it.Trust, it.Version, it.Evidence})
	if err != nil {
		return nil, memory.Errorf(memory.ErrInternal, "encode %s: %w", it.Handle, err)
	}
	r := &alf.Record{ID: ownID(agent, it.ID), AgentID: agent, Content: it.Content, MemoryType: itemTypes[it.Kind], Status: itemStatuses[it.Status], Namespace: "items",
		Category: it.Kind, Confidence: &it.Confidence, Tags: alf.List[string]{it.Kind, "trust:" + string(it.Trust)}, RawSourceFormat: raw,
		Source:   alf.Source{Runtime: openclawssy, Origin: "memory.db", ExtractionMethod: alf.LLMExtracted},
		Temporal: alf.Temporal{CreatedAt: alf.At(it.CreatedAt), UpdatedAt: alf.At(it.UpdatedAt)}}
	if r.MemoryType == "" {
		r.MemoryType = alf.Semantic
	}
	if it.Supersedes != "" {
		r.Supersedes = ownID(agent, it.Supersedes)
	}
	if it.ValidFrom != nil {
		r.Temporal.ValidFrom = alf.At(*it.ValidFrom)
	}
	if it.ValidTo != nil {
		r.Temporal.ValidUntil = alf.At(*it.ValidTo)
	}
	for _, e := range it.Evidence {
		r.RelatedRecords = append(r.RelatedRecords, alf.Related{ID: ownID(agent, e.EventID+"/0"), Relation: "derived_from"})
	}
	return r, nil
}

func episodeRecord(agent uuid.UUID, e memory.Episode) (*alf.Record, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInternal, "encode %s: %w", e.Handle, err)
	}
	r := &alf.Record{ID: ownID(agent, e.EventID+"/"+strconv.Itoa(e.Part)), AgentID: agent, Content: e.Text, MemoryType: alf.Episodic, Status: alf.Active, Namespace: "episodes",
		Category: string(e.Type), Tags: alf.List[string]{"episode", string(e.Origin)}, RawSourceFormat: raw,
		Source:   alf.Source{Runtime: openclawssy, Origin: "events", ExtractionMethod: alf.AgentWritten, SessionID: e.SessionID, InteractionID: e.EventID},
		Temporal: alf.Temporal{CreatedAt: alf.At(e.Time), ObservedAt: alf.At(e.Time)}}
	if e.Origin == memory.OriginUser {
		r.Source.ExtractionMethod = alf.UserAuthored
	}
	return r, nil
}
