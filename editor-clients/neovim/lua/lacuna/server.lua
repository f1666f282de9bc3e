-- Finds, queries, configures and restarts the language server.

local M = {}

--- The client of a buffer, or nil if none is ready.
---@param buf? integer
---@return vim.lsp.Client?
function M.client(buf)
  return vim.lsp.get_clients({ name = 'lacuna', bufnr = buf or 0 })[1]
end

--- Whether the language server of the current buffer is starting.
---@return boolean
function M.is_starting()
  local clients = vim.lsp.get_clients({ name = 'lacuna', bufnr = 0, _uninitialized = true })
  return #clients > 0 and not M.client()
end

local passing = false -- whether the last line that was shown is one of `pass`

--- Show a line in normal mode until the next one; an empty one removes it. It is not kept in :messages.
---@param line string
function M.pass(line)
  if vim.api.nvim_get_mode().mode == 'n' and (passing or line ~= '') then
    passing = line ~= ''
    vim.api.nvim_echo({ { vim.fn.printf(('%%.%dS'):format(vim.v.echospace), line) } }, false, {})
  end
end

--- Show a line. In insert mode, show it later, because the mode message would overwrite it. A line that is wider than
--- the screen would make Neovim wait for a key, so show only its beginning; :messages has the complete line.
---@param line string
---@param level integer
function M.show(line, level)
  local function show()
    passing = false
    local room, how = vim.v.echospace, vim.o.messagesopt
    if vim.fn.strdisplaywidth(line) <= room then
      return vim.notify(line, level)
    end
    vim.o.messagesopt = how:gsub('hit%-enter', 'wait:0')
    vim.notify(line, level)
    vim.cmd.redraw()
    vim.o.messagesopt = how
    vim.api.nvim_echo({ { vim.fn.printf(('%%.%dS…'):format(room - 1), line) } }, false, {})
  end
  if vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' then
    vim.api.nvim_create_autocmd('InsertLeave', { once = true, callback = vim.schedule_wrap(show) })
  else
    show()
  end
end

---@param text string
---@param level? integer
function M.say(text, level)
  M.show('Lacuna: ' .. text, level or vim.log.levels.INFO)
end

--- The problem with the command that starts the server, or nil.
---@return string?
function M.problem()
  local cmd = vim.lsp.config.lacuna.cmd
  if type(cmd) == 'table' and vim.fn.executable(cmd[1]) == 0 then
    return ('%s is not found'):format(cmd[1])
  end
end

--- Warn in one line if the server cannot be started, or is an old one that :Lacuna setup has installed.
function M.check()
  local old = require('lacuna.setup').is_old() and 'the language server is not of this version of the plugin'
  local problem = M.problem() or old
  if problem then
    M.say(problem .. ', see :checkhealth lacuna', vim.log.levels.WARN)
  end
end

--- Start the server for a file that is about to be read, if it is enabled for files of that kind. Neovim itself starts
--- servers after all plugins for the file's type, and some of these look for interpreters for a second or two.
---@param buf integer
function M.begin(buf)
  local config = vim.lsp.is_enabled('lacuna') and vim.lsp.config.lacuna or nil
  if not config or config.filetypes or type(config.root_dir) == 'function' or M.problem() then
    return
  end
  if vim.filetype.match({ filename = vim.api.nvim_buf_get_name(buf) }) then
    local root = config.root_dir or vim.fs.root(buf, config.root_markers)
    vim.lsp.start(vim.tbl_extend('force', config, { root_dir = root }), { attach = false })
  end
end

local checked = false

--- The same soon, and only once: without `vim.lsp.enable`, Neovim reads the configuration again for every question.
function M.check_once()
  if not checked then
    checked = true
    vim.schedule(M.check)
  end
end

--- The reason why the current buffer has no client.
---@return string
function M.absence()
  local starts = M.is_starting() and 'the language server is starting'
  return M.problem() or starts or 'no language server is running for this file'
end

--- The current buffer's client; without one, show the reason.
---@return vim.lsp.Client?
local function wanted_client()
  local client = M.client()
  if not client then
    M.say(M.absence(), vim.log.levels.WARN)
  end
  return client
end

--- Do something once the language server of the current buffer has started, unless the user has gone on by then.
---@param go fun()
function M.once_started(go)
  local buf, tick = vim.api.nvim_get_current_buf(), vim.b.changedtick
  local function started()
    if vim.api.nvim_get_current_buf() ~= buf or vim.b[buf].changedtick ~= tick then
      return M.say('the text has changed meanwhile, nothing was done', vim.log.levels.WARN)
    end
    go()
  end
  M.say('the language server is starting, this goes on then')
  vim.api.nvim_create_autocmd('LspAttach', {
    buffer = buf,
    callback = function()
      local client = M.client(buf)
      if client then -- not only another server
        vim.schedule(started)
      end
      return client ~= nil
    end,
  })
end

--- Run one of the server's commands; show an error in one line, else call `done` with the answer.
---@param name string
---@param argument table?
---@param done fun(answer: table)
function M.execute(name, argument, done)
  local client = wanted_client()
  if not client then
    return
  end
  local params = { command = 'lacuna.' .. name, arguments = { argument } }
  client:request('workspace/executeCommand', params, function(err, answer)
    if err then
      M.say(err.message, vim.log.levels.WARN)
    else
      done(answer)
    end
  end, vim.api.nvim_get_current_buf()) -- with this number, Neovim sends the buffer's last changes before the request
end

--- Send the cursor position to the server, which reads ahead there.
function M.focus()
  local client = M.client()
  if client then
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    client:notify('textDocument/didFocus', params)
  end
end

--- Change a setting until Neovim ends.
---@param setting string
---@param value any
---@return boolean whether a server runs
function M.set(setting, value)
  if not wanted_client() then
    return false
  end
  local settings = { lacuna = { [setting] = value } }
  vim.lsp.config('lacuna', { settings = settings }) -- for clients that are still to come
  for _, each in ipairs(vim.lsp.get_clients({ name = 'lacuna' })) do
    each.settings = vim.tbl_deep_extend('force', each.settings, settings)
    each:notify('workspace/didChangeConfiguration', { settings = each.settings })
  end
  vim.cmd.redrawstatus({ bang = true })
  return true
end

--- Toggle a setting that is on by default, until Neovim ends.
---@param setting 'enabled'|'automatic'
function M.toggle(setting)
  local client = M.client()
  local value = client ~= nil and not require('lacuna.status').is_on(client, setting)
  if M.set(setting, value) then
    M.say(('%s %s'):format(setting, value and 'on' or 'off'))
  end
end

--- Restart the server, also one that hangs in its start, which Neovim itself would not stop.
function M.restart()
  for _, client in ipairs(vim.lsp.get_clients({ name = 'lacuna', _uninitialized = true })) do
    client:stop()
  end
  vim.lsp.enable('lacuna', false)
  vim.lsp.enable('lacuna')
  M.check()
end

return M
