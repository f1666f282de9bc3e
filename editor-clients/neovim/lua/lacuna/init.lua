-- Functions for a user's configuration. The plugin is otherwise used with commands, keys and `vim.lsp.config`.

local M = {}

--- Return Lacuna's state as an item of 'statusline', red for an error, or an empty string if Lacuna does not serve
--- the current file.
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
