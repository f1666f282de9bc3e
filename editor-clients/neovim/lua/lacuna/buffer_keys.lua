-- Keys that a buffer has only while something is shown in it; its own mappings of these keys come back afterwards.

local typing = require('lacuna.typing')

local M = {}

local replaced = {} ---@type table<string, table> the buffer's own mappings, by mode and key

--- The `<Plug>` mapping of a name.
---@param name string
function M.plug(name)
  return ('<Plug>(lacuna-%s)'):format(name)
end

--- Map keys in a buffer.
---@param buf integer
---@param mode string
---@param keys table<string, string> keys by the names of their <Plug> mappings
---@param only_free? boolean a key that the user has mapped for all buffers keeps its meaning
function M.map(buf, mode, keys, only_free)
  vim.api.nvim_buf_call(buf, function()
    for name, key in pairs(keys) do
      local before = vim.fn.maparg(key, mode, false, true)
      if not only_free or vim.tbl_isempty(before) or before.buffer == 1 then
        replaced[mode .. key] = before.buffer == 1 and before or nil
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
      if vim.fn.maparg(key, mode) == M.plug(name) then -- unless another plugin has mapped the key since then
        vim.keymap.del(mode, key, { buffer = true })
        if replaced[mode .. key] then
          vim.fn.mapset(replaced[mode .. key])
        end
      end
    end
  end)
end

return M
