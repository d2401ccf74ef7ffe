package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

type account struct {
	Name     string            `json:"name"`
	Secret   string            `json:"client_secret"`
	Pin      int               `json:"pin"`
	Labels   map[string]string `json:"labels,omitempty"`
	Next     *account
	At       time.Time
	Callback func()
	Any      any
}

type hiding struct {
	Name  string
	notes string
}

type shown struct{ secret string }

func (s shown) String() string { return "token=" + s.secret }

type failing struct{ text string }

func (f *failing) Error() string { return f.text }

type label string

func TestValueOfEachKind(t *testing.T) {
	r := newRedactor(t)
	secret := random("alnum", 20, 1)
	tag := r.tag("password", secret)
	line := "password=" + secret
	clean := "password=" + tag
	number := 7
	for name, tc := range map[string]struct{ in, want any }{
		"nil":                  {nil, nil},
		"text":                 {line, clean},
		"plain text":           {"hello", "hello"},
		"named text":           {label(line), label(clean)},
		"number":               {42, 42},
		"boolean":              {true, true},
		"bytes":                {[]byte(line), []byte(clean)},
		"texts":                {[]string{"a", line}, []string{"a", clean}},
		"array":                {[2]string{"a", line}, [2]string{"a", clean}},
		"anything":             {[]any{1, line, nil, []string{line}}, []any{1, clean, nil, []string{clean}}},
		"map of texts":         {map[string]string{"a": line}, map[string]string{"a": clean}},
		"key of a map":         {map[string]int{line: 1}, map[string]int{clean: 1}},
		"map by number":        {map[int]string{1: line}, map[int]string{1: clean}},
		"pointer to number":    {&number, &number},
		"secret name":          {map[string]string{"db_password": secret, "user": "jo"}, map[string]string{"db_password": tag, "user": "jo"}},
		"plain word by name":   {map[string]any{"password": "abc"}, map[string]any{"password": r.tag("password", "abc")}},
		"number by name":       {map[string]any{"pin": 4821}, map[string]any{"pin": r.tag("pin", "4821")}},
		"typed number by name": {map[string]int{"pin": 4821, "n": 1}, map[string]any{"pin": r.tag("pin", "4821"), "n": 1}},
		"list by name":         {map[string][]string{"tokens": {"a"}, "secrets": {"b"}}, map[string][]string{"tokens": {"a"}, "secrets": {r.tag("token", "b")}}},
		"nothing by name":      {map[string]any{"password": nil, "token": "", "secret": false}, map[string]any{"password": nil, "token": "", "secret": false}},
		"tag by name":          {map[string]any{"password": tag}, map[string]any{"password": tag}},
		"deep under a name":    {map[string]any{"password": map[string]any{"current": "x1"}}, map[string]any{"password": map[string]any{"current": r.tag("password", "x1")}}},
		"budget":               {map[string]any{"max_tokens": 1600, "token_count": 5}, map[string]any{"max_tokens": 1600, "token_count": 5}},
		"pair":                 {map[string]string{"name": "DB_PASSWORD", "value": "x"}, map[string]string{"name": "DB_PASSWORD", "value": r.tag("password", "x")}},
		"arguments":            {[]string{"mysql", "--password", "x", "--host", "db"}, []string{"mysql", "--password", r.tag("password", "x"), "--host", "db"}},
		"json.Number":          {json.Number("42"), json.Number("42")},
		"json":                 {json.RawMessage(`{"b":1,"password":"x","a":[true,null,4.50]}`), json.RawMessage(`{"b":1,"password":"` + r.tag("password", "x") + `","a":[true,null,4.50]}`)},
		"json number by name":  {json.RawMessage(`{"pin":4821}`), json.RawMessage(`{"pin":"` + r.tag("pin", "4821") + `"}`)},
		"no json":              {json.RawMessage(`{"password":`), json.RawMessage(`"{\"password\":"`)},
		"time":                 {time.Unix(5, 0), time.Unix(5, 0)},
		"stringer":             {shown{secret}, "token=" + r.tag("token", secret)},
		"address":              {must(url.Parse("https://jo:" + secret + "@example.com/x")), "https://jo:" + r.tag("url_password", secret) + "@example.com/x"},
		"unexported":           {hiding{Name: "a", notes: line}, map[string]any{"Name": "a", "notes": clean}},
		"unexported harmless":  {hiding{Name: line, notes: "b"}, hiding{Name: clean, notes: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%#v", tc.in)
			got := r.Value(tc.in)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("Value = %#v, want %#v", got, tc.want)
			}
			if after := fmt.Sprintf("%#v", tc.in); after != before {
				t.Errorf("Value changed its input from %s to %s", before, after)
			}
			if again := r.Value(got); !reflect.DeepEqual(again, got) {
				t.Errorf("Value of the result = %#v, want %#v", again, got)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the tests give only what can be parsed
	}
	return v
}

func TestValueOfStruct(t *testing.T) {
	r := newRedactor(t)
	in := account{Name: "jo", Secret: "plain", Pin: 4821, Labels: map[string]string{"a": "b"}, Next: &account{Secret: "other"}, At: time.Unix(9, 0), Any: map[string]any{"token": "z"}}
	out, ok := r.Value(in).(account)
	if !ok {
		t.Fatalf("Value answers %T, want an account", r.Value(in))
	}
	if out.Name != "jo" || out.Secret != r.tag("token", "plain") || out.Pin != 0 || out.Next.Secret != r.tag("token", "other") || !out.At.Equal(in.At) {
		t.Errorf("Value = %+v", out)
	}
	if inner := out.Any.(map[string]any)["token"]; inner != r.tag("token", "z") {
		t.Errorf("inner token is %v", inner)
	}
	if in.Secret != "plain" || in.Next.Secret != "other" || in.Labels["a"] != "b" {
		t.Error("Value changed its input")
	}
	out.Labels["a"] = "c"
	if in.Labels["a"] != "b" {
		t.Error("the copy shares a map with its input")
	}
}

func TestValueOfErrors(t *testing.T) {
	r := newRedactor(t)
	secret := random("alnum", 20, 2)
	plain := errors.New("no such file")
	if got := r.Value(plain); got != plain {
		t.Errorf("Value of a harmless error is %v, want the error itself", got)
	}
	for _, in := range []error{&failing{"dial: password=" + secret}, fmt.Errorf("open: %w", &failing{"token=" + secret})} {
		err, ok := r.Value(in).(error)
		if !ok || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "[REDACTED:") {
			t.Errorf("Value(%v) = %v", in, err)
		}
	}
	var none *failing
	if got := r.Value(map[string]any{"err": none}); got == nil {
		t.Error("a nil error broke Value")
	}
}

func TestValueBoundsCyclesAndDepth(t *testing.T) {
	r := newRedactor(t)
	ring := map[string]any{"password": "x"}
	ring["self"] = ring
	out := r.Value(ring).(map[string]any)
	if out["password"] != r.tag("password", "x") || !reflect.ValueOf(out["self"]).IsNil() {
		t.Errorf("ring = %v", out)
	}
	node := &account{Secret: "x"}
	node.Next = node
	if got := r.Value(node).(*account); got.Next != nil || got.Secret == "x" {
		t.Errorf("node = %+v", got)
	}
	var deep any = "password=" + random("alnum", 12, 3)
	for range 1000 {
		deep = []any{deep}
	}
	if text := fmt.Sprint(r.Value(deep)); strings.Contains(text, random("alnum", 12, 3)) {
		t.Error("a secret survives at depth 1000")
	}
	nested := json.RawMessage(strings.Repeat(`[`, 500) + `{"password":"abc"}` + strings.Repeat(`]`, 500))
	if got := string(r.Value(nested).(json.RawMessage)); strings.Contains(got, "abc") || !json.Valid([]byte(got)) {
		t.Errorf("deep JSON = %.80s", got)
	}
}

func TestValueKeepsBinaryBytes(t *testing.T) {
	r := newRedactor(t)
	in := []byte("\xff\x00\x01 password=" + random("alnum", 12, 4) + " \xfe")
	got := r.Value(in).([]byte)
	if !strings.HasPrefix(string(got), "\xff\x00\x01 password=[REDACTED:password#") || !strings.HasSuffix(string(got), " \xfe") {
		t.Errorf("Value = %q", got)
	}
}

func TestValueTellsKeysWithOneTagApart(t *testing.T) {
	out := reflect.ValueOf(map[string]int{"k": 1})
	if got := freeKey(out, "k").String(); got != "k~2" {
		t.Errorf("freeKey = %q, want k~2", got)
	}
}

func TestNameClass(t *testing.T) {
	for name, want := range map[string]class{
		"password": password, "DB_PASSWORD_PROD": password, "dbPassword2": password, "PGPASSWORD": password, "keystore.password": password, "X-Api-Key": token,
		"APIKey": token, "clientSecret": token, "aws_secret_access_key": token, "passwordFile": notSecret, "token_count": notSecret, "max_tokens": notSecret,
		"public_key": notSecret, "primaryKey": notSecret, "secretName": notSecret, "compass": notSecret, "bypass": notSecret, "secretary": notSecret, "monkey": notSecret,
		"next_page_token": notSecret, "password_hash": hashed, "otp": oneTime, "2fa_code": oneTime, "Authorization": authHeader, "set-cookie": cookie, "": notSecret, "_": notSecret,
		"some_key": weak, "status_code": notSecret, "recovery phrase": seedPhrase, strings.Repeat("a_", 200): notSecret,
	} {
		if got := nameClass(name); got != want {
			t.Errorf("nameClass(%q) = %d, want %d", name, got, want)
		}
	}
}
