-- The engine's state and the server's current work.

local M = {}

local states = {} ---@type table<integer, string> the engine's state, by client
local work = {} ---@type table<integer, string> the current work, by client

--- The engine's state as one word. The user's settings may replace it: with 'off', or with 'on request' if it is ready.
---@param client vim.lsp.Client
---@return string
function M.state(client)
  local state = states[client.id] or 'starting'
  local settings = vim.tbl_get(client.settings, 'lacuna') or {}
  if settings.enabled == false then
    return 'off'
  end
  return state == 'ready' and settings.automatic == false and 'on request' or state
end

---@param client vim.lsp.Client
---@return string
function M.line(client)
  return work[client.id] or 'Lacuna: ' .. M.state(client)
end

--- Handles `experimental/serverStatus`, the server's notification of the engine's state.
function M.told(_, params, context)
  states[context.client_id] = params.state
  vim.cmd.redrawstatus({ bang = true })
  if params.state == 'ready' then
    require('lacuna.suggestion').again()
  end
end

--- Handles progress that the server reports.
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
end

--- Handles `window/showMessage`.
function M.message(_, params)
  require('lacuna.server').show(params.message, vim.log.levels.OFF - params.type)
end

return M
