package main

import (
	"crypto/sha256"
	"fmt"
)

// file is one file with everything that its responses need.
type file struct {
	bytes []byte
	// Strong, quoted: the first 16 bytes of the content's SHA-256 in hex.
	etag string
}

// fileLengths are names and lengths in bytes.
var fileLengths = map[string]int{"1k": 1 << 10, "10k": 10 << 10, "100k": 100 << 10, "1m": 1 << 20}

// redirects maps names to the targets of /r/{name}.
var redirects = map[string]string{
	"blog":   "/file/10k",
	"docs":   "/file/100k",
	"github": "/file/1k",
	"latest": "/hash",
	"status": "/health",
}

// generateFiles generates the files. The shorter ones are prefixes of the longest.
func generateFiles() map[string]file {
	longest := noise(fileLengths["1m"])
	files := make(map[string]file, len(fileLengths))
	for name, length := range fileLengths {
		bytes := longest[:length]
		digest := sha256.Sum256(bytes)
		files[name] = file{bytes: bytes, etag: fmt.Sprintf("\"%x\"", digest[:16])}
	}
	return files
}

// noise returns incompressible bytes that are the same at every start: the top bytes of Knuth's MMIX generator,
// seeded with 0.
func noise(length int) []byte {
	bytes := make([]byte, length)
	state := uint64(0)
	for i := range bytes {
		state = state*6364136223846793005 + 1442695040888963407
		bytes[i] = byte(state >> 56)
	}
	return bytes
}
