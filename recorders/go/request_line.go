package retrograde

import (
	"net/http"
	"net/url"
	"strings"
)

// requestLine is the part of a request's address that decides whether and how it is recorded.
type requestLine struct {
	group, plural, name, subresource string
	isWatch                          bool
}

// parseRequest reads the address as an API server does. It is false for a request that concerns no objects, and for
// one that may carry tokens or upgrades its connection.
func parseRequest(method string, address *url.URL) (requestLine, bool) {
	var line requestLine
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "":
	default:
		return line, false
	}
	parts := pathParts(address)
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		line.group, parts = parts[1], parts[3:]
	default:
		return line, false
	}
	// The old path of watches.
	if parts[0] == "watch" {
		line.isWatch, parts = true, parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return line, false
	}
	line.plural = parts[0]
	if len(parts) > 1 {
		line.name = parts[1]
	}
	if len(parts) > 2 {
		line.subresource = parts[2]
	}
	switch line.group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return line, false
	}
	switch line.subresource {
	case "exec", "attach", "portforward", "proxy", "log", "token":
		return line, false
	}
	reads := method == http.MethodGet || method == http.MethodHead || method == ""
	line.isWatch = reads && (line.isWatch || asksForWatch(address.RawQuery))
	return line, true
}

// pathParts returns the segments of a path, decoded.
func pathParts(address *url.URL) []string {
	parts := make([]string, 0, 8)
	for part := range strings.SplitSeq(address.EscapedPath(), "/") {
		if part == "" {
			continue
		}
		if strings.IndexByte(part, '%') >= 0 {
			if decoded, err := url.PathUnescape(part); err == nil {
				part = decoded
			}
		}
		parts = append(parts, part)
	}
	return parts
}

func asksForWatch(query string) bool {
	asks := false
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if value, found := strings.CutPrefix(pair, "watch="); found {
			switch value {
			case "1", "t", "T", "true", "True", "TRUE":
				asks = true
			default:
				asks = false
			}
		}
	}
	return asks
}
