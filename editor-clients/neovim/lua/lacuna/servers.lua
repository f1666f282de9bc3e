-- Asks the buffer's other language servers how the names at the cursor are used, and tells Lacuna's.

local M = {}

-- Later answers are of no use: the request for a suggestion has gone by then.
local PATIENCE_MS = 50

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

--- The name before the cursor's last dot or bracket, and the byte where it begins in its line; or nil.
local function named()
  local col = vim.api.nvim_win_get_cursor(0)[2]
  local start, _, name = vim.api.nvim_get_current_line():sub(1, col):find('([%w_]+)[%.%(:]+[%w_]*$')
  return name, start and start - 1
end

--- Ask for what is known at the cursor. Nothing waits for the answers; those that come soon enough are passed on.
---@param client vim.lsp.Client Lacuna's
---@param buf integer
function M.ask(client, buf)
  if vim.tbl_get(client.config, 'settings', 'lacuna', 'askServers') == false then
    return
  end
  local place, line = vim.lsp.util.make_position_params(0, client.offset_encoding), vim.api.nvim_get_current_line()
  local name, start = named()
  local told, cancels, late = {}, {}, false

  local function ask(method, column, read)
    if #vim.lsp.get_clients({ bufnr = buf, method = method }) == 0 then
      return
    end
    local function params(other)
      local at = vim.lsp.util.make_position_params(0, other.offset_encoding)
      if column then
        at.position.character = vim.str_utfindex(line, other.offset_encoding, column, false)
      end
      return at
    end
    local _, cancel = vim.lsp.buf_request(buf, method, params, function(_, answer, context)
      if answer and not late then
        local server = vim.lsp.get_client_by_id(context.client_id).name
        for _, one in ipairs(read(answer)) do
          table.insert(told, vim.tbl_extend('force', one, { server = server }))
        end
        if #told > 0 then
          place.signatures = told
          client:notify('textDocument/didFindSignatures', place)
        end
      end
    end)
    table.insert(cancels, cancel)
  end

  ask('textDocument/signatureHelp', nil, signatures)
  if name then
    ask('textDocument/hover', start, function(answer)
      return { { name = name, text = code(answer.contents) } }
    end)
  end
  if #cancels > 0 then
    vim.defer_fn(function()
      late = true
      vim.iter(cancels):each(function(cancel)
        cancel()
      end)
    end, PATIENCE_MS)
  end
end

return M
