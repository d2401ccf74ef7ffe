package proxy

import (
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// blockKey says for which turn of which conversation a block was made.
type blockKey struct {
	agent   memory.AgentID
	session string
	turn    mark
}

// keptBlock is a block that is kept, and the run that explains it.
type keptBlock struct {
	block, run string
	at         time.Time
}

const (
	blocksKept = 1024             // of about 5 KB each at most
	blockLives = 15 * time.Minute // longer than a provider keeps a prompt
)

// blocks keeps what was put into prompts of late, so that it can be put there again
// with the same bytes. It is safe for concurrent use.
type blocks struct {
	mu    sync.Mutex
	all   map[blockKey]keptBlock
	order []blockKey
	drops map[memory.AgentID]int64 // how often what is kept of an agent was dropped
}

func (b *blocks) get(k blockKey, now time.Time) (keptBlock, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	have, known := b.all[k]
	if known && now.Sub(have.at) > blockLives {
		return keptBlock{}, false
	}
	return have, known
}

// began returns what put needs to know that nothing was dropped meanwhile.
func (b *blocks) began(agent memory.AgentID) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drops[agent]
}

// put keeps a block, unless the agent's memory has changed since it was asked.
func (b *blocks) put(k blockKey, v keptBlock, began int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drops[k.agent] != began {
		return
	}
	if b.all == nil {
		b.all = map[blockKey]keptBlock{}
	}
	if _, known := b.all[k]; !known {
		b.order = append(b.order, k)
	}
	b.all[k] = v
	for len(b.order) > blocksKept {
		delete(b.all, b.order[0])
		b.order = b.order[1:]
	}
}

// drop forgets every block of an agent.
func (b *blocks) drop(agent memory.AgentID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drops == nil {
		b.drops = map[memory.AgentID]int64{}
	}
	b.drops[agent]++
	rest := b.order[:0]
	for _, k := range b.order {
		if k.agent == agent {
			delete(b.all, k)
		} else {
			rest = append(rest, k)
		}
	}
	b.order = rest
}
