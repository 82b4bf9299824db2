// Command go-nethttp is a bundled target: the standard library's HTTP server. Its responses equal those of rust-hyper.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace limits how long a shutdown waits for requests in flight.
const grace = 5 * time.Second

func main() {
	listen := flag.String("listen", "", "listen on this address, `HOST:PORT`; port 0 chooses a free one (required)")
	flag.Parse()
	if *listen == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: go-nethttp --listen HOST:PORT")
		os.Exit(2)
	}
	if err := run(*listen); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until SIGTERM or SIGINT, completes requests in flight and returns. It prints its address to stdout.
func run(listen string) error {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", listen, err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())

	server := &http.Server{Handler: newSite("go-nethttp")}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("the server stopped unexpectedly: %w", err)
	case <-stop.Done():
	}

	limit, cancelLimit := context.WithTimeout(context.Background(), grace)
	defer cancelLimit()
	err = server.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("connections still open after %v were closed", grace)
	}
	return err
}
