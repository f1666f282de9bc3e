-- The engine's state and the server's current work.

local M = {}

local news = {} ---@type table<integer, table> what the server has told of the engine, by client
local work = {} ---@type table<integer, string> the current work, by client

--- What the server has told of the engine.
---@param client vim.lsp.Client
---@return { state: string, health: 'ok'|'error', message: string, advice: string, nothing?: string }
function M.news(client)
  return news[client.id] or { state = 'starting', health = 'ok', message = '', advice = '' }
end

--- The engine's state as one word. Unless it is an error, the user's settings may replace it: with 'off', or with
--- 'on request' if it is ready.
---@param client vim.lsp.Client
---@return string
function M.state(client)
  local now = M.news(client)
  local settings = vim.tbl_get(client.settings, 'lacuna') or {}
  if now.health == 'error' then
    return now.state
  elseif settings.enabled == false then
    return 'off'
  end
  return now.state == 'ready' and settings.automatic == false and 'on request' or now.state
end

---@param client vim.lsp.Client
---@return string
function M.line(client)
  return work[client.id] or 'Lacuna: ' .. M.state(client)
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
  end
end

--- Handles progress that the server reports: in the status line and, until it ends, in the command line.
function M.working(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if not client or client.name ~= 'lacuna' then
    return
  end
  local value = event.data.params.value
  local share = (value.percentage or 0) > 0 and (' %d%%'):format(value.percentage) or ''
  work[client.id] = value.kind ~= 'end' and value.title .. (value.message and ': ' .. value.message or '') .. share
    or nil
  vim.cmd.redrawstatus({ bang = true })
  require('lacuna.server').pass(work[client.id] or '')
end

--- Handles `window/showMessage`.
function M.message(_, params)
  require('lacuna.server').show(params.message, vim.log.levels.OFF - params.type)
end

return M
