.PHONY: help build test test-long fuzz demo lint bench dist clean

help:
	@echo "make demo       set this machine up, build lazaret and show it at work"
	@echo "make test       set-up, build, checks, unit tests and end-to-end tests"
	@echo "make test-long  what takes too long for every change"
	@echo "make fuzz       each fuzzer for a minute; DURATION=1h, FUZZ=regex"
	@echo "make build      bin/lazaret"
	@echo "make lint       staticcheck, gosec, govulncheck and shellcheck"
	@echo "make bench      what it costs, beside others: docs/performance.md"
	@echo "make dist       packages for amd64 and arm64, in bin/dist"
	@echo "make clean      remove what the build made"

build:
	@.ci/build

test:
	@.ci/test

test-long:
	@.ci/test-long

fuzz:
	@.ci/fuzz "$(or $(DURATION),60s)" "$(FUZZ)"

demo:
	@.ci/demo

lint:
	@.ci/lint

bench:
	@.ci/bench

dist:
	@.ci/dist

clean:
	rm -rf bin image/helpers/linux-*
