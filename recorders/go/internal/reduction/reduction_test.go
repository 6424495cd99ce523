package reduction

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The seeds are bodies of all forms, and some that are damaged.
func seeds(f *testing.F) {
	for _, text := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","labels":{"a":"b"},"annotations":{"k8s.io/initial-events-end":"true","x":"y"}},"spec":{"nodeName":"n","volumes":[{"name":"v"}]},"status":{"phase":"Running"}}`,
		`{"kind":"PodList","items":[{"metadata":{"uid":"u"}},7,null],"metadata":{"continue":"t"}}`,
		`{"type":"ADDED","object":{"kind":"Secret","metadata":{"uid":"u"},"data":{"a":"hunter2"}}}`,
		`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":7},null]`,
		`{"kind":"Table","rows":[{"cells":[1],"object":{"kind":"Secret","data":{"a":"hunter2"}}}]}`,
		"{\"kind\":\"Pod\",\n \"metadata\": {\"name\" : \"\\u0061\\\\\"}}", `{"a":1,"a":2`, `{"metadata":{"uid":1,"uid":2}}`, `"\ud800"`, "\"\xff\"", `{"a":[}`, `-0.1e+7`, `01`, ``, `{`,
		"k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12\x07\n\x05\n\x01a*\x00", "\x0a\x05ADDED\x12\x02\x0a\x00",
		"\xa2\x44kind\x43Pod\x48metadata\xa1\x43uid\x41u", "\xd9\xd9\xf7\xa1\x44type\x45ADDED",
	} {
		f.Add([]byte(text))
	}
}

// The result of each body is one line of JSON, or an error.
func FuzzReducedBodiesAreJSONOnOneLine(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, of := range []*Reduction{Shipped().Of("pods", ""), Shipped().Of("secrets", ""), Shipped().Of("namespaces", "")} {
			for name, reduce := range map[string]func(to, body []byte) ([]byte, error){
				"JSON": of.AppendJSON, "event": of.AppendEvent, "protobuf": of.AppendProtobuf,
				"protobuf event": of.AppendProtobufEvent, "CBOR": of.AppendCBOR, "CBOR event": of.AppendCBOREvent,
			} {
				begin := []byte("begin")
				reduced, err := reduce(begin, body)
				if !bytes.HasPrefix(reduced, begin) {
					t.Fatalf("%s: the line before the body is gone", name)
				}
				reduced = reduced[len(begin):]
				if err != nil {
					if len(reduced) > 0 {
						t.Fatalf("%s: an error and %q", name, reduced)
					}
					continue
				}
				if !json.Valid(reduced) || bytes.ContainsAny(reduced, "\n\r") {
					t.Fatalf("%s: %q becomes %q", name, body, reduced)
				}
			}
		}
		if length, err := CutCBOR(body); err == nil && length > len(body) {
			t.Fatalf("an item of %d bytes in %d", length, len(body))
		}
	})
}

// Every valid body is accepted, unless a member that is kept stands in it twice.
func FuzzValidBodiesAreReduced(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || len(body) > 1<<16 {
			return
		}
		_, err := Shipped().Of("pods", "").AppendJSON(nil, body)
		if err != nil && err != errTwice && err != errNoUTF8 && err != errTooDeep {
			t.Fatalf("%q: %v", body, err)
		}
	})
}

func TestSecretsAreCutDownWhereverTheyStand(t *testing.T) {
	secret := `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","uid":"u","annotations":{"a":"hunter2"}},"data":{"token":"hunter2"},"spec":{"nodeName":"n"}}`
	fields, err := Shipped().With([]string{"* data", "secrets data.token", "secrets metadata.annotations", "configmaps data"})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*Reduction{fields.Of("secrets", ""), fields.Of("configmaps", "")} {
		for _, body := range []string{
			secret,
			`{"kind":"SecretList","items":[` + strings.Replace(secret, `"kind":"Secret",`, "", 1) + `]}`,
			`{"kind":"List","items":[` + secret + `]}`,
			`{"kind":"Table","rows":[{"object":` + secret + `,"cells":["hunter2"]}]}`,
			`{"data":{"token":"hunter2"},"kind":"Secret"}`,
			`{"data":{"token":"hunter2"},"k\u0069nd":"Secr\u0065t"}`,
		} {
			reduced, err := of.AppendJSON(nil, []byte(body))
			if err != nil || strings.Contains(string(reduced), "hunter2") {
				t.Errorf("%s becomes %s: %v", body, reduced, err)
			}
		}
	}
}

func TestBrokenPathsAreRefused(t *testing.T) {
	for _, line := range []string{"pods", "pods ", " spec", `pods spec["a`, "pods [*].a", "pods spec..a"} {
		if _, err := ParseFields([]string{line}); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func TestTheFieldsOfProtobufAreNamed(t *testing.T) {
	named := func(plural, group string) string { return string(Shipped().Of(plural, group).namedOfProtobuf) }
	if all := Shipped().Of("pods", ""); string(all.named) != named("pods", "") {
		t.Errorf("protobuf shows only %s of a pod", named("pods", ""))
	}
	if of := named("widgets", "example.com"); !strings.Contains(of, "metadata.ownerReferences") {
		t.Errorf("protobuf shows only %s of a widget", of)
	}
	fields, err := Shipped().With([]string{"pods spec.priorityClassName", "pods spec.volumes"})
	if err != nil {
		t.Fatal(err)
	}
	if of := string(fields.Of("pods", "").namedOfProtobuf); strings.Contains(of, "priorityClassName") || strings.Contains(of, "spec.volumes ") {
		t.Errorf("protobuf shows %s of a pod", of)
	}
}
