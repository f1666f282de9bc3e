-- Keys for suggestions. They are mapped only while one is shown, so that none is taken from anything else.

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
local replaced = {} ---@type table<string, table> what a buffer had mapped itself, by key

local function plug(name)
  return ('<Plug>(lacuna-%s)'):format(name)
end

--- Take the user's keys from `vim.g.lacuna_keys`: false for none, or a table that overrides some (false: not that one).
function M.setup()
  local wanted = vim.g.lacuna_keys
  if wanted == false then
    return
  end
  for name, key in pairs(vim.tbl_extend('force', DEFAULTS, wanted or {})) do
    if key then
      keys[name] = key
    end
  end
  if keys.suggest then
    vim.keymap.set('i', keys.suggest, plug('suggest'))
    keys.suggest = nil -- it is the one key for when nothing is shown
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

--- Give them back.
---@param buf integer
function M.unmap(buf)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys) do
      if vim.fn.maparg(key, 'i') == plug(name) then -- no other plugin has taken it meanwhile
        vim.keymap.del('i', key, { buffer = true })
        if replaced[key] then
          vim.fn.mapset(replaced[key])
        end
      end
    end
  end)
end

return M
