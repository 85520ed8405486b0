# Everything a contributor or CI runs is a target here; `make help` lists them.
# Needed: Go, git, make, a C compiler (race detector), a network that reaches Go modules. No containers.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The same flags for every build and test: a flipped -trimpath or CGO_ENABLED recompiles all of Kubernetes.
export GOFLAGS := -trimpath -buildvcs=false
export CGO_ENABLED := 0
export GOWORK := off

# Modules with a go.mod of their own; CODE_MODULES hold Go code of ours beyond a single main, INTEROP has the dependencies of
# other projects' clients.
MODULES := $(patsubst %/go.mod,%,$(wildcard ./go.mod test/interop/go.mod test/sandbox/go.mod test/sandbox/*/go.mod))
TOOL_MODULES := hack/tools hack/tools/golangci-lint
CODE_MODULES := $(patsubst %/go.mod,%,$(wildcard ./go.mod test/sandbox/go.mod))
INTEROP := $(patsubst %/go.mod,%,$(wildcard test/interop/go.mod))

OUT := out
TOOL := go tool -modfile=hack/tools/go.mod
CONTROL_PLANE := go -C test/sandbox run ./cmd/controlplane
GOLANGCI_LINT := go tool -modfile=$(CURDIR)/hack/tools/golangci-lint/go.mod golangci-lint

# Under `make test TEST_FLAGS='-run Clone -v'` the flags reach every go test.
TEST_FLAGS ?=
UNIT_TIMEOUT ?= 35m
E2E_TIMEOUT ?= 45m

say = @echo "==> $(1)"

##@ Everyday

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z0-9-]*:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: sandbox
sandbox: ## Run a management cluster, the manager and a simulated Proxmox VE on this machine and scale a cluster in it
	@go run ./cmd/capve sandbox up

.PHONY: build
build: ## Build all commands into out/bin
	$(call say,building the commands into $(OUT)/bin)
	@mkdir -p $(OUT)/bin
	@go build -o $(OUT)/bin/ ./cmd/...

##@ Tests

.PHONY: test
test: test-unit test-interop test-e2e ## Run all tests: unit and contract tests, other projects' clients, then the sandbox end to end

.PHONY: test-unit
test-unit: ## Run the tests of the root module with the race detector, some of them on a real API server
	$(call say,finding etcd and kube-apiserver (the first run builds them: 6 minutes on 2 idle cores))
	@assets=$$($(CONTROL_PLANE)); \
	echo "==> testing the root module with the race detector (the first run compiles its dependencies)"; \
	KUBEBUILDER_ASSETS="$$assets" CGO_ENABLED=1 go test -race -timeout $(UNIT_TIMEOUT) $(TEST_FLAGS) $$(go list ./... | grep -v '/test/soak$$')
	$(call say,testing the crash campaign for half a minute: without the race detector it plays ten times as many seeds)
	@go test -timeout $(UNIT_TIMEOUT) $(TEST_FLAGS) ./test/soak

# make soak SEED=1234 SEEDS=1 repeats the run of a seed; SOAK_FLAGS=-soak.trace shows all of it. No seed is begun after
# SOAK_TIME, for example 10m.
SEED ?= 1
SEEDS ?= 10000
SOAK_TIME ?= 0
SOAK_FLAGS ?=

.PHONY: soak
soak: ## Run the crash campaign: $$SEEDS drawn lives of clusters from $$SEED on, in virtual time (10,000 take about an hour on 2 cores)
	$(call say,running $(SEEDS) seeds from $(SEED) on)
	@go test -count=1 -timeout 0 -v -run TestCampaign ./test/soak -args -soak.seed $(SEED) -soak.seeds $(SEEDS) -soak.time $(SOAK_TIME) $(SOAK_FLAGS) \
		| grep -v "^=== \|^ *--- PASS"

.PHONY: contract
contract: ## Replay recordings of Proxmox VE (of PVE_RECORDINGS) against pvesim and print how many answers agree
	$(call say,replaying recordings of Proxmox VE against pvesim)
	@mkdir -p $(OUT)/contract
	@CONTRACT_REPORT=$(CURDIR)/$(OUT)/contract go test -count=1 -v $(TEST_FLAGS) ./test/contract

.PHONY: test-interop
test-interop: ## Let other projects' Proxmox VE clients work against pvesim
	$(call say,letting the client of CAPMOX work against pvesim)
	@cd test/interop && go test -timeout 5m $(TEST_FLAGS) ./...

.PHONY: bench
bench: ## Measure pvesim: a world of 2,000 VMs, made and read over HTTPS; and count what a machine asks of Proxmox VE, by endpoint
	@go test ./pkg/pvesim -run - -bench . -benchtime 3s -cpu 2
	@assets=$$($(CONTROL_PLANE)) && KUBEBUILDER_ASSETS="$$assets" go test ./test/integration -count=1 -v -run TestRequestBudget | grep -v '^ *===\|^ *---'

.PHONY: assets
assets: ## Build etcd and kube-apiserver unless they are there and print KUBEBUILDER_ASSETS for running tests by hand
	@assets=$$($(CONTROL_PLANE)); echo "export KUBEBUILDER_ASSETS=$$assets"

.PHONY: test-e2e
test-e2e: ## Run the sandbox's scenario end to end
	$(call say,running the sandbox end to end (the first run builds Cluster API))
	@cd test/sandbox && go test -timeout $(E2E_TIMEOUT) -v $(TEST_FLAGS) ./...

##@ Checks

.PHONY: lint
lint: ## Run golangci-lint over all our modules
	$(call say,linting (the first run builds golangci-lint: about 90 s of CPU))
	@status=0; for module in $(CODE_MODULES) $(INTEROP); do \
		echo "    $$module"; \
		(cd $$module && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...) || status=$$?; \
	done; exit $$status

.PHONY: fmt
fmt: ## Format all Go code as lint wants it
	@for module in $(CODE_MODULES) $(INTEROP); do (cd $$module && $(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: verify
verify: ## Check that generated files and all go.mod and go.sum are up to date
	$(call say,generating and tidying: neither may change a file)
	@hack/unchanged $(MAKE) generate tidy

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that our code reaches (skips when the database is out of reach)
	$(call say,looking for known vulnerabilities)
	@hack/vulncheck $(CODE_MODULES)

##@ Generated files

.PHONY: generate
generate: ## Generate deep copies, CRDs, RBAC, webhook manifests, docs/machine-life.md and docs/fields.md
	$(call say,generating deep copies and CRDs and RBAC and webhook manifests)
	@$(TOOL) controller-gen object paths=./api/...
	@$(TOOL) controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	@$(TOOL) controller-gen \
		rbac:roleName=manager-role webhook \
		paths=./controllers/... paths=./webhooks/... \
		output:rbac:artifacts:config=config/rbac output:webhook:artifacts:config=config/webhook
	$(call say,having the planner live through docs/machine-life.md)
	@go test -count=1 ./pkg/plan -run TestThePageOfTheLifeOfAMachine -update
	$(call say,writing the table of fields to docs/fields.md)
	@go test -count=1 ./pkg/plan/vmconfig -run TestThePageOfTheFields -update

.PHONY: tidy
tidy: ## Run go mod tidy in every module
	$(call say,tidying go.mod and go.sum)
	@for module in $(MODULES) $(TOOL_MODULES); do echo "    $$module"; (cd $$module && go mod tidy); done

.PHONY: manifests
manifests: ## Write what clusterctl installs to out/release
	$(call say,writing the release manifests to $(OUT)/release)
	@mkdir -p $(OUT)/release
	@$(TOOL) kustomize build config/default > $(OUT)/release/infrastructure-components.yaml
	@$(TOOL) kustomize build config/runtime-extension > $(OUT)/release/runtime-extension.yaml
	@cp metadata.yaml templates/cluster-template*.yaml $(OUT)/release/

.PHONY: clean
clean: ## Remove what the other targets wrote (not the Go caches)
	@rm -rf $(OUT)
