# make            sets everything up and measures the default grid
# make test       runs the tests, with real frameworks
# make help       says what else there is
CORES ?= all
TARGET ?=
GRID ?=
ONLY ?=
NAME ?=
PAPER ?=
PYTHON ?=
WITH ?=

# Two runs would lock each other out of this folder: with -j they take turns.
.NOTPARALLEL:
.PHONY: run test test-zoo docs example paper report environments again network adapter-check gpu-check reference references pack merge page compare explain watch bisect clean help venv

quoted = '$(subst ','\'',$(1))'
# Of the configuration, what a user says here: grid=today only=torch.
setting = $(if $($(2)),$(call quoted,$(1)=$($(2))))
NARROWED = $(call setting,only,ONLY) $(call setting,only_networks,NETWORKS) $(call setting,minutes,MINUTES) $(call setting,platforms,PLATFORMS)
CHOSEN = $(if $(strip $(call setting,grid,GRID) $(NARROWED)),--config $(call setting,grid,GRID) $(NARROWED) --)
OWN = $(if $(PLATFORMS),--platforms $(call quoted,$(PLATFORMS)))
BOOTSTRAP = PYTHON=$(call quoted,$(PYTHON)) sh workflow/scripts/steptime/environments/bootstrap.sh

# A variable that no goal takes would be silent: `make GIRD=today` would measure the default grid.
ANYWHERE = CORES GRID TARGET ONLY NETWORKS MINUTES PLATFORMS PYTHON
TAKES.adapter-check = NAME
TAKES.bisect = FRAMEWORK FROM TO THREADS MARGIN
TAKES.compare = A B MARGIN
TAKES.example = FROM
TAKES.explain = A B
TAKES.merge = FROM
TAKES.network = FROM INPUT WITH VOCABULARY LOSS
TAKES.page = FROM PAPER
TAKES.pack = TO
TAKES.paper = PAPER
TAKES.venv = WITH
TAKES.watch = BASE CANDIDATE THREADS MARGIN
TAKERS = adapter-check bisect compare example explain merge pack network page paper venv watch
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
KNOWN = $(sort $(ANYWHERE) $(foreach goal,$(TAKERS),$(TAKES.$(goal))))
nearest = $(shell python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1))' $(call quoted,$(1)) $(KNOWN) 2>/dev/null)
meant = $(if $(nearest),did you mean $(nearest)?,known are $(KNOWN))
takers = $(foreach goal,$(TAKERS),$(if $(filter $(1),$(TAKES.$(goal))),`make $(goal)`))
$(foreach name,$(filter-out $(KNOWN),$(GIVEN)),$(error There is no variable $(name) ($(call meant,$(name)))))
$(foreach name,$(filter-out $(ANYWHERE) $(foreach goal,$(MAKECMDGOALS),$(TAKES.$(goal))),$(GIVEN)),\
	$(error $(name) is a variable of $(strip $(call takers,$(name))): name that goal, or leave $(name) out))

# What a user's shell has for other programs: packages of another Python, a locale that cannot say "±".
unexport PYTHONPATH PYTHONHOME PYTHONINSPECT PYTHONOPTIMIZE PYTHONWARNINGS
export PYTHONUTF8 := 1
# Snakemake keeps a cache there; some containers have a HOME that nobody may write to.
CACHE := $(shell cache="$${XDG_CACHE_HOME:-$$HOME/.cache}"; mkdir -p "$$cache" 2>&1 && test -w "$$cache" || echo none)
ifneq ($(CACHE),)
export XDG_CACHE_HOME := $(CURDIR)/.cache
endif

# A run's minutes begin with the command. Not of the tests, which last longer than the minutes of their runs.
run paper report again: export STEPTIME_BEGAN := $(shell date +%s)

run: venv  ## set everything up, then: .venv/bin/snakemake --cores $(CORES) $(CHOSEN) $(TARGET)
	@.venv/bin/snakemake --cores $(CORES) $(CHOSEN) $(TARGET)

test:  ## run the tests
	@$(BOOTSTRAP) cluster docs tests
	@.venv/bin/python -m pytest -m "alone and not seldom" tests/workflow
	@.venv/bin/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m "not (alone or seldom)" tests/slurm tests/workflow tests/unit

