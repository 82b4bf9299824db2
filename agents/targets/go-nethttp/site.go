package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"
)

// hashRounds is the number of SHA-256 rounds in /hash.
const hashRounds = 100

// site holds the content of all responses.
type site struct {
	name  string
	files map[string]file
}

// hashed is the body of /hash.
type hashed struct {
	Hash      string `json:"hash"`
	Timestamp int64  `json:"timestamp"`
	Source    string `json:"source"`
}

func newSite(name string) *site {
	return &site{name: name, files: generateFiles()}
}

// ServeHTTP handles one request. HEAD is handled like GET; net/http omits the body.
//
// Paths are used as they are: http.ServeMux would redirect unclean ones, for which the other targets return 404.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := s.find(r.URL.Path)
	switch {
	case answer == nil:
		sendText(w, http.StatusNotFound, "not found\n")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		sendText(w, http.StatusMethodNotAllowed, "method not allowed\n")
	default:
		answer(w, r)
	}
}

// find returns the handler of a path, or nil.
func (s *site) find(path string) http.HandlerFunc {
	switch path {
	case "/":
		return func(w http.ResponseWriter, _ *http.Request) { sendText(w, http.StatusOK, "hello\n") }
	case "/health":
		return func(w http.ResponseWriter, _ *http.Request) { sendText(w, http.StatusOK, "ok") }
	case "/hash":
		return s.sendHash
	case "/debug/pprof/profile":
		return pprof.Profile
	case "/debug/pprof/heap", "/debug/pprof/allocs":
		return pprof.Handler(path[len("/debug/pprof/"):]).ServeHTTP
	}
	if name, ok := strings.CutPrefix(path, "/file/"); ok {
		if f, ok := s.files[name]; ok {
			return f.send
		}
	} else if name, ok := strings.CutPrefix(path, "/r/"); ok {
		if to, ok := redirects[name]; ok {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				send(w, http.StatusMovedPermanently, nil)
			}
		}
	}
	return nil
}

func (s *site) sendHash(w http.ResponseWriter, _ *http.Request) {
	now := time.Now().UnixMilli()
	digest := sha256.Sum256([]byte(strconv.FormatInt(now, 10)))
	for range hashRounds - 1 {
		digest = sha256.Sum256(digest[:])
	}
	body, err := json.Marshal(hashed{Hash: hex.EncodeToString(digest[:]), Timestamp: now, Source: s.name})
	if err != nil {
		panic(err) // Strings and a number are always valid JSON.
	}
	w.Header().Set("Content-Type", "application/json")
	send(w, http.StatusOK, body)
}

func (f file) send(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", f.etag)
	if f.isKnown(r.Header.Values("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	send(w, http.StatusOK, f.bytes)
}

// isKnown reports whether the client has the content: If-None-Match by weak comparison (RFC 9110, 13.1.2).
//
// A comma inside a foreign tag splits that tag; neither half can equal ours, which is quoted hex.
func (f file) isKnown(lines []string) bool {
	for _, line := range lines {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.Trim(tag, " \t")
			if tag == "*" || strings.TrimPrefix(tag, "W/") == f.etag {
				return true
			}
		}
	}
	return false
}

func sendText(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(w, status, []byte(body))
}

// send writes status and body. It sets the length, because net/http knows it only for short bodies.
func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// This fails only if the client is gone.
	_, _ = w.Write(body)
}
