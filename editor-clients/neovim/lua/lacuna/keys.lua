-- Keys for suggestions. They are mapped only while a suggestion is shown; otherwise the keys keep their meaning.

local buffer_keys = require('lacuna.buffer_keys')

local M = {}

local DEFAULTS = {
  accept = '<Tab>',
  ['accept-word'] = '<M-w>',
  ['accept-line'] = '<M-l>',
  next = '<M-n>',
  previous = '<M-p>',
  dismiss = '<C-]>',
  suggest = '<M-\\>',
}

local keys = {} ---@type table<string, string>

--- Read the user's keys from `vim.g.lacuna_keys`: false for none, or a table of overrides (false: no such key).
function M.setup()
  local wanted = vim.g.lacuna_keys
  if wanted == false then
    return
  end
  for name, key in pairs(vim.tbl_extend('force', DEFAULTS, wanted or {})) do
    if key and DEFAULTS[name] then -- the others are keys of normal mode
      keys[name] = key
    end
  end
  if keys.suggest then
    vim.keymap.set('i', keys.suggest, buffer_keys.plug('suggest'))
    keys.suggest = nil -- this key is always mapped
  end
end

--- Whether Tab is the key that accepts.
---@return boolean
function M.accepts_with_tab()
  return keys.accept ~= nil and vim.keycode(keys.accept) == '\t'
end

--- Map the keys in a buffer.
---@param buf integer
function M.map(buf)
  buffer_keys.map(buf, 'i', keys)
end

--- Unmap the keys in a buffer and restore its own mappings.
---@param buf integer
function M.unmap(buf)
  buffer_keys.unmap(buf, 'i', keys)
end

return M