test-zoo:  ## prove every environment of the catalogue on six networks, time a tiny one, plant its defects: hours
	@$(BOOTSTRAP) cluster docs tests
	@.venv/bin/python -m pytest -q -m seldom tests/slurm tests/workflow tests/unit
	@STEPTIME_ZOO=all .venv/bin/python -m pytest -q -rs -m "" tests/workflow/test_every_environment.py \
		tests/workflow/test_ranks_of_frameworks.py tests/workflow/test_gpu_environments.py tests/workflow/test_gpu_rehearsal.py \
		tests/workflow/test_gpu_run.py tests/workflow/test_planted_trainings.py \
		tests/workflow/test_planted_kinds.py tests/workflow/test_planted_at_full_size.py tests/workflow/test_honest_networks.py

docs:  ## make the site of docs/: site/index.html
	@$(BOOTSTRAP) docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet

example:  ## show a report in the documents, docs/example/: make example FROM=results/report/index.html
	@mkdir -p docs/example && sed -E 's#<a href="\.\./[^"]*">([^<]*(<span class="unseen">[^<]*</span>)?)</a>#\1#g' \
		$(call quoted,$(or $(FROM),results/report/index.html)) >docs/example/index.html

PAPERS = $(patsubst resources/papers/%/paper.yaml,%,$(wildcard resources/papers/*/paper.yaml))
NAMED = $(or $(filter $(PAPER),$(PAPERS)),$(error Name a paper of $(PAPERS): make $(firstword $(MAKECMDGOALS)) PAPER=shi2016))

paper: venv  ## make the tables, figures and verdicts of a paper from its own grid: make paper PAPER=shi2016
	@.venv/bin/snakemake --cores $(CORES) --config $(call quoted,grid=$(or $(GRID),$(NAMED))) $(NARROWED) -- make_$(NAMED)

report: venv  ## make the report, results/report/index.html, and what it shows
	@.venv/bin/snakemake --cores $(CORES) $(CHOSEN) write_report

environments: venv  ## make all frameworks' environments, or some: make environments ONLY="torch theano-0.9"
	@workflow/scripts/launch environments.every --cores $(CORES) $(ONLY)

again: venv  ## measure once more the cells that were measured while something else was at work
	@cells=$$(workflow/scripts/launch cells.again $(if $(GRID),--grid $(call quoted,$(GRID)))) && \
		if [ -n "$$cells" ]; then \
			.venv/bin/snakemake --cores $(CORES) --force $(CHOSEN) $$cells && \
			.venv/bin/snakemake --cores $(CORES) $(CHOSEN) $(TARGET); \
		fi

network:  ## import a PyTorch module as a network: make network FROM=train.py:Net INPUT=3x32x32
	@$(BOOTSTRAP)
	@workflow/scripts/launch imported.module $(call quoted,$(or $(FROM),$(error Name a module: make network FROM=train.py:Net INPUT=3x32x32))) \
		--input $(call quoted,$(or $(INPUT),$(error Say what goes in: make network FROM=$(FROM) INPUT=3x32x32))) \
		$(if $(WITH),--arguments $(call quoted,$(WITH))) $(if $(VOCABULARY),--vocabulary $(call quoted,$(VOCABULARY))) \
		$(if $(LOSS),--loss $(call quoted,$(LOSS))) $(if $(PYTHON),--python $(call quoted,$(PYTHON)))

adapter-check: venv  ## say what an adapter lacks and what it gets wrong: make adapter-check NAME=torch
	@workflow/scripts/launch prove.adapter --adapter $(call quoted,$(or $(NAME),$(error Name an adapter: make adapter-check NAME=torch))) \
		$(if $(ONLY),--environment $(call quoted,$(ONLY)))

gpu-check: venv  ## on a machine with a GPU: run in ten minutes all that needs one, and say what failed
	@workflow/scripts/launch gpu_check $(ONLY)

reference: venv  ## write docs/reference/configuration.md anew from config/schemas/
	@workflow/scripts/launch plan.reference > docs/reference/configuration.md

# Of the grid `default`, and of Table 4: they hold nothing of a machine.
SHIPPED = fcn5-b64 alexnet-b16 resnet50-b16 lstm32-b128 gpt-small-b4 fcn8-b64 lstm64-b128

references: venv  ## compute the float64 references that come with the project, resources/references/, where the code has changed
	@.venv/bin/snakemake --cores $(CORES) $(SHIPPED:%=results/references/%.npz)
	@mkdir -p resources/references && cp $(SHIPPED:%=results/references/%.npz) resources/references/

pack: venv  ## put all results into one file, to carry to another machine: make pack TO=results.tar.gz
	@workflow/scripts/launch carry.pack pack --to $(call quoted,$(or $(TO),results.tar.gz)) $(OWN)

merge: venv  ## take the results of another machine: make merge FROM=results.tar.gz (or another results folder)
	@workflow/scripts/launch carry.pack take --from $(call quoted,$(or $(FROM),$(error Name what to take: make merge FROM=results.tar.gz))) $(OWN)

page: venv  ## write docs/papers/<paper>.md of a pack, and keep it: make page PAPER=shi2016 FROM=results.tar.gz
	@workflow/scripts/launch page.paper --paper $(NAMED) \
		$(if $(FROM),--from $(call quoted,$(FROM))) $(if $(GRID),--grid $(call quoted,$(GRID)))

compare: venv  ## say which of two is faster, cell by cell: make compare A=torch-1.4 B=torch (or packs, folders, platforms)
	@workflow/scripts/launch compare.results $(call quoted,$(or $(A),$(error Name $(if $(B),what $(B) is compared with,two things): make compare A=torch-1.4 B=torch))) \
		$(call quoted,$(or $(B),$(error Name what $(A) is compared with: make compare A=$(A) B=torch))) \
		--answer $(if $(MARGIN),--margin $(call quoted,$(MARGIN))) $(OWN)

explain: venv  ## say by which layers one framework takes longer than another: make explain A=mxnet B=torch NETWORKS=fcn5
	@workflow/scripts/launch explain.run $(call quoted,$(or $(A),$(error Name a framework: make explain A=mxnet B=torch NETWORKS=fcn5))) \
		$(call quoted,$(or $(B),$(error Name another one: make explain A=$(A) B=torch NETWORKS=fcn5))) \
		--networks $(or $(NETWORKS),fcn5) --cores $(CORES)

WATCHED = $(if $(NETWORKS),--networks $(NETWORKS)) $(if $(THREADS),--threads $(THREADS)) \
	$(if $(MINUTES),--minutes $(call quoted,$(MINUTES))) $(if $(MARGIN),--margin $(call quoted,$(MARGIN)))

watch: venv  ## compare a new version or wheel with a baseline: make watch BASE=torch CANDIDATE=2.12.0
	@workflow/scripts/launch compare.watch $(call quoted,$(or $(BASE),$(error Name a framework or an environment: make watch BASE=torch CANDIDATE=2.12.0))) \
		$(call quoted,$(or $(CANDIDATE),$(error Name a candidate: make watch BASE=$(BASE) CANDIDATE=2.12.0))) $(WATCHED)

bisect: venv  ## find the release that made a network slower or faster: make bisect FRAMEWORK=tensorflow FROM=2.4 TO=2.21 NETWORKS=lstm32
	@workflow/scripts/launch compare.bisect $(call quoted,$(or $(FRAMEWORK),$(error Name a framework: make bisect FRAMEWORK=tensorflow FROM=2.4 TO=2.21))) \
		$(call quoted,$(or $(FROM),$(error Name the older release: make bisect FRAMEWORK=$(FRAMEWORK) FROM=2.4 TO=2.21))) \
		$(call quoted,$(or $(TO),$(error Name the newer release: make bisect FRAMEWORK=$(FRAMEWORK) FROM=$(FROM) TO=2.21))) $(WATCHED)

clean:  ## remove .venv, the frameworks' environments and caches; results and logs stay
	rm -rf .venv .environments .cache .pytest_cache .ruff_cache
	find workflow tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

help:  ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile
	@echo '  CORES=16 TARGET=shi2016_table4 GRID=paper says how many cores, which table or figure, which grid; PYTHON=python3.12 which Python.'
	@echo '  ONLY="torch jax" NETWORKS="fcn5 gpt-small" MINUTES=30 says which frameworks and networks of the grid, and for how long.'

venv:  ## make .venv, and add the packages of groups: make venv WITH="cluster docs tests"
	@$(BOOTSTRAP) $(WITH)
