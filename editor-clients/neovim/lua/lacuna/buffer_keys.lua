-- Keys that a buffer has only while something is shown in it; its own mappings of these keys come back afterwards.

local typing = require('lacuna.typing')

local M = {}

local mapped = {} ---@type table<string, table> the buffer's own mappings of our keys, by mode and key; empty for none

--- The `<Plug>` mapping of a name.
---@param name string
function M.plug(name)
  return ('<Plug>(lacuna-%s)'):format(name)
end

--- Map keys in a buffer.
---@param buf integer
---@param mode string
---@param keys table<string, string> keys by the names of their <Plug> mappings
---@param only_free? boolean a key that is mapped already keeps its meaning
function M.map(buf, mode, keys, only_free)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys) do
      local before = vim.fn.maparg(key, mode, false, true)
      if not only_free or vim.tbl_isempty(before) then
        mapped[mode .. key] = before.buffer == 1 and before or {}
        vim.keymap.set(mode, key, M.plug(name), { buffer = true })
        typing.pass(key)
      end
    end
  end)
end

--- Unmap keys in a buffer and restore its own mappings.
---@param buf integer
---@param mode string
---@param keys table<string, string>
function M.unmap(buf, mode, keys)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys) do
      local before = mapped[mode .. key]
      mapped[mode .. key] = nil
      if before and vim.fn.maparg(key, mode) == M.plug(name) then -- unless another plugin has mapped the key since then
        vim.keymap.del(mode, key, { buffer = true })
        if next(before) then
          vim.fn.mapset(before)
        end
      end
    end
  end)
end

return M
