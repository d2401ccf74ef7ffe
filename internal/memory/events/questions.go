package events

import "sync"

// maxQuestions is how many sessions wait for an answer at most. A question beyond them
// is forgotten: its answer is redacted as any text is.
const maxQuestions = 1000

// questions holds, by session, what was asked for last where it was a secret. It does
// not outlive the process: a question and its answer are seldom far apart.
type questions struct {
	mu sync.Mutex
	by map[string]string
}

// take returns the question that waits in the session, and forgets it.
func (q *questions) take(session string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	question := q.by[session]
	delete(q.by, session)
	return question
}

func (q *questions) put(session, question string) {
	if question == "" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.by == nil {
		q.by = map[string]string{}
	}
	if len(q.by) < maxQuestions {
		q.by[session] = question
	}
}
