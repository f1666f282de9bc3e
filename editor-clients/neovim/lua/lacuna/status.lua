-- The engine's state and the server's current work.

local M = {}

local news = {} ---@type table<integer, table> what the server has told of the engine, by client
local work = {} ---@type table<integer, { token: any, line: string }[]> the current work, by client, the latest last

---@class lacuna.News
---@field state string
---@field health 'ok'|'error'
---@field message string
---@field advice string
---@field nothing? string
---@field held? integer
---@field enabled? boolean
---@field automatic? boolean
---@field snoozedS? integer

--- What the server has told of the engine.
---@param client vim.lsp.Client
---@return lacuna.News
function M.news(client)
  return news[client.id] or { state = 'starting', health = 'ok', message = '', advice = '' }
end

--- Whether a setting is on: the user's own, or else what the server knows of files with settings.
---@param client vim.lsp.Client
---@param setting 'enabled'|'automatic'
---@return boolean
function M.is_on(client, setting)
  local own = vim.tbl_get(client.settings, 'lacuna', setting)
  if own == nil then
    own = M.news(client)[setting]
  end
  return own ~= false
end

--- The engine's state as one word. Unless it is an error, what the user wants may replace it: with 'off', or with
--- 'snoozed' or 'on request' if it is ready.
---@param client vim.lsp.Client
---@return string
function M.state(client)
  local now = M.news(client)
  if now.health == 'error' then
    return now.state
  elseif not M.is_on(client, 'enabled') then
    return 'off'
  end
  if now.state == 'ready' and (now.snoozedS or 0) > 0 then
    return 'snoozed'
  end
  return now.state == 'ready' and not M.is_on(client, 'automatic') and 'on request' or now.state
end

---@param client vim.lsp.Client
---@return string
function M.line(client)
  local latest, state, held = vim.iter(work[client.id] or {}):last(), M.state(client), M.news(client).held or 0
  if latest then
    return latest.line
  end
  return ('Lacuna: %s%s'):format(state, state == 'ready' and held > 0 and (', %d held back'):format(held) or '')
end

--- What a user who types may be told while the engine is not ready yet, or nil.
---@param client vim.lsp.Client
---@return string?
function M.waiting(client)
  local now, wants = M.news(client), M.is_on(client, 'enabled') and M.is_on(client, 'automatic')
  return wants and now.health == 'ok' and now.state ~= 'ready' and M.line(client) or nil
end

--- Why a request for suggestions got none.
---@param client vim.lsp.Client
---@return string
function M.reason(client)
  local nothing = M.news(client).nothing or ''
  return nothing ~= '' and nothing or M.line(client)
end

--- Handles `experimental/serverStatus`, the server's notification of the engine's state.
function M.told(_, params, context)
  local before = news[context.client_id]
  news[context.client_id] = params
  vim.cmd.redrawstatus({ bang = true })
  if params.state == 'ready' and not (before and before.state == 'ready') then
    require('lacuna.suggestion').again()
  else
    require('lacuna.suggestion').wait()
  end
end

--- Handles progress that the server reports: in the status line and, until it ends, in the command line.
function M.working(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if not client or client.name ~= 'lacuna' then
    return
  end
  local token, value = event.data.params.token, event.data.params.value
  local share = (value.percentage or 0) > 0 and (' %d%%'):format(value.percentage) or ''
  local line = value.title .. (value.message and ': ' .. value.message or '') .. share
  local running = work[client.id] or {}
  work[client.id] = running
  for index, one in ipairs(running) do
    if one.token == token then
      one.line = line
      if value.kind == 'end' then
        table.remove(running, index)
      end
      break
    end
  end
  if value.kind == 'begin' then
    table.insert(running, { token = token, line = line })
  end
  vim.cmd.redrawstatus({ bang = true })
  require('lacuna.server').pass(#running > 0 and running[#running].line or '')
  require('lacuna.suggestion').wait()
end

--- Handles `window/showMessage`.
function M.message(_, params)
  require('lacuna.server').show(params.message, vim.log.levels.OFF - params.type)
end

return M
