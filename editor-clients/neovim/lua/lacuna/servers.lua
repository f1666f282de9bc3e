-- Asks the buffer's other language servers how the names at the cursor are used, and tells Lacuna's.

local M = {}

-- Later answers are of no use: the request for a suggestion has gone by then.
local PATIENCE_MS = 50
local METHODS = { 'textDocument/signatureHelp', 'textDocument/hover' }

---@param client vim.lsp.Client
local function is_off(client)
  return vim.tbl_get(client.config, 'settings', 'lacuna', 'askServers') == false
end

--- The signatures in an answer, the active one first.
local function signatures(answer)
  local found = {}
  for index, one in ipairs(answer.signatures or {}) do
    local first = index == (answer.activeSignature or 0) + 1
    table.insert(found, first and 1 or #found + 1, { name = one.label:match('^[^%(%s]*'), text = one.label })
  end
  return found
end

--- The code in a hover text: its first fenced block, or its first line.
local function code(contents)
  local lines = vim.lsp.util.convert_input_to_markdown_lines(contents)
  local found, open = {}, false
  for _, line in ipairs(lines) do
    if vim.startswith(line, '```') then
      if open then
        break
      end
      open = true
    elseif open then
      table.insert(found, line)
    end
  end
  return #found > 0 and table.concat(found, '\n') or lines[1] or ''
end

--- The position of the name before the cursor's last dot or bracket, or nil.
local function named(row, col)
  local head = vim.api.nvim_get_current_line():sub(1, col)
  local name = head:match('([%w_]+)[%.%(:]+[%w_]*$')
  if name then
    local at = head:find(name .. '[%.%(:]+[%w_]*$')
    return name, { row, at - 1 }
  end
end

--- Ask for what is known at the cursor. Nothing waits for the answers; those that come soon enough are passed on.
---@param client vim.lsp.Client Lacuna's
---@param buf integer
function M.ask(client, buf)
  if is_off(client) then
    return
  end
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local told, late = {}, false
  local position = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local function tell()
    if not late and #told > 0 then
      client:notify('textDocument/didFindSignatures', {
        textDocument = position.textDocument,
        position = position.position,
        signatures = told,
      })
    end
  end
  local name, place = named(row, col)
  for _, other in ipairs(vim.lsp.get_clients({ bufnr = buf })) do
    for _, method in ipairs(other.id ~= client.id and METHODS or {}) do
      local params = vim.lsp.util.make_position_params(0, other.offset_encoding)
      local hovers = method == 'textDocument/hover'
      if hovers and name then
        local line = vim.api.nvim_get_current_line()
        params.position.character = vim.str_utfindex(line, other.offset_encoding, place[2], false)
      end
      if other:supports_method(method, buf) and (name or not hovers) then
        local ok, id = other:request(method, params, function(_, answer)
          if late or not answer then
            return
          end
          local found = hovers and { { name = name, text = code(answer.contents) } } or signatures(answer)
          for _, one in ipairs(found) do
            table.insert(told, { server = other.name, name = one.name, text = one.text })
          end
          tell()
        end, buf)
        vim.defer_fn(function()
          late = true
          if ok and other.requests[id] then
            other:cancel_request(id)
          end
        end, PATIENCE_MS)
      end
    end
  end
end

return M
