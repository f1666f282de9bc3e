-- Functions for a user's configuration. The plugin is otherwise used with commands, keys and `vim.lsp.config`.

local M = {}

--- Return Lacuna's state for 'statusline', or an empty string if Lacuna does not serve the current file.
---@return string
function M.statusline()
  local client = require('lacuna.server').client()
  return client and require('lacuna.status').line(client) or ''
end

return M
