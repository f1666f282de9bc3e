-- Functions for a user's configuration; the rest works through commands, keys and `vim.lsp.config`.

local M = {}

--- For 'statusline': Lacuna's state, or nothing if it does not serve the current file.
---@return string
function M.statusline()
  local client = require('lacuna.server').client()
  return client and require('lacuna.status').line(client) or ''
end

return M
