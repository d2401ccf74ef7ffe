# Openclawssy. `make run` shows the main job, `make test` runs every test.

SHELL := /bin/bash
GO ?= go
# The full-text index of SQLite is compiled in by a build tag. What the machine
# already asks for comes first.
export GOFLAGS := $(strip $(shell command -v $(GO) >/dev/null && $(GO) env GOFLAGS) -tags=sqlite_fts5)
export CGO_ENABLED := 1

# With these, the rows of the fault matrix are compiled too.
FAULT_TAGS := sqlite_fts5,fault
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BIN := bin/openclawssy
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: help build run test race fault soak lint fmt bench docs clean tools

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

tools:
	@command -v $(GO) >/dev/null || { echo 'Go is missing. Install Go 1.26 or later from https://go.dev/dl (or: apt-get install golang-go, brew install go), then try again.' >&2; exit 1; }
	@command -v "$${CC:-$$($(GO) env CC)}" >/dev/null || { echo 'A C compiler is missing; SQLite needs one. Install it with: apt-get install -y gcc libc6-dev (macOS: xcode-select --install), then try again.' >&2; exit 1; }

build: tools ## build bin/openclawssy (the first build compiles SQLite: about a minute)
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/openclawssy

run: build ## import, checkpoint, three questions, on the conversation in testdata/
	@testdata/demo/run $(BIN)

test: tools ## every test there is
	$(GO) test -timeout 18m ./...

race: tools ## the same under the race detector
	$(GO) test -race ./...

# SCALE is per cent of the whole work; ROWS=F1,F4 takes only these; STRICT=1
# fails also where root or a tool is missing.
SCALE ?= 100
fault: tools ## the fault matrix: about 25 minutes of two cores; ROWS=F1,F4 SCALE=5 for less
	$(GO) run ./internal/judge/fault/matrix -results bin/fault -scale $(SCALE) -rows '$(ROWS)' $(if $(STRICT),-strict)

SOAK ?= 10m
soak: tools ## everything at once on one home, for SOAK=10m: memory, latency, what was lost
	@[ "$$(uname)" = Linux ] || { echo 'make soak needs Linux.' >&2; exit 1; }
	SOAK=$(SOAK) $(GO) test -tags=$(FAULT_TAGS) -count=1 -timeout 0 -run '^TestSoak$$' -v ./cmd/openclawssy

lint: tools ## format, vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "run make fmt; not formatted:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags=$(FAULT_TAGS) ./...
	$(GO) run $(STATICCHECK) -tags=$(FAULT_TAGS) ./...

fmt: tools ## format the Go files
	gofmt -w $$(git ls-files '*.go')

bench: tools ## the figures of docs/BENCHMARKS.md
	$(GO) test -run '^$$' -bench . -benchmem -timeout 60m ./...

docs: build ## write docs/OPERATIONS.md and docs/CONFIG.md from the code
	$(BIN) docs operations > docs/OPERATIONS.md
	$(BIN) docs config > docs/CONFIG.md

clean: ## remove what was built
	rm -rf bin
