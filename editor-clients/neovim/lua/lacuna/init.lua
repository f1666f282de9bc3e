-- What a configuration may use; all else is done by commands, keys and `vim.lsp.config`.

local M = {}

--- For 'statusline': what Lacuna does now, or nothing where it does not serve the current file.
---@return string
function M.statusline()
  local client = require('lacuna.server').client()
  return client and require('lacuna.status').line(client) or ''
end

return M
