package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// hashRounds are the rounds of SHA-256 that /hash does.
const hashRounds = 100

// site holds everything that answers are made of.
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

// ServeHTTP answers one request. HEAD gets what GET gets; leaving out the body is net/http's part.
//
// Paths are taken as they are: http.ServeMux would redirect unclean ones, where the other targets say 404.
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

// find returns what answers for a path, nil if nothing does.
func (s *site) find(path string) http.HandlerFunc {
	switch path {
	case "/health":
		return func(w http.ResponseWriter, _ *http.Request) { sendText(w, http.StatusOK, "ok") }
	case "/hash":
		return s.sendHash
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
		panic(err) // Text and a number are JSON.
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

// isKnown tells whether the client says that it has the content: If-None-Match by weak comparison (RFC 9110, 13.1.2).
//
// A comma inside somebody else's tag cuts that tag in two; neither half can equal ours, which is hex in quotes.
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

// send writes status and body. The length is set by hand, since net/http knows it only of short bodies.
func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// It fails only when the client is gone, which is its own matter.
	_, _ = w.Write(body)
}
