package reduction

import "testing"

func BenchmarkAppendJSON(b *testing.B) {
	body := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"default","uid":"0d2c9a4e-0000-4000-8000-000000000001","resourceVersion":"105","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web"}},"spec":{"nodeName":"node-1","containers":[`)
	for i := 0; i < 40; i++ {
		body = append(body, `{"name":"c","image":"registry.example.com/web:1","env":[{"name":"A","value":"b"}]},`...)
	}
	body = append(body, `{}]},"status":{"phase":"Running","podIP":"10.0.0.7"}}`...)
	r := Shipped().Of("pods", "")
	var to []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if to, err = r.AppendJSON(to[:0], body); err != nil {
			b.Fatal(err)
		}
	}
}
