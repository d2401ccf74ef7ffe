package op

import "github.com/openclawssy/openclawssy/internal/memory"

// Failure is an error as every face shows it to a program.
type Failure struct {
	Kind    memory.Kind `json:"kind"`
	Field   string      `json:"field,omitempty"` // JSON name of the input at fault
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"` // what to do next
}

// FailureOf describes err, which is not nil.
func FailureOf(err error) Failure {
	return Failure{Kind: memory.KindOf(err), Field: memory.FieldOf(err), Message: err.Error(), Hint: memory.HintOf(err)}
}
