package record

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Variables that make the test binary a second process.
const (
	childRole = "RECORD_TEST_ROLE"
	childPath = "RECORD_TEST_PATH"
	childName = "RECORD_TEST_NAME"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := child(role, os.Getenv(childPath), os.Getenv(childName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	writers    = 8
	perProcess = 40
)

// child is what a second process does.
func child(role, path, name string) error {
	ctx := sqlite.Patient(context.Background(), 2*time.Minute, nil) // eight write at once, maybe on a busy machine
	s, err := Open(ctx, path, Options{Now: time.Now})
	if err != nil {
		return err
	}
	for i := range perProcess {
		switch role {
		case "append":
			_, err = s.Append(ctx, Write{Key: note, Value: json.RawMessage(fmt.Sprintf(`{"from":%q,"n":%d}`, name, i))})
		case "put": // all processes write the same keys
			_, _, err = s.Put(ctx, Write{Key: Key{workflow, "k", fmt.Sprint(i)}, Value: json.RawMessage(`{"from":"` + name + `"}`), Metadata: json.RawMessage(`{"tags":["` + name + `"]}`)})
		}
		if err != nil {
			return err
		}
	}
	return s.Close()
}

// runChildren runs writers processes of one role on one database, which the
// processes themselves create.
func runChildren(t *testing.T, role, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := range writers {
		wg.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path, childName+"="+fmt.Sprint("p", p))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", p, err, out)
			}
		})
	}
	wg.Wait()
}

func TestDefectConcurrentAppendsLoseEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	runChildren(t, "append", path)
	f := fixture{openTest(t, path, Options{}), nil, t}
	var log struct {
		Entries []struct {
			From string
			N    int
		}
	}
	if err := json.Unmarshal([]byte(f.payload(note)), &log); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, e := range log.Entries {
		if e.N != next[e.From] {
			t.Errorf("entry %d of %s comes where %d should", e.N, e.From, next[e.From])
		}
		next[e.From]++
	}
	if len(log.Entries) != writers*perProcess || len(next) != writers {
		t.Errorf("%d entries of %d processes, want %d of %d", len(log.Entries), len(next), writers*perProcess, writers)
	}
}

func TestDefectConcurrentPutsMakeTwoRecordsOfAKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	runChildren(t, "put", path)
	f := fixture{openTest(t, path, Options{}), nil, t}
	n := 0
	err := f.Export(context.Background(), Selection{}, func(e Envelope) error {
		n++
		var payload struct{ From string }
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			return err
		}
		if want := `{"tags":["` + payload.From + `"]}`; string(e.Metadata) != want {
			t.Errorf("record %s: payload of %s with metadata %s", e.ID, payload.From, e.Metadata)
		}
		return nil
	})
	if err != nil || n != perProcess {
		t.Errorf("%d records, %v, want %d", n, err, perProcess)
	}
	if n := foreignText(t, path, "SELECT count(*) FROM memory_record_tags"); n != fmt.Sprint(perProcess) {
		t.Errorf("%s tags, want one of each record", n)
	}
}

// A reader sees a whole state of the store while others prune and import.
func TestReadersNeverWaitForWriters(t *testing.T) {
	s, ctx := openTest(t, filepath.Join(t.TempDir(), FileName), Options{}), context.Background()
	if _, err := s.Import(ctx, benchRecords(3000, 2000)); err != nil {
		t.Fatal(err)
	}
	reads := 0
	ctx = op.WithProgress(ctx, func(op.Progress) { // called between two batches
		reads++
		entries, _, err := s.List(context.Background(), Query{Namespace: workflow})
		if err != nil || (len(entries)-1000)%pruneBatch != 0 {
			t.Errorf("a reader saw %d records, %v", len(entries), err)
		}
	})
	if n, err := s.Prune(ctx, ""); err != nil || n != 2000 || reads < 2 {
		t.Errorf("Prune = %d, %v, after %d batches", n, err, reads)
	}
	inside := make(chan error)
	go func() { // while a write transaction is open
		_, err := s.Import(context.Background(), func(yield func(json.RawMessage, error) bool) {
			_, found, err := s.Get(context.Background(), Key{workflow, "workflow.k5", "run-0002000"})
			if err == nil && !found {
				err = fmt.Errorf("the record is not there")
			}
			yield(json.RawMessage(`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{}}`), err)
		})
		inside <- err
	}()
	if err := <-inside; err != nil {
		t.Error(err)
	}
}
