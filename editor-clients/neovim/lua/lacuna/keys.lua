-- Keys for suggestions. They are mapped only while a suggestion is shown; otherwise the keys keep their meaning.

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
local replaced = {} ---@type table<string, table> the buffer's own mappings, by key

local function plug(name)
  return ('<Plug>(lacuna-%s)'):format(name)
end

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
    vim.keymap.set('i', keys.suggest, plug('suggest'))
    keys.suggest = nil -- this key is always mapped
  end
end

--- Map the keys in a buffer.
---@param buf integer
function M.map(buf)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys) do
      local before = vim.fn.maparg(key, 'i', false, true)
      replaced[key] = before.buffer == 1 and before or nil
      vim.keymap.set('i', key, plug(name), { buffer = true })
    end
  end)
end

--- Unmap the keys in a buffer and restore its own mappings.
---@param buf integer
function M.unmap(buf)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys) do
      if vim.fn.maparg(key, 'i') == plug(name) then -- unless another plugin has mapped the key since then
        vim.keymap.del('i', key, { buffer = true })
        if replaced[key] then
          vim.fn.mapset(replaced[key])
        end
      end
    end
  end)
end

return M
