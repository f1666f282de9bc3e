-- How the engine is, and what the server is busy with.

local M = {}

local POLL_MS = 1000 -- while the engine is not ready; after that the server tells of changes

local states = {} ---@type table<integer, table> what `lacuna.status` answered, by client
local work = {} ---@type table<integer, string> what is being done, by client
local watched = {} ---@type table<integer, true>

--- Ask how the engine is until it is ready.
---@param client vim.lsp.Client
local function watch(client)
  if watched[client.id] or client:is_stopped() then
    return
  end
  watched[client.id] = true
  client:request('workspace/executeCommand', { command = 'lacuna.status' }, function(_, answer)
    states[client.id] = answer or states[client.id]
    vim.cmd.redrawstatus({ bang = true })
    if answer and answer.state == 'ready' then
      watched[client.id] = nil
      return
    end
    vim.defer_fn(function()
      watched[client.id] = nil
      watch(client)
    end, POLL_MS)
  end)
end

--- The engine's state in a word, or how the user has set it once it is ready.
---@param client vim.lsp.Client
---@return string
function M.state(client)
  local state = vim.tbl_get(states, client.id, 'state') or 'starting'
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

--- The server is there, or has begun or ended something.
function M.changed(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if not client or client.name ~= 'lacuna' then
    return
  end
  local value = event.data.params and event.data.params.value
  if value and value.kind ~= 'end' then
    local share = value.percentage and value.percentage > 0 and (' %d%%'):format(value.percentage) or ''
    work[client.id] = value.title .. (value.message and ': ' .. value.message or '') .. share
    vim.cmd.redrawstatus({ bang = true })
  else
    work[client.id] = nil
    watch(client)
  end
end

--- Handles `window/showMessage`, in which the server says that the engine is lost, among others.
function M.message(_, params, context)
  require('lacuna.server').show(params.message, vim.log.levels.OFF - params.type)
  watch(assert(vim.lsp.get_client_by_id(context.client_id)))
end

return M
