package graphview

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
)

var update = flag.Bool("update", false, "write docs/graph-view.png and docs/graph-view-dark.png anew")

// browser is a page of a headless Chromium on a viewer of its own.
type browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string // what the page threw, or its policy refused
	expected string   // a part of problems that the test provokes
}

// open starts a browser on the graph that now returns (an error for a server
// that fails) and waits until the page has taken it in.
func open(t testing.TB, now func() any) *browser {
	t.Helper()
	name := judge.Chromium(t, "THE VIEWER")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	session := Session{Token: "browser-test-token", Addr: l.Addr().String()}
	h := New(Source{Export: func(context.Context) (any, error) {
		doc := now()
		if err, failed := doc.(error); failed {
			return nil, err
		}
		return doc, nil
	}, Folder: func() (*os.Root, error) { return nil, memory.ErrNotFound }}, zerolog.Nop())
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, session.Guard(h)) }()

	// A container's root has no other user to lend the sandbox.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.NoSandbox,
		chromedp.Flag("lang", "en-US"))
	allocated, release := chromedp.NewExecAllocator(ctx, options...)
	tab, shut := chromedp.NewContext(allocated, chromedp.WithErrorf(t.Logf))
	t.Cleanup(func() {
		if err := chromedp.Cancel(tab); err != nil { // waits for the browser to end
			t.Log(err)
		}
		shut()
		release()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b := &browser{t: t, ctx: tab}
	chromedp.ListenTarget(tab, b.listen)
	b.run(log.Enable(), runtime.Enable(), emulation.SetTimezoneOverride("UTC"), b.scheme("light"), chromedp.EmulateViewport(1440, 900), chromedp.Navigate(session.URL()), chromedp.WaitReady(`body[aria-busy="false"]`))
	return b
}

func (b *browser) listen(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		if e.Entry.Level != log.LevelError {
			return
		}
		text = e.Entry.Text
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprint("console: ", e.Type)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, text)
}

// clean fails the test where the page had problems.
func (b *browser) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		if b.expected == "" || !strings.Contains(p, b.expected) {
			b.t.Errorf("the page had a problem: %s", p)
		}
	}
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// text returns what stands in the first element that matches.
func (b *browser) text(selector string) string {
	b.t.Helper()
	var s string
	b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).textContent`, selector), &s))
	return s
}

// is waits until a JavaScript expression is true.
func (b *browser) is(expression string) {
	b.t.Helper()
	err := chromedp.Run(b.ctx, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(time.Minute)))
	if err != nil {
		b.t.Fatalf("%s: %v; the page says %q, %q", expression, err, b.text("#total"), b.text("#shown"))
	}
}

func (b *browser) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(selector, chromedp.ByQuery))
}

func (b *browser) keys(keys string) { b.t.Helper(); b.run(chromedp.KeyEvent(keys)) }

// find types words into the filter. A test's key is typed even where the page
// prevents that, so what stands there is selected first.
func (b *browser) find(words string) {
	b.t.Helper()
	b.keys("/")
	b.is(`document.activeElement.id === "text"`)
	b.run(chromedp.Evaluate(`document.getElementById("text").select()`, nil))
	b.keys(words)
}

const settled = `document.getElementById("graph").dataset.layout === "done"`

func always(doc any) func() any { return func() any { return doc } }

func TestFiltersHideNodes(t *testing.T) {
	g := pottery()
	b := open(t, always(g))
	if want := fmt.Sprintf("%d nodes · %d edges", len(g.Nodes), len(g.Edges)); b.text("#total") != want {
		t.Errorf("the page counts %q, want %q", b.text("#total"), want)
	}
	counts := map[string]int{}
	shop := 0
	for _, n := range g.Nodes {
		counts[n["node_type"].(string)]++
		if n["agent_id"] == "shop" {
			shop++
		}
	}
	of := func(n int) string {
		return fmt.Sprintf(`document.getElementById("shown").textContent === "%d of %d"`, n, len(g.Nodes))
	}
	const all = `document.getElementById("shown").textContent === ""`

	b.click(`#types input[value=episodic]`)
	b.is(of(len(g.Nodes) - counts["episodic"]))
	b.click("#all-types")
	b.is(all)

	b.run(chromedp.SetValue("#agent", "=shop"), chromedp.Evaluate(`document.getElementById("agent").dispatchEvent(new Event("change"))`, nil))
	b.is(of(shop))
	b.run(chromedp.SetValue("#agent", ""), chromedp.Evaluate(`document.getElementById("agent").dispatchEvent(new Event("change"))`, nil))
	b.is(all)

	b.find("陶芸 ceramics")
	b.is(of(1))
	b.keys(kb.Escape)
	b.is(all)

	b.click("#disputed")
	b.is(of(4))
	b.click("#disputed")
	b.is(all)

	b.run(chromedp.Focus("#from"))
	b.keys(kb.End) // the latest moment only
	b.is(of(1))
	b.click("#all-time")
	b.is(all)
	b.clean()
}

