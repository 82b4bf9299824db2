# The commands of the README. Each target installs what it needs.

CARGO  ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLS  := $(CURDIR)/.tools/bin
K6     := go.k6.io/k6@v1.8.1
MDBOOK := 0.5.4
PY_SPY := 0.4.3
ZIG    := ziglang==0.17.1 cargo-zigbuild==0.24.1
NFPM   := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
CYCLONEDX := 0.5.9
PREFIX ?= /usr/local
export PATH := $(PATH):$(TOOLS)

.PHONY: help demo build-demo build install release test-release test lint docs self-check bench bench-check bench-aa bench-kinds bench-profiles chaos soak fuzz screenshots assets k6 wrk chromium network podman perf py-spy guest kubernetes test-kubernetes valgrind release-tools

help: ## List targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## Build quickly, without Kubernetes, and compare two servers: make demo ARGS='--duration 5s --once'
	@# k6 gives way to cargo, and is compiled while that has work for one processor only.
	@$(MAKE) --no-print-directory -j2 build-demo k6
	@$(TARGET)/demo/brewbench demo $(ARGS)

build-demo: assets
	@$(CARGO) build --profile demo --locked --no-default-features --package brewbench-cli --package rust-hyper
	@scripts/install-targets.sh $(TARGET)/demo

build: assets ## Build the program and the bundled targets in release mode
	@$(CARGO) build --release --locked --package brewbench-cli --package rust-hyper $(EXTRA)
	@scripts/install-targets.sh $(TARGET)/release

install: build ## Install program, targets and systemd units: make install PREFIX=/usr/local DESTDIR=
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" deploy/install.sh $(TARGET)/release

release: assets release-tools ## Build archives, packages and images for x86_64 and aarch64: make release TO=folder ARCH=x86_64
	@K6=$(K6) scripts/release.sh "$(TARGET)" "$(or $(TO),$(TARGET)/dist)" $(ARCH)

test-release: network podman release-tools ## Install, use, upgrade and remove what `make release` has built, as root: make test-release TO=folder
	@test -d .tools/bookworm || { echo "bookworm: debootstrap into .tools/bookworm" >&2; rm -rf .tools/bookworm.part && \
	  debootstrap --variant=minbase --include=systemd,man-db bookworm .tools/bookworm.part >/dev/null && mv .tools/bookworm.part .tools/bookworm; }
	@scripts/arm64.sh "$(CURDIR)/.tools/arm64"
	@scripts/test-release.sh "$(or $(TO),$(TARGET)/dist)" .tools/bookworm .tools/arm64

test: assets k6 wrk chromium network podman perf py-spy guest ## Run all checks, with real k6 and a real browser, or a part: make test PART=lint, server or agents
	@scripts/test.sh $(TARGET) $(PART)

lint: assets ## Check format, clippy, rustdoc, and licences and vulnerabilities of dependencies
	@scripts/lint.sh

bench: EXTRA = --package brewbench-bench
bench: build k6 wrk chromium ## Benchmark brewbench itself; RECORD=1 appends the results to bench/history.jsonl
	@$(TARGET)/release/brewbench-bench all $(TARGET)/release/targets --json $(TARGET)/bench.json \
	  $(if $(RECORD),--record bench/history.jsonl)
	@echo "results as JSON: $(TARGET)/bench.json"

bench-check: assets valgrind ## Compare CPU instructions of pages and an import with the committed counts; WRITE=1 updates the file
	@$(CARGO) run --release --locked --quiet --package brewbench-bench -- instructions $(if $(WRITE),--write)

docs: build-demo ## Generate the reference pages, and build the documentation as a website with an example
	@BREWBENCH_WRITE_DOCS=1 $(CARGO) test --quiet --locked --workspace --test all docs::generated >/dev/null
	@command -v mdbook >/dev/null || { echo "mdbook: cargo install mdbook $(MDBOOK) into .tools/bin" >&2; \
	  $(CARGO) install --quiet --locked --root .tools --no-default-features --features search mdbook@$(MDBOOK); }
	@mdbook build docs --dest-dir "$(abspath $(TARGET))/book"
	@scripts/example.sh $(TARGET)/demo/brewbench "$(abspath $(TARGET))/book/example"
	@echo "the documentation: $(TARGET)/book/index.html"

self-check: assets ## Simulate error rates of comparisons, gates and trends: make self-check ROUNDS=1000
	@$(CARGO) run --release --locked --quiet --package brewbench-bench -- self-check $(ROUNDS)

bench-aa: EXTRA = --package brewbench-bench
bench-aa: build k6 ## Test the statistics on real runs: a target against itself, and against a slower one
	@$(TARGET)/release/brewbench-bench aa $(TARGET)/release/targets

bench-kinds: EXTRA = --package brewbench-bench
bench-kinds: build k6 podman guest ## Measure one server as program, in containers, in a virtual machine and running already, as root
	@$(TARGET)/release/brewbench-bench kinds $(TARGET)/release/targets "$(or $(TO),$(TARGET)/kinds)" $(or $(REPEAT),8)

bench-profiles: EXTRA = --package brewbench-bench
bench-profiles: build k6 perf ## Compare profiles of targets with themselves, and measure what profilers cost; as root
	@$(TARGET)/release/brewbench-bench profiles $(TARGET)/release/targets

