-- Regions of the current buffer: the selection, and places that the user has marked to fill them together.

local M = {}

local namespace = vim.api.nvim_create_namespace('lacuna.marks')

---@class lacuna.Region rows are counted from 0, columns are in bytes, and the end is exclusive
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer

---@param row integer
---@param col integer
---@param encoding string
local function position(row, col, encoding)
  local line = vim.api.nvim_buf_get_lines(0, row, row + 1, true)[1]
  return { line = row, character = vim.str_utfindex(line, encoding, col) }
end

--- Convert a region to a range of LSP.
---@param region lacuna.Region
---@param encoding string
function M.range(region, encoding)
  return {
    start = position(region.row, region.col, encoding),
    ['end'] = position(region.end_row, region.end_col, encoding),
  }
end

--- The lines of a range, without the indentation of the first one.
---@return lacuna.Region
local function lines(first, last)
  local text = vim.api.nvim_buf_get_lines(0, first - 1, last, true)
  return { row = first - 1, col = #text[1]:match('^%s*'), end_row = last - 1, end_col = #text[#text] }
end

--- A command's regions: the last selection if the range equals it, else its lines. A block gives a region per line.
---@return lacuna.Region[]
function M.of(command)
  local from, to, kind = vim.fn.getpos("'<"), vim.fn.getpos("'>"), vim.fn.visualmode()
  local selected = command.range == 2 and from[2] == command.line1 and to[2] == command.line2
  if not selected or kind == 'V' then
    return { lines(command.line1, command.line2) }
  end
  local pieces = vim.fn.getregionpos(from, to, { type = kind, eol = true })
  local regions = vim.tbl_map(function(piece)
    local first, last = piece[1], piece[2]
    local line = vim.fn.getline(last[2])
    return { row = first[2] - 1, col = first[3] - 1, end_row = last[2] - 1, end_col = math.min(last[3], #line) }
  end, pieces)
  if kind == 'v' then
    local last = regions[#regions]
    regions = { vim.tbl_extend('force', regions[1], { end_row = last.end_row, end_col = last.end_col }) }
  end
  return regions
end

--- Mark the command's regions, or the cursor position.
function M.mark(command)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local cursor = { row = row - 1, col = col, end_row = row - 1, end_col = col }
  for _, region in ipairs(command.range > 0 and M.of(command) or { cursor }) do
    local empty = region.row == region.end_row and region.col == region.end_col
    vim.api.nvim_buf_set_extmark(0, namespace, region.row, region.col, {
      end_row = region.end_row,
      end_col = region.end_col,
      hl_group = 'LacunaMark',
      virt_text = empty and { { '…', 'LacunaMark' } } or nil,
      virt_text_pos = 'inline',
    })
  end
end

---@return lacuna.Region[]
function M.marked()
  return vim.tbl_map(function(mark)
    return { row = mark[2], col = mark[3], end_row = mark[4].end_row or mark[2], end_col = mark[4].end_col or mark[3] }
  end, vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }))
end

---@param buf integer
function M.unmark(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
end

return M