func TestNodeShowsPayloadAndProvenance(t *testing.T) {
	b := open(t, always(pottery()))
	b.find("leaches")
	b.is(`document.querySelectorAll("#results [role=option]").length === 1`)
	b.run(chromedp.Focus("#results"))
	b.keys(kb.ArrowDown + kb.Enter)
	b.is(`document.activeElement.id === "details"`)
	panel := b.text("#details")
	for _, want := range []string{"Ash glaze leaches lead", "Contradicted by", "Ash glaze is food safe", "shop", "2026-01-22 00:00", "claim", "MEM-71", "EVT-88", "never drink from ash glaze", "a forum", "derived from", "believes", "35 %", "half heard", "EVT-90"} {
		if !strings.Contains(panel, want) {
			t.Errorf("the panel lacks %q: %s", want, panel)
		}
	}
	if strings.Contains(panel, "null") {
		t.Errorf("the panel shows what is not there: %s", panel)
	}
	// A link leads on, also to what the filter hides.
	b.click(".dispute button")
	b.is(`document.querySelector("#node-name").textContent === "Ash glaze is food safe"`)
	b.keys(kb.Escape)
	b.is(`document.getElementById("details").hidden`)
	b.clean()
}

// All that the keys list promises works, without a pointer.
func TestKeyboard(t *testing.T) {
	b := open(t, always(pottery()))
	b.is(settled)
	const zoom = `Number(document.getElementById("graph").dataset.zoom)`
	var before, after float64
	b.run(chromedp.Evaluate(zoom, &before))
	b.keys("+")
	b.run(chromedp.Evaluate(zoom, &after))
	if after <= before {
		t.Errorf("+ zooms from %v to %v", before, after)
	}
	b.keys("0")
	b.is(fmt.Sprintf(`Math.abs(%s - %v) < .01`, zoom, before))
	b.keys("n")
	b.keys("n")
	b.is(`document.querySelector("#results [aria-selected=true]").id === "row-1"`)
	b.keys("p")
	b.is(`document.querySelector("#results [aria-selected=true]").id === "row-0"`)
	b.keys(kb.Escape)
	b.is(`!document.querySelector("#results [aria-selected=true]")`)
	b.run(chromedp.Focus("#graph"))
	b.keys(kb.ArrowLeft + kb.Enter)
	b.is(`!document.getElementById("details").hidden`)
	b.keys("?")
	b.is(`document.getElementById("help").open`)
	b.keys(kb.Escape)
	b.is(`!document.getElementById("help").open`)
	b.keys("t")
	b.is(`document.documentElement.dataset.theme === "dark"`)
	b.clean()
}

