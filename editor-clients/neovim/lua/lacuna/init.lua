-- Functions for a user's configuration; the rest works through commands, keys and `vim.lsp.config`.

local M = {}

--- For 'statusline': Lacuna's state as an item, red for an error, or nothing if it does not serve the current file.
---@return string
function M.statusline()
  local client = require('lacuna.server').client()
  if not client then
    return ''
  end
  local status = require('lacuna.status')
  local line = status.line(client):gsub('%%', '%%%%')
  return status.news(client).health == 'error' and ('%%#LacunaError#%s%%*'):format(line) or line
end

return M
