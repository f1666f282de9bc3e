-- :Lacuna setup: installs the language server where there is none, and the model.
--
-- Everything goes into one folder of Neovim's data. `install.py` beside the wheels does it; it can be interrupted at any
-- moment, goes on when it is started again, and ends with Neovim, since its stdin does.

local server = require('lacuna.server')

local M = {}

local OLDEST = { 3, 11 }
local PYTHONS = { 'python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python' }
local CHECK = 'import sys; print(*sys.version_info[:2])'
local WARN = vim.log.levels.WARN

--- The folder of a Python environment of the plugin's own.
function M.folder()
  return vim.fs.joinpath(vim.fn.stdpath('data'), 'lacuna')
end

local function own_python()
  return vim.fs.joinpath(M.folder(), vim.fn.has('win32') == 1 and 'venv/Scripts/python.exe' or 'venv/bin/python')
end

--- The folder of the wheels that `make neovim` puts beside the plugin.
function M.wheels()
  local file = debug.getinfo(1, 'S').source:sub(2)
  return vim.fs.joinpath(vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(file))), 'wheels')
end

--- What the wheels beside the plugin are known by; '' if there are none.
local function version()
  local files = vim.fn.glob(vim.fs.joinpath(M.wheels(), 'lacuna_code-*.whl'), true, true)
  table.sort(files)
  return table.concat(
    vim.tbl_map(function(file)
      return ('%s %d'):format(vim.fs.basename(file), vim.fn.getfsize(file))
    end, files),
    '\n'
  )
end

--- What the wheels were known by that are installed, or nil if the installation is not complete.
local function installed()
  local file = io.open(vim.fs.joinpath(M.folder(), 'done'))
  if file then
    local held = file:read('*a')
    file:close()
    return vim.fn.executable(own_python()) == 1 and held or nil
  end
end

--- The command that starts the language server: the one on the path, else the one that was installed here.
---@return string[]
function M.command()
  if vim.fn.executable('lacuna-lsp') == 0 and installed() then
    return { own_python(), '-I', '-m', 'lacuna_lsp' }
  end
  return { 'lacuna-lsp' }
end

--- Whether the language server that was installed here is of another version than the plugin.
function M.is_old()
  local cmd, wanted = vim.lsp.config.lacuna.cmd, version()
  return type(cmd) == 'table' and cmd[1] == own_python() and wanted ~= '' and installed() ~= wanted
end

--- The command line of Lacuna that belongs to the language server.
---@return string[]
local function lacuna()
  local cmd = vim.lsp.config.lacuna.cmd --[[@as string[] ]]
  if cmd[#cmd] == 'lacuna_lsp' then
    return { cmd[1], '-I', '-m', 'lacuna_server' }
  end
  local program = vim.fn.exepath(cmd[1])
  return { (program:gsub('lacuna%-lsp([^/\\]*)$', 'lacuna%1')) }
end

--- The command that runs a Python that is new enough, one on the path, else one that uv gets; or nil.
---@return string[]?
function M.python()
  for _, name in ipairs(PYTHONS) do
    if vim.fn.executable(name) == 1 then
      local said = vim.system({ name, '-I', '-c', CHECK }, { text = true }):wait().stdout
      local major, minor = (said or ''):match('^(%d+) (%d+)')
      if major and vim.version.ge({ tonumber(major), tonumber(minor) }, OLDEST) then
        return { name }
      end
    end
  end
  if vim.fn.executable('uv') == 1 then
    return { 'uv', 'run', '--no-project', '--python', '>=3.11', 'python' }
  end
end

--- The command that installs Lacuna from the wheels beside the plugin, or the reason why there is none.
---@return string[]?
---@return string?
local function installer()
  local wheels, wanted, python = M.wheels(), version(), M.python()
  if wanted == '' then
    return nil, ('there is no wheel in %s: install Lacuna with pip, or take the plugin that has one'):format(wheels)
  elseif not python then
    return nil, 'neither uv nor Python 3.11 or newer is on the path'
  end
  local script = vim.fs.joinpath(wheels, 'install.py')
  return vim.list_extend(python, { '-I', script, '--wheels', wheels, '--into', M.folder(), '--done', wanted })
end

--- A function that gets pieces of text, and calls `each` with every whole line as JSON.
---@param each fun(said: table)
local function json_lines(each)
  local rest = ''
  return function(_, data)
    local lines = vim.split(rest .. (data or ''), '\n')
    rest = table.remove(lines) --[[@as string]]
    vim.iter(lines):map(vim.json.decode):each(vim.schedule_wrap(each))
  end
end

local running = false

--- Run a setup and show its progress; `done` gets the model, or nil after a line with the failure was shown.
---@param command string[]
---@param done fun(model: string?)
local function run(command, done)
  local model
  local stdout = json_lines(function(said)
    model = said.model or model
    if said.stage and running then
      local done = said.done > 0 and (', %d MB'):format(said.done / 1e6) or ''
      server.pass(
        ('Lacuna: %s%s%s'):format(said.stage, done, said.total > 0 and (' of %d'):format(said.total / 1e6) or '')
      )
    end
  end)
  vim.system(command, { text = true, stdin = true, stdout = stdout }, function(ended)
    vim.schedule(function()
      running = false
      server.pass('')
      if ended.code ~= 0 then
        local lines = vim.split(vim.trim(ended.stderr or ''), '\n')
        local line = lines[#lines]:gsub('^lacuna: ', '')
        server.say(('setup: %s; :Lacuna setup goes on from here'):format(line), WARN)
      end
      done(ended.code == 0 and model or nil)
    end)
  end)
end

--- Install what is missing, after a question.
function M.start()
  if running then
    return server.say('the setup is running')
  end
  local problem, command = server.problem() or M.is_old(), nil
  if problem then
    local found, reason = installer()
    if not found then
      return server.say(reason --[[@as string]], WARN)
    end
    command = found
  end
  local question = 'Lacuna downloads its model (0.5 to 1.6 GB)'
    .. (problem and ' and its programs (0.3 GB, more with CUDA)' or '')
    .. ' where they are missing. Go on?'
  if vim.fn.confirm(question, '&Yes\n&No', 1) ~= 1 then
    return
  end
  running = true
  server.say('setting up, see :messages for the result')
  run(command or vim.list_extend(lacuna(), { 'setup', '--yes', '--json' }), function(model)
    if model then
      vim.lsp.config('lacuna', problem and { cmd = M.command() } or {})
      server.say(('set up with %s'):format(model))
      server.restart()
    end
  end)
end

return M