// A click on the canvas takes the node that is drawn there.
func TestClickTakesNode(t *testing.T) {
	var g invented
	g.node("only", "semantic", "a", "The only one", 0, node{})
	g.node("other", "episodic", "a", "Another", 1, node{})
	g.edge("only", "other", "knows")
	b := open(t, always(g))
	b.is(settled)
	b.click("#graph") // its middle: between the two, on neither
	b.is(`document.getElementById("details").hidden`)
	// Two nodes fill the window: they stand at the ends of what was fitted.
	var hit bool
	b.run(chromedp.Evaluate(`(() => {
		const c = document.getElementById("graph"), box = c.getBoundingClientRect()
		for (let x = 10; x < box.width; x += 8) for (let y = 10; y < box.height; y += 8) {
			c.dispatchEvent(new PointerEvent("pointermove", {clientX: box.x + x, clientY: box.y + y}))
			if (c.style.cursor === "pointer") {
				c.dispatchEvent(new MouseEvent("click", {clientX: box.x + x, clientY: box.y + y, bubbles: true}))
				return true
			}
		}
		return false
	})()`, &hit))
	if !hit {
		t.Fatal("no node lies under any point of the canvas")
	}
	b.is(`["The only one", "Another"].includes(document.querySelector("#node-name").textContent)`)
	b.clean()
}

// Labels, ids, tags, payloads and types that look like markup stay text, and
// the policy refuses whatever would make markup of them.
func TestHostileTextStaysText(t *testing.T) {
	const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	var g invented
	g.node(evil, evil, evil, evil, 0, node{evil: evil, "evidence": evil, "list": []any{evil, node{"__proto__": evil}}}, evil)
	g.node("__proto__", "constructor", "toString", "__proto__", 1, node{})
	g.edge(evil, "__proto__", evil)
	b := open(t, always(g))
	b.keys("n")
	b.is(`!document.getElementById("details").hidden`)
	b.keys("n")
	if !strings.Contains(b.text("#results"), evil) || !strings.Contains(b.text("#types"), "<img") {
		t.Errorf("the list shows %q", b.text("#results"))
	}
	var made int
	b.run(chromedp.Evaluate(`document.querySelectorAll("img:not(.brand img), script:not([src])").length`, &made))
	if made != 0 || b.text("title") != "Graph memory · Openclawssy" {
		t.Errorf("%d elements came from data; the title is %q", made, b.text("title"))
	}
	b.clean()
	var refused bool
	b.run(chromedp.Evaluate(`(() => { try { document.body.innerHTML = "<b>x</b>"; return false } catch { return true } })()`, &refused))
	if !refused {
		t.Error("the policy lets markup be made from text")
	}
}

func TestEmptyAndErrorStates(t *testing.T) {
	var doc atomic.Value
	type box struct{ doc any }
	doc.Store(box{invented{Nodes: []node{}, Edges: []edge{}}})
	b := open(t, func() any { return doc.Load().(box).doc })
	b.expected = "Failed to load resource"
	b.is(`!document.getElementById("empty").hidden`)
	if got := b.text("#empty"); !strings.Contains(got, "Nothing remembered yet") {
		t.Errorf("an empty graph shows %q", got)
	}
	doc.Store(box{&memory.CorruptError{Path: "graph.json", Offset: 12, Reason: "it ends too early"}})
	b.keys("r")
	b.is(`!document.getElementById("failed").hidden`)
	if got := b.text("#failed"); !strings.Contains(got, "graph.json is damaged at byte 12: it ends too early") {
		t.Errorf("a damaged graph shows %q", got)
	}
	doc.Store(box{map[string]any{"nodes": 7}})
	b.click("#again")
	b.is(`document.getElementById("failed-text").textContent.includes("not a graph")`)
	doc.Store(box{pottery()})
	b.click("#again")
	b.is(`document.getElementById("failed").hidden && document.getElementById("empty").hidden`)
	b.find("no node says this")
	b.is(`document.getElementById("empty-title").textContent === "Nothing matches" && !document.getElementById("empty").hidden`)
	b.click("#empty-clear")
	b.is(`document.getElementById("empty").hidden`)
	b.clean()
}

