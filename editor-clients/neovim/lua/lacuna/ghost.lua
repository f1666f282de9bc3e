-- Draws a suggestion at the cursor as ghost text, with an extmark that has virtual text.

local M = {}

local namespace = vim.api.nvim_create_namespace('lacuna.ghost')

--- Replace tabs by spaces up to the next tab stop, because virtual text does not expand them.
---@param line string
---@param column integer
---@return string
local function expand(line, column)
  return (
    line:gsub('([^\t]*)\t', function(text)
      local width = vim.fn.strdisplaywidth(text, column)
      local stop = vim.bo.tabstop - (column + width) % vim.bo.tabstop
      column = column + width + stop
      return text .. (' '):rep(stop)
    end)
  )
end

--- Draw a text at a position in the current buffer, with a note after its first line.
---@param row integer
---@param col integer
---@param text string
---@param note string
function M.draw(row, col, text, note)
  M.clear()
  local lines = vim.split(text, '\r?\n')
  local first = { { expand(table.remove(lines, 1), vim.fn.virtcol('.') - 1), 'LacunaSuggestion' } }
  if note ~= '' then
    table.insert(first, { note, 'LacunaCount' })
  end
  vim.api.nvim_buf_set_extmark(0, namespace, row, col, {
    virt_text = first,
    virt_text_pos = 'inline',
    virt_lines = vim.tbl_map(function(line)
      return { { expand(line, 0), 'LacunaSuggestion' } }
    end, lines),
  })
end

--- Draw a note behind the cursor's line, in place of anything drawn.
---@param note string
function M.note(note)
  M.clear()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  vim.api.nvim_buf_set_extmark(0, namespace, row, 0, { virt_text = { { note, 'LacunaCount' } } })
end

--- Remove the drawn text from the current buffer.
function M.clear()
  vim.api.nvim_buf_clear_namespace(0, namespace, 0, -1)
end

return M
