# Each command below sets up what it needs in a virtual environment of this folder, once.
#
#   PYTHON=python3.12 make test    takes that Python, in an environment of its own

ifdef PYTHON
VENV := .venv-$(notdir $(PYTHON))
else
VENV := .venv
endif
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Most of what is installed is never imported: what is, is compiled then.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# The environment has its own ROS 2. One that is sourced, or another environment of this
# kind that is active, would mix with it.
unexport AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH PYTHONPATH
unexport LD_LIBRARY_PATH RMW_IMPLEMENTATION _ROS_WHEELS_BOOTSTRAP_COMPLETE
export AMENT_PREFIX_PATH := $(abspath $(VENV))
# A process would compile all that it imports anew, which takes most of a second: tests start some
# 200 programs.
unexport PYTHONDONTWRITEBYTECODE
# Stay away from other ROS 2 programs in the network. Tests and demo choose domains of
# their own, to keep apart on this machine as well.
ROS_AUTOMATIC_DISCOVERY_RANGE ?= LOCALHOST
export ROS_AUTOMATIC_DISCOVERY_RANGE

# What every command needs, for the package and the demo. Each further group is installed by its
# commands; `make test` and others need all but the following.
BASE := requirements/ros.txt requirements/sim.txt
# Those of the benchmarks are large; `make bench` and `make contact-problems` alone need them. So are
# CasADi, JAX and PyTorch, without which `make test` skips their tests; `make doors` runs them.
DOORS := requirements/casadi.txt requirements/jax.txt requirements/torch.txt
REQUIREMENTS := $(filter-out requirements/bench.txt $(DOORS),$(wildcard requirements/*.txt))
MESSAGES := $(shell find msg -type f -not -path '*/.*' -not -path 'msg/test/*' -not -name '*.pyc')
# Files of tests are spread over processes; ARGS=-n0 keeps to one, as debuggers want. There are
# three for two processors, since some tests wait for programs.
WORKERS := $(shell n=$$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)); echo $$((n < 6 ? n : 6)))
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PACKAGE := setup.py setup.cfg pyproject.toml package.xml \
  $(shell find delassus delassus_ros launch config resource -type f -not -name '*.pyc' 2>/dev/null)

# One installation at a time in the environment.
.NOTPARALLEL:

.PHONY: help
help:
	@echo 'make demo       simulated quadruped, node and live view; DEMO_SECONDS=5 ends by itself;'
	@echo '                ROBOT=geared takes one with geared joints and a four-bar'
	@echo 'make record     the demo, recorded to demo.mcap or RECORD=run.mcap'
	@echo 'make walk       simulated quadruped, node and whole-body controller: it trots; WALK_SECONDS=10'
	@echo '                ends by itself with a verdict, VIEW=1 opens a viewer, RECORD=walk.gif films'
	@echo 'make balance    simulated humanoid that stands, squats and steps; BALANCE_SECONDS=10 likewise'
	@echo 'make arm        simulated arm, node and operational-space controller: it wipes a table;'
	@echo '                ARM_SECONDS=14 ends by itself, ARGS="--surface curved" takes a cylinder'
	@echo 'make estimate   the quadruped walks, and the forces at its feet are told without sensors;'
	@echo '                ESTIMATE_SECONDS=10 ends by itself with a verdict'
	@echo '                On a slow machine these four take longer; REALTIME=1 keeps to the clock'
	@echo 'make view       a robot in the browser, with sliders and live ellipsoids;'
	@echo '                ROBOT=my_robot.urdf takes your own, ARGS=--forces shows contact forces'
	@echo 'make test       all tests but the long ones; ARGS="-k name" chooses'
	@echo 'make test-all   the long ones as well, and random cases by chance'
	@echo 'make launch-tests'
	@echo '                those of the launch files; LAUNCH=FOLDER has launch, launch_ros, launch_pytest'
	@echo 'make soak       ten minutes at 1 kHz with a 30-joint humanoid, every joint state accounted'
	@echo '                for; SOAK_SECONDS=60 makes it shorter, ARGS=--help shows the limits'
	@echo 'make faults     single faults put into the product, and whether the tests find each of them;'
	@echo '                ARGS=age chooses by kind or name'
	@echo 'make bench      benchmarks beside Pinocchio and CasADi, to docs/benchmarks; ARGS=--quick'
	@echo '                a sample to build/quick/benchmarks'
	@echo 'make contact-problems'
	@echo '                2 000 problems of contact with friction as HDF5 and Parquet, and solvers'
	@echo '                side by side; ARGS="--quick", "--output FOLDER", "--fuzz N"'
	@echo 'make papers     tables and figures of the papers beside ours, with verdicts, to docs/papers;'
	@echo '                ARGS="--page efpa" writes one page, ARGS=--quick a sample to build/quick/papers'
	@echo 'make lint       ruff and mypy'
	@echo 'make setup      only sets up $(VENV)'
	@echo 'make doors      installs CasADi, JAX and PyTorch, and runs the tests of what needs them'
	@echo 'make docs       builds the documentation site in build/site'
	@echo 'make pictures   draws the pictures of the documentation anew; ARGS=film draws that of README'
	@echo 'make clean      removes all that these commands made'
	@echo 'PYTHON=python3.12 make ... takes that Python (3.10 to 3.14)'

.PHONY: demo
demo: $(STAMPS)/package
	@$(BIN)/delassus_demo $(if $(ROBOT),--robot $(ROBOT)) $(ARGS)

.PHONY: view
view: $(STAMPS)/library $(STAMPS)/view
	@$(BIN)/delassus view $(or $(ROBOT),quadruped) $(ARGS)

EXAMPLE = $(if $(VIEW),--view) $(if $(filter-out 0,$(REALTIME)),--realtime) \
  $(if $(RECORD),--record $(abspath $(RECORD)))

.PHONY: record
record: $(STAMPS)/package $(STAMPS)/recordings
	@$(BIN)/delassus_demo $(if $(ROBOT),--robot $(ROBOT)) --record $(or $(RECORD),demo.mcap) $(ARGS)

.PHONY: walk
walk: $(STAMPS)/package $(STAMPS)/examples
	@cd examples && ../$(BIN)/python -m whole_body_control $(EXAMPLE) $(ARGS)

.PHONY: balance
balance: $(STAMPS)/package $(STAMPS)/examples
	@cd examples && ../$(BIN)/python -m balance $(EXAMPLE) $(ARGS)

.PHONY: arm
arm: $(STAMPS)/package $(STAMPS)/examples
	@cd examples && ../$(BIN)/python -m operational_space $(EXAMPLE) $(ARGS)

.PHONY: estimate
estimate: $(STAMPS)/package $(STAMPS)/examples
	@cd examples && ../$(BIN)/python -m estimation $(EXAMPLE) $(ARGS)

.PHONY: test
test: setup
	@$(BIN)/pytest $(PARALLEL) $(ARGS)

.PHONY: test-all
test-all: setup
	@HYPOTHESIS_PROFILE=chance $(BIN)/pytest -m '' $(PARALLEL) $(ARGS)

# launch, launch_ros and launch_pytest come with ROS 2 and are not on PyPI: LAUNCH names the folder that
# has them. Nothing else is taken from there, and launch_pytest gets a pytest that it works with.
LAUNCH_TESTS := build/launch-tests
.PHONY: launch-tests
launch-tests: setup
	@test -d '$(LAUNCH)/launch_pytest' || { echo 'make launch-tests: LAUNCH is the folder of Python packages' \
	  'that has launch, launch_ros and launch_pytest, as in LAUNCH=/opt/ros/jazzy/lib/python3.12/site-packages'; \
	  exit 2; }
	@rm -rf $(LAUNCH_TESTS)
	@$(INSTALL) --target $(LAUNCH_TESTS) 'pytest<8.4' osrf-pycommon psutil
	@ln -s $(foreach name,launch composition_interfaces,$(abspath $(LAUNCH))/$(name)*) $(LAUNCH_TESTS)
	@PYTHONPATH=$(abspath $(LAUNCH_TESTS)) $(BIN)/python -m pytest -n0 $(ARGS) \
	  test/component/node/test_launch.py test/component/node/test_launch_pytest.py

.PHONY: soak
soak: setup
	@cd tools && ../$(BIN)/python -m soak $(ARGS)

.PHONY: faults
faults: setup
	@$(BIN)/python tools/single_faults.py $(ARGS)

.PHONY: bench
bench: $(STAMPS)/bench
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: contact-problems
contact-problems: $(STAMPS)/bench
	@$(BIN)/python -m benchmarks.contact_problems $(ARGS)

.PHONY: doors
doors: setup
	@$(INSTALL) $(addprefix -r ,$(DOORS))
	@$(BIN)/python -m pytest -n0 test/library/doors $(ARGS)

.PHONY: papers
papers: setup
	@$(BIN)/python -m benchmarks.papers $(ARGS)

.PHONY: docs
docs: setup
	@$(BIN)/python -m sphinx -b html docs build/site -q -W --keep-going
	@echo 'Site: build/site/index.html'

.PHONY: pictures
pictures: setup
	@MUJOCO_GL=$(or $(MUJOCO_GL),egl) $(BIN)/python scripts/pictures.py $(ARGS)

.PHONY: lint
lint: setup
	@$(BIN)/ruff check
	@$(BIN)/mypy

.PHONY: setup
setup: $(STAMPS)/package $(STAMPS)/requirements

$(STAMPS)/venv: scripts/make_venv.sh
	@sh scripts/make_venv.sh $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/installer: $(STAMPS)/venv
	@$(INSTALL) 'pip>=24' 'setuptools>=64' wheel  # the pip of Python 3.10 finds no solution
	@touch $@

$(STAMPS)/base: $(STAMPS)/installer $(BASE)
	@echo 'Installing ROS 2 and the simulator (once, about a minute) ...'
	@$(INSTALL) $(addprefix -r ,$(BASE))
	@touch $@

$(STAMPS)/messages: $(STAMPS)/base $(MESSAGES)
	@echo 'Building the messages (about half a minute) ...'
	@$(INSTALL) ./msg
	@touch $@

# The package alone, without ROS. setuptools would keep modules in build/lib that are no longer there.
$(STAMPS)/library: $(STAMPS)/installer $(PACKAGE)
	@echo 'Installing delassus_ros ...'
	@rm -rf build/lib build/bdist.*
	@$(INSTALL) --no-build-isolation .
	@touch $@

$(STAMPS)/package: $(STAMPS)/messages $(STAMPS)/library
	@touch $@

# After the package, so that two commands at once do not install at the same time.
$(STAMPS)/requirements: $(REQUIREMENTS) | $(STAMPS)/package
	@echo 'Installing what tests, checks and pages need (once, some minutes) ...'
	@$(INSTALL) $(addprefix -r ,$^)
	@touch $@

$(STAMPS)/examples: requirements/examples.txt requirements/pinocchio.txt | $(STAMPS)/package
$(STAMPS)/recordings: requirements/recordings.txt | $(STAMPS)/package
$(STAMPS)/view: requirements/view.txt | $(STAMPS)/library
$(STAMPS)/bench: $(REQUIREMENTS) requirements/bench.txt | $(STAMPS)/package
$(STAMPS)/examples $(STAMPS)/recordings $(STAMPS)/view $(STAMPS)/bench:
	@echo 'Installing requirements of $(@F) (once) ...'
	@$(INSTALL) $(addprefix -r ,$^)
	@touch $@

.PHONY: clean
clean:
	rm -rf .venv .venv-* build install log dist *.egg-info docs/reference/api
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find benchmarks delassus delassus_ros examples msg test tools -name __pycache__ -type d -prune -exec rm -rf {} +