// zoomFrames moves the wheel once in each of n frames, and reports how many of
// them the page drew and how far apart they came.
const zoomFrames = `new Promise(done => {
	const c = document.getElementById("graph"), box = c.getBoundingClientRect(), first = Number(c.dataset.drawn), gaps = []
	let left = %d, last = performance.now()
	const step = () => {
		gaps.push(performance.now() - last)
		last = performance.now()
		if (left-- === 0) { gaps.sort((a, b) => a - b); done({drawn: Number(c.dataset.drawn) - first, p50: gaps[gaps.length >> 1], p95: gaps[Math.floor(gaps.length * .95)]}); return }
		c.dispatchEvent(new WheelEvent("wheel", {deltaY: left %% 20 < 10 ? 40 : -40, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true}))
		requestAnimationFrame(step)
	}
	requestAnimationFrame(step)
})`

type frames struct {
	Drawn    int     `json:"drawn"`
	P50, P95 float64 // ms from one frame to the next
}

func (b *browser) zoom(n int) frames {
	b.t.Helper()
	var f frames
	b.run(chromedp.Evaluate(fmt.Sprintf(zoomFrames, n), &f, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return f
}

// With 5,000 nodes every frame in which the view moves is drawn, also while the
// layout still runs: it does so beside the page. And frames come at no less than
// a fifth of the rate of a graph that is next to nothing, whatever the machine:
// here there may be no graphics card.
func TestFiveThousandNodesAreFluent(t *testing.T) {
	const asked, rounds = 40, 3
	large, small := open(t, always(many(5000))), open(t, always(many(100)))
	large.is(`Number(document.getElementById("graph").dataset.drawn) > 0`)
	running := large.zoom(asked)
	large.is(settled)
	small.is(settled)
	best := 0.0
	for range rounds { // other work on the machine comes and goes
		a, b := large.zoom(asked), small.zoom(asked)
		t.Logf("a frame of 5,000 nodes in %.0f ms (p95 %.0f), of 100 in %.0f ms (p95 %.0f)", a.P50, a.P95, b.P50, b.P95)
		best = max(best, b.P50/a.P50)
		if running.Drawn < asked*9/10 || a.Drawn < asked*9/10 {
			t.Errorf("of %d frames %d were drawn while the layout ran, %d after it", asked, running.Drawn, a.Drawn)
		}
	}
	if best < .2 {
		t.Errorf("frames of 5,000 nodes come at %.2f of the rate of 100", best)
	}
	if large.text("#shown") != "" || !strings.HasPrefix(large.text("#total"), "5,000 nodes") {
		t.Errorf("shown %q of %q", large.text("#shown"), large.text("#total"))
	}
	large.clean()
}

// BenchmarkFrame is how far apart frames come while the view moves.
func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			page := open(b, always(many(n)))
			page.is(settled)
			for b.Loop() {
				f := page.zoom(60)
				b.ReportMetric(f.P50, "ms/frame")
				b.ReportMetric(f.P95, "ms/frame_p95")
			}
		})
	}
}

// TestScreenshots draws the pictures of docs/; with -update it keeps them.
func TestScreenshots(t *testing.T) {
	b := open(t, always(pottery()))
	for _, shot := range []struct{ scheme, file, find string }{{"light", "graph-view.png", "leaches"}, {"dark", "graph-view-dark.png", ""}} {
		b.run(b.scheme(shot.scheme))
		b.is(fmt.Sprintf(`document.documentElement.dataset.theme === %q`, shot.scheme))
		b.is(settled)
		if shot.find != "" {
			b.run(chromedp.Evaluate(`[...document.querySelectorAll("#results li")].find(l => l.textContent.includes("leaches")).click()`, nil))
		} else {
			b.keys(kb.Escape)
		}
		b.run(chromedp.Evaluate(`new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))`, nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		var png []byte
		b.run(chromedp.CaptureScreenshot(&png))
		if len(png) < 50_000 {
			t.Errorf("%s has %d bytes: an empty page?", shot.file, len(png))
		}
		if *update {
			if err := os.WriteFile("../../docs/"+shot.file, png, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.clean()
}
