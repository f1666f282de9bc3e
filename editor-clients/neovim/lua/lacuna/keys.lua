-- Keys that a buffer has only while something is shown in it; its own mappings of these keys come back afterwards.

local M = {}

--- The keys by mode, and by the names of their <Plug> mappings.
local DEFAULTS = {
  i = {
    accept = '<Tab>',
    ['accept-word'] = '<M-w>',
    ['accept-line'] = '<M-l>',
    next = '<M-n>',
    previous = '<M-p>',
    dismiss = '<C-]>',
    suggest = '<M-\\>',
  },
  n = { ['next-edit'] = '<Tab>', ['dismiss-edit'] = '<Esc>' },
}

local keys = { i = {}, n = {} } ---@type table<string, table<string, string>>
local mapped = {} ---@type table<string, table> the buffer's own mappings of our keys, by mode and key; empty for none

local function plug(name)
  return ('<Plug>(lacuna-%s)'):format(name)
end

--- Read the user's keys from `vim.g.lacuna_keys`: false for none, or a table of overrides (false: no such key).
function M.setup()
  if vim.g.lacuna_keys == false then
    return
  end
  local chosen = vim.tbl_extend('force', DEFAULTS.i, DEFAULTS.n, vim.g.lacuna_keys or {})
  for mode, defaults in pairs(DEFAULTS) do
    for name in pairs(defaults) do
      keys[mode][name] = chosen[name] or nil
    end
  end
  if keys.i.suggest then
    vim.keymap.set('i', keys.i.suggest, plug('suggest'))
    keys.i.suggest = nil -- this key is always mapped
  end
end

--- Whether Tab is the key that accepts.
---@return boolean
function M.accepts_with_tab()
  return keys.i.accept ~= nil and vim.keycode(keys.i.accept) == '\t'
end

--- Map the keys of a mode in a buffer. In normal mode, a key that is mapped already keeps its meaning.
---@param buf integer
---@param mode 'i'|'n'
function M.map(buf, mode)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys[mode]) do
      local before = vim.fn.maparg(key, mode, false, true)
      if mode == 'i' or vim.tbl_isempty(before) then
        mapped[mode .. key] = before.buffer == 1 and before or {}
        vim.keymap.set(mode, key, plug(name), { buffer = true })
      end
    end
  end)
end

--- Unmap the keys of a mode in a buffer and restore its own mappings.
---@param buf integer
---@param mode 'i'|'n'
function M.unmap(buf, mode)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys[mode]) do
      local before = mapped[mode .. key]
      mapped[mode .. key] = nil
      if before and vim.fn.maparg(key, mode) == plug(name) then -- unless another plugin has mapped the key since then
        vim.keymap.del(mode, key, { buffer = true })
        if next(before) then
          vim.fn.mapset(before)
        end
      end
    end
  end)
end

return M
