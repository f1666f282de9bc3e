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

--- Hide suggestions in the current buffer, or show them again: for menus that Neovim does not know of.
---@param hidden boolean
function M.hide(hidden)
  vim.b.lacuna_hidden = hidden
  vim.schedule(require('lacuna.suggestion').follow)
end

return M