chaos: EXTRA = --package brewbench-bench
chaos: build k6 network podman guest ## Inject failures into real runs, as root: make chaos TIMES=50
	@$(TARGET)/release/brewbench-bench chaos $(TARGET)/release/targets $(or $(TIMES),50) $(SEED)

soak: EXTRA = --package brewbench-bench
soak: build k6 ## Do thousands of short runs and check for leaks: make soak RUNS=3000
	@$(TARGET)/release/brewbench-bench soak $(TARGET)/release/targets $(or $(RUNS),3000)

fuzz: ## Fuzz every decoder of untrusted bytes, and parse a million corrupted k6 pushes: make fuzz EACH=300
	@scripts/fuzz.sh $(or $(EACH),300)
	@PROPTEST_CASES=250000 $(CARGO) test --release --locked --package brewbench-agent --test agents series::hostile

screenshots: assets chromium ## Take screenshots of every page, light and dark, wide and narrow: make screenshots TO=folder
	@scripts/screenshots.sh "$(or $(TO),$(TARGET)/screenshots)"

assets: ## Download the scripts of the web pages
	@assets/fetch.sh

k6: ## Install k6 into .tools/bin unless it is in PATH
	@command -v k6 >/dev/null || { echo "k6: go install $(K6) into .tools/bin" >&2; GOBIN=$(TOOLS) nice go install $(K6); }

wrk: ## Install Debian's wrk unless it is in PATH
	@command -v wrk >/dev/null || { echo "wrk: apt-get install wrk" >&2; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends wrk >/dev/null; }

chromium: ## Install Debian's chromium unless it is installed
	@command -v chromium >/dev/null || { echo "chromium: apt-get install chromium" >&2; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

network: ## Install Debian's iproute2 and nftables unless they are installed
	@{ command -v ip && command -v tc && command -v nft; } >/dev/null || { echo "ip, tc, nft: apt-get install iproute2 nftables" >&2; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends iproute2 nftables >/dev/null; }

podman: ## Install Debian's podman unless it is installed, with runc, which works on all machines
	@{ command -v podman && command -v runc && command -v conmon && test -x /usr/lib/podman/netavark && command -v iptables; } >/dev/null || { \
	  echo "podman: apt-get install podman runc conmon netavark iptables" >&2; apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends podman runc conmon netavark iptables >/dev/null; }

perf: ## Install Debian's linux-perf unless perf is installed
	@command -v perf >/dev/null || { echo "perf: apt-get install linux-perf" >&2; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends linux-perf >/dev/null; }

py-spy: ## Install the Python profiler py-spy into .tools/bin unless it is in PATH, with Debian's Python and pip
	@test -x /usr/bin/python3 && /usr/bin/python3 -m pip --version >/dev/null 2>&1 || { \
	  echo "python3, pip: apt-get install python3 python3-pip" >&2; apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-pip >/dev/null; }
	@command -v py-spy >/dev/null || { echo "py-spy: pip install py-spy $(PY_SPY) into .tools/bin" >&2; \
	  /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
	    --target .tools/py-spy py-spy==$(PY_SPY) && mkdir -p $(TOOLS) && ln -sf ../py-spy/bin/py-spy $(TOOLS)/py-spy; }

guest: ## Install Debian's QEMU and tools for disk images, and its cloud kernel into .tools/guest
	@scripts/guest.sh "$(CURDIR)/.tools/guest"

kubernetes: ## Build Kubernetes and containerd for tests unless they are built, and install Debian's etcd, runc and BusyBox
	@scripts/kubernetes.sh

test-kubernetes: kubernetes network k6 ## Run the tests with a Kubernetes cluster, as root
	@$(CARGO) build --quiet --locked --workspace && scripts/install-targets.sh $(TARGET)/debug
	@BREWBENCH_NO_SKIP=1 $(CARGO) test --locked --workspace --test cluster --test chart --test load --test targets --test site

valgrind: ## Install Debian's valgrind unless it is installed
	@command -v valgrind >/dev/null || { echo "valgrind: apt-get install valgrind" >&2; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends valgrind >/dev/null; }

release-tools: ## Install Zig, nfpm and cargo-cyclonedx into .tools, Debian's buildah, debootstrap and rpm
	@test -x .tools/zig/bin/cargo-zigbuild || { echo "zig: pip install $(ZIG) into .tools/zig" >&2; \
	  /usr/bin/python3 -m pip --version >/dev/null 2>&1 || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip >/dev/null; }; \
	  /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --target .tools/zig $(ZIG); }
	@command -v nfpm >/dev/null || { echo "nfpm: go install $(NFPM) into .tools/bin" >&2; GOBIN=$(TOOLS) nice go install $(NFPM); }
	@command -v cargo-cyclonedx >/dev/null || { echo "cargo-cyclonedx: cargo install cargo-cyclonedx $(CYCLONEDX) into .tools/bin" >&2; \
	  $(CARGO) install --quiet --locked --debug --root .tools cargo-cyclonedx@$(CYCLONEDX); }
	@rustup --quiet target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl
	@{ command -v buildah && command -v debootstrap && command -v rpm; } >/dev/null || { \
	  echo "buildah, debootstrap, rpm: apt-get install buildah debootstrap rpm" >&2; apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah debootstrap rpm >/dev/null; }
