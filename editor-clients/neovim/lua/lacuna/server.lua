-- The language server: found, asked, configured and started again.

local M = {}

--- The client of a buffer, nil where there is none that is ready.
---@param buf? integer
---@return vim.lsp.Client?
function M.client(buf)
  return vim.lsp.get_clients({ name = 'lacuna', bufnr = buf or 0 })[1]
end

--- Show a line, after insert mode: there the mode is drawn over it at once. What is wider than the screen would ask for
--- a key: its beginning is shown, and all of it is in :messages.
---@param line string
---@param level integer
function M.show(line, level)
  local function show()
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

--- What is wrong with the command that starts the server, nil where nothing is.
---@return string?
function M.problem()
  local cmd = vim.lsp.config.lacuna.cmd
  if type(cmd) == 'table' and vim.fn.executable(cmd[1]) == 0 then
    return ('%s is not found'):format(cmd[1])
  end
end

--- Say it in one line if the server cannot be started.
function M.check()
  local problem = M.problem()
  if problem then
    M.say(problem .. ', see :checkhealth lacuna', vim.log.levels.WARN)
  end
end

--- Why the current buffer has no client.
---@return string
function M.absence()
  return M.problem() or 'no language server is running for this file'
end

--- The current buffer's client; where there is none it is said why.
---@return vim.lsp.Client?
local function wanted_client()
  local client = M.client()
  if not client then
    M.say(M.absence(), vim.log.levels.WARN)
  end
  return client
end

--- Run one of the server's commands; a refusal is shown in one line, and `done` hears only of success.
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
  end, vim.api.nvim_get_current_buf()) -- by its number, or else its last changes are not sent before
end

--- Tell the server where the cursor is: it reads ahead where that rests.
function M.focus()
  local client = M.client()
  if client then
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    client:notify('textDocument/didFocus', params)
  end
end

--- Turn a setting that is on by default off or on again, until Neovim ends.
---@param setting 'enabled'|'automatic'
function M.toggle(setting)
  local client = wanted_client()
  if not client then
    return
  end
  local value = vim.tbl_get(client.settings, 'lacuna', setting) == false
  for _, each in ipairs(vim.lsp.get_clients({ name = 'lacuna' })) do
    each.settings = vim.tbl_deep_extend('force', each.settings, { lacuna = { [setting] = value } })
    each:notify('workspace/didChangeConfiguration', { settings = each.settings })
  end
  M.say(('%s %s'):format(setting, value and 'on' or 'off'))
  vim.cmd.redrawstatus({ bang = true })
end

--- End the server and start it again.
function M.restart()
  vim.lsp.enable('lacuna', false)
  vim.lsp.enable('lacuna')
  M.check()
end

return M
