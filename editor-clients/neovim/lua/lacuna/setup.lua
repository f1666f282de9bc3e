-- :Lacuna setup: installs the language server where there is none, and the model.
--
-- Everything goes into one folder of Neovim's data. Each step can be repeated, so a setup that was interrupted goes on.

local server = require('lacuna.server')

local M = {}

local OLDEST = { 3, 11 }
local WARN = vim.log.levels.WARN

--- The folder of a Python environment of the plugin's own.
function M.folder()
  return vim.fs.joinpath(vim.fn.stdpath('data'), 'lacuna')
end

local function own_python()
  return vim.fs.joinpath(M.folder(), vim.fn.has('win32') == 1 and 'Scripts/python.exe' or 'bin/python')
end

--- The folder of the wheels that `make neovim` puts beside the plugin.
function M.wheels()
  local file = debug.getinfo(1, 'S').source:sub(2)
  return vim.fs.joinpath(vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(file))), 'wheels')
end

--- Whether the plugin's own environment is complete: pip installs the commands of Lacuna last.
local function is_installed()
  local commands = vim.fs.dirname(own_python())
  return vim.fn.glob(vim.fs.joinpath(commands, 'lacuna-lsp*')) ~= ''
end

--- The command that starts the language server: the one on the path, else the one that was installed here.
---@return string[]
function M.command()
  if vim.fn.executable('lacuna-lsp') == 0 and is_installed() then
    return { own_python(), '-I', '-m', 'lacuna_lsp' }
  end
  return { 'lacuna-lsp' }
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

--- A Python that is new enough, or nil.
---@return string?
function M.python()
  for _, name in ipairs({ 'python3', 'python3.13', 'python3.12', 'python3.11', 'python' }) do
    if vim.fn.executable(name) == 1 then
      local said = vim.system({ name, '-c', 'import sys; print(*sys.version_info[:2])' }, { text = true }):wait().stdout
      local major, minor = (said or ''):match('^(%d+) (%d+)')
      if major and vim.version.ge({ tonumber(major), tonumber(minor) }, OLDEST) then
        return name
      end
    end
  end
end

--- The commands that install Lacuna from the wheels beside the plugin, or the reason why they cannot.
---@return string[][]?
---@return string?
local function installation()
  if vim.fn.glob(vim.fs.joinpath(M.wheels(), 'lacuna_code-*.whl')) == '' then
    return nil, ('there is no wheel in %s: install Lacuna with pip, or take the plugin that has one'):format(M.wheels())
  end
  local source = { '--find-links', M.wheels(), 'lacuna-code' }
  if vim.fn.executable('uv') == 1 then
    return {
      { 'uv', 'venv', '--quiet', '--allow-existing', '--python', '>=3.11', M.folder() },
      vim.list_extend({ 'uv', 'pip', 'install', '--quiet', '--python', own_python() }, source),
    }
  end
  local python = M.python()
  if not python then
    return nil, 'neither uv nor Python 3.11 or newer is on the path'
  end
  return {
    { python, '-m', 'venv', M.folder() },
    vim.list_extend({ own_python(), '-I', '-m', 'pip', 'install', '--quiet' }, source),
  }
end

--- Run commands one after another; `done` gets the last output, or nil after a line with the failure was shown.
---@param steps string[][]
---@param done fun(output: string?)
local function run(steps, done)
  local step = table.remove(steps, 1)
  vim.system(step, { text = true }, function(ended)
    vim.schedule(function()
      if ended.code ~= 0 then
        local lines = vim.split(vim.trim(ended.stderr or ''), '\n')
        server.say(('setup: %s; :Lacuna setup goes on from here'):format(lines[#lines]), WARN)
        done(nil)
      elseif #steps > 0 then
        run(steps, done)
      else
        done(ended.stdout)
      end
    end)
  end)
end

local running = false

--- Install what is missing, after a question.
function M.start()
  if running then
    return server.say('the setup is running')
  end
  local steps, problem = {}, server.problem()
  if problem then
    local found, reason = installation()
    if not found then
      return server.say(reason --[[@as string]], WARN)
    end
    steps = found
  end
  local question = 'Lacuna downloads its model (0.5 to 1.6 GB)'
    .. (problem and ' and its programs (0.3 GB, more with CUDA)' or '')
    .. ' where they are missing. Go on?'
  if vim.fn.confirm(question, '&Yes\n&No', 1) ~= 1 then
    return
  end
  running = true
  server.say('setting up, see :messages for the result')
  local function model()
    vim.lsp.config('lacuna', problem and { cmd = M.command() } or {})
    run({ vim.list_extend(lacuna(), { 'setup', '--yes', '--json' }) }, function(output)
      running = false
      if output then
        server.say(('set up with %s'):format(vim.json.decode(output).model))
        server.restart()
      end
    end)
  end
  if #steps == 0 then
    return model()
  end
  run(steps, function(output)
    running = output ~= nil
    if running then
      model()
    end
  end)
end

return M
