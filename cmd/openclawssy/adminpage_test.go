package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/judge"
)

var updateShots = flag.Bool("update-screenshots", false, "write docs/admin-*.png anew")

// tab is a page of a headless Chromium.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // what the page threw, or its policy refused
}

func browse(t *testing.T, url string) *tab {
	t.Helper()
	name := judge.Chromium(t, "THE ADMIN PAGE")
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	// A container's root has no other user to lend the sandbox.
	allocated, release := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.NoSandbox, chromedp.Flag("lang", "en-US"))...)
	page, shut := chromedp.NewContext(allocated, chromedp.WithErrorf(t.Logf))
	t.Cleanup(func() {
		if err := chromedp.Cancel(page); err != nil { // waits for the browser to end
			t.Log(err)
		}
		shut()
		release()
		stop()
	})
	b := &tab{t: t, ctx: page}
	chromedp.ListenTarget(page, b.listen)
	b.do(log.Enable(), runtime.Enable(), emulation.SetTimezoneOverride("UTC"), chromedp.EmulateViewport(1200, 820), chromedp.Navigate(url))
	return b
}

func (b *tab) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			text = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if text != "" {
		b.mu.Lock()
		b.problems = append(b.problems, text)
		b.mu.Unlock()
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page said: %v", err, b.problems)
	}
}

// shows waits until the page's content holds text.
func (b *tab) shows(text string) {
	b.t.Helper()
	err := chromedp.Run(b.ctx, chromedp.Poll(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text), nil, chromedp.WithPollingTimeout(60*time.Second)))
	if err == nil {
		return
	}
	var shown string
	if failed := chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &shown)); failed != nil {
		b.t.Log(failed)
	}
	b.t.Fatalf("%q is not shown: %v; problems: %v; the page reads:\n%s", text, err, b.problems, shown)
}

// click presses the first button or link that reads so.
func (b *tab) click(text string) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf(`(//main//*[self::button or self::a or self::summary][normalize-space()=%q])[1]`, text), chromedp.BySearch))
}

// visit opens a page by its entry in the navigation.
func (b *tab) visit(id, heading string) {
	b.t.Helper()
	b.do(chromedp.Click("#nav-"+id, chromedp.ByQuery))
	b.shows(heading)
}

// shot takes a picture; with -update-screenshots it becomes the one in docs.
func (b *tab) shot(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if len(png) < 5000 {
		b.t.Errorf("%s: a picture of %d bytes shows nothing", name, len(png))
	}
	if *updateShots {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", name+".png"), png, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestAdminPage does what a person does: logs in, says something, has it
// distilled, finds it, asks why, and has it forgotten.
func TestAdminPage(t *testing.T) {
	s := serveHome(t)
	token := s.token(access.Admin)
	if status, body := s.ask(token, "POST", "/v1/agents/default/runs", `{"text":"Our kiln repair costs 480 euros, says Ravi.","session":"before","user_id":"mara"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	b := browse(t, s.url+"/admin")
	b.do(chromedp.WaitVisible("#token", chromedp.ByQuery), chromedp.SendKeys("#token", "ocsy_not_a_token\n", chromedp.ByQuery))
	b.shows("not known")
	b.problems = nil // the refusal
	b.do(chromedp.SendKeys("#token", token+"\n", chromedp.ByQuery))
	b.shows("Chat with default")

	b.do(chromedp.SendKeys("#say", "I am allergic to latex, so never suggest latex gloves. <img src=x onerror=alert(1)>\n", chromedp.ByQuery))
	b.shows("Noted")
	b.do(chromedp.SendKeys("#say", "What am I allergic to?\n", chromedp.ByQuery))
	b.shows("What memory gave")
	b.shot("admin-chat")

	b.visit("checkpoints", "Distil what is new now")
	b.do(chromedp.Click("#checkpoint", chromedp.ByQuery))
	b.shows("made")
	b.visit("memory", "The newest memories")
	b.do(chromedp.SendKeys("#search", "latex gloves\n", chromedp.ByQuery))
	b.shows("found")
	b.shows("allergic to latex")
	b.shot("admin-memory")
	var handle string
	b.do(chromedp.Text(`(//*[@id="results"]//a)[1]`, &handle, chromedp.BySearch))
	b.click(handle)
	b.shows("Why it is remembered")
	b.shows("session s-")
	b.shot("admin-item")

	b.visit("recall", "The very block")
	b.do(chromedp.SendKeys("#question", "Which gloves may I wear?\n", chromedp.ByQuery))
	b.shows("RELEVANT MEMORY")
	b.shot("admin-recall")
	for _, p := range [][2]string{{"quarantine", "Nothing waits for you"}, {"jobs", "memory.checkpoint"}, {"messages", "Held back"}, {"health", "model calls today"}} {
		b.visit(p[0], p[1])
	}
	b.do(chromedp.WaitVisible(".chart canvas", chromedp.ByQuery))
	b.shot("admin-health")

	// The graph is asked with the token of this tab.
	b.do(chromedp.Click("#nav-graph", chromedp.ByQuery), chromedp.WaitReady("#total", chromedp.ByQuery))
	b.do(chromedp.Poll(`location.pathname === "/graph/" && / node/.test(document.getElementById("total").textContent)`, nil))
	b.do(chromedp.Navigate(s.url+"/admin/"), chromedp.WaitVisible("#nav-memory", chromedp.ByQuery))

	// On a phone, in the dark, by the keyboard.
	b.do(chromedp.EmulateViewport(390, 760), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	b.visit("memory", "The newest memories")
	var wide bool
	b.do(chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide))
	if wide {
		t.Error("on a phone the page is wider than the screen")
	}
	b.shot("admin-phone")
	b.do(chromedp.EmulateViewport(1200, 820))

	b.do(chromedp.Evaluate(fmt.Sprintf(`location.hash = "#/item/%s"`, handle), nil))
	b.shows("Why it is remembered")
	b.do(chromedp.Click("#forget", chromedp.ByQuery), chromedp.WaitVisible("dialog", chromedp.ByQuery), chromedp.Click(`dialog button[value=yes]`, chromedp.ByQuery))
	b.shows("forgotten")
	if _, body := s.ask(token, "POST", "/v1/agents/default/ops/memory.search", `{"text":"latex gloves","scope":"all"}`); strings.Contains(body, "allergic to latex") {
		t.Errorf("what was forgotten is found: %s", body)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		t.Errorf("the page: %s", p)
	}
}
