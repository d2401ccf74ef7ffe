package bridge

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/record"
)

// Memory is the adapter "memory": the verbs of the record contract, with or
// without the prefix memory., and profile, which tells the contract's version
// and limits.
func Memory(records *record.Adapter) Adapter { return memoryAdapter{records} }

type memoryAdapter struct{ records *record.Adapter }

func (m memoryAdapter) Call(ctx context.Context, call Call) (any, error) {
	verb := strings.ToLower(strings.TrimSpace(call.Verb))
	verb = strings.TrimPrefix(verb, "memory.")
	if verb == "profile" {
		return m.records.Profile()
	}
	args, err := List(call.Args)
	if err != nil {
		return nil, err
	}
	return m.records.Call(ctx, verb, args)
}

// List reads the positional arguments of a call; absent and null stand for
// none.
func List(args json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if len(args) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(args, &list); err != nil {
		return nil, &memory.FieldError{Field: "args", Reason: "must be a list"}
	}
	return list, nil
}
