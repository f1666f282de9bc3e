-- Next edits, in normal mode: a hint shows the one place that would follow the last change. A key goes there, where the
-- edit is drawn, and then makes it; another key dismisses it for good.

local keys = require('lacuna.keys')
local server = require('lacuna.server')

local M = {}

local namespace = vim.api.nvim_create_namespace('lacuna.next_edit')
local WAIT_MS = 300 -- without an edit, before the server is asked

---@class lacuna.NextEdit
---@field client vim.lsp.Client
---@field buf integer
---@field tick integer the buffer's changedtick that the edit is for
---@field edit table an edit of textDocument/copilotInlineEdit
---@field text string its text; where it appends lines to the buffer, without their last line ending
---@field first integer its first row, from 0; where it appends lines, the buffer's last row
---@field last integer its last row

local shown ---@type lacuna.NextEdit?
local accepted ---@type integer? the changedtick behind the last acceptance, after which the next edit was asked for
local turn = 0 -- counts the requests and everything that makes an answer outdated

--- Remove the hint, and ignore answers that are still to come.
function M.hide()
  turn = turn + 1
  if shown then
    local buf = shown.buf
    shown = nil
    if vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
      keys.unmap(buf, 'n')
    end
  end
end

local function at_edit()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  return row >= shown.first and row <= shown.last
end

--- Draw the hint at the place, and at the cursor if the place is out of sight; at the place itself, draw the edit.
local function draw()
  local buf, last = shown.buf, shown.last
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  if not at_edit() then
    local hint = { { '⇥ next edit', 'LacunaCount' } }
    vim.api.nvim_buf_set_extmark(buf, namespace, shown.first, 0, { virt_text = hint })
    if shown.first < vim.fn.line('w0') - 1 or shown.first >= vim.fn.line('w$') then
      local row = vim.api.nvim_win_get_cursor(0)[1] - 1
      hint = { { ('⇥ next edit in line %d'):format(shown.first + 1), 'LacunaCount' } }
      vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { virt_text = hint })
    end
    return
  end
  local lines = vim.split(shown.text, '\r?\n')
  for row = shown.first, last do
    vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { end_row = row + 1, hl_group = 'LacunaMark' })
  end
  vim.api.nvim_buf_set_extmark(buf, namespace, last, 0, {
    virt_lines = vim.tbl_map(function(line)
      return { { (line:gsub('\t', (' '):rep(vim.bo[buf].tabstop))), 'LacunaSuggestion' } }
    end, lines),
  })
end

---@param client vim.lsp.Client
local function show(client, buf, edit)
  M.hide()
  local range = edit.range
  local end_row = vim.api.nvim_buf_line_count(buf) - 1
  local appends = range.start.line > end_row
  shown = {
    client = client,
    buf = buf,
    tick = vim.b[buf].changedtick,
    edit = edit,
    text = appends and edit.text:gsub('\r?\n$', '') or edit.text, -- Neovim would append an empty line, too
    first = math.min(range.start.line, end_row),
    last = math.min(math.max(range.start.line, range['end'].line - (range['end'].character == 0 and 1 or 0)), end_row),
  }
  keys.map(buf, 'n')
  draw()
end

--- Whether an edit may be shown. While a macro is recorded none is: its keys would do something else when it is replayed.
local function idle()
  return vim.api.nvim_get_mode().mode == 'n' and vim.bo.modifiable and vim.fn.reg_recording() == ''
end

--- Ask for the next edit.
function M.request()
  local client, buf = server.client(), vim.api.nvim_get_current_buf()
  if not client or not idle() then
    return
  end
  turn = turn + 1
  local mine, tick = turn, vim.b[buf].changedtick
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = 2, diagnostics = vim.lsp.diagnostic.from(vim.diagnostic.get(buf)) }
  client:request('textDocument/copilotInlineEdit', params, function(_, answer)
    local edit = answer and answer.edits and answer.edits[1]
    if
      mine == turn
      and edit
      and idle()
      and buf == vim.api.nvim_get_current_buf()
      and tick == vim.b[buf].changedtick
    then
      show(client, buf, edit)
    end
  end, buf)
end

--- Handle a change of the text: ask once the user pauses. After an undo, nothing is asked for.
function M.changed()
  if vim.b.changedtick == accepted then
    accepted = nil
    return
  end
  M.hide()
  local undo = vim.fn.undotree()
  if undo.seq_cur < undo.seq_last then
    return
  end
  local mine = turn
  vim.defer_fn(function()
    if mine == turn then
      M.request()
    end
  end, WAIT_MS)
end

--- Handle a move of the cursor.
function M.moved()
  if not shown then
    return
  end
  if vim.api.nvim_get_current_buf() ~= shown.buf or vim.b[shown.buf].changedtick ~= shown.tick then
    M.hide()
  else
    draw()
  end
end

--- Go to the edit; there, make it, and ask for the one after it.
function M.accept()
  if shown and (vim.b[shown.buf].changedtick ~= shown.tick or not vim.bo[shown.buf].modifiable) then
    M.hide() -- keys that came at once are in no event yet
  end
  if not shown then
    return
  end
  if not at_edit() then
    vim.cmd.normal({ "m'", bang = true })
    vim.api.nvim_win_set_cursor(0, { shown.first + 1, 0 })
    vim.cmd.normal({ '^', bang = true })
    return draw()
  end
  local client, buf, edit, text, first = shown.client, shown.buf, shown.edit, shown.text, shown.edit.range.start.line
  M.hide()
  vim.lsp.util.apply_text_edits({ { range = edit.range, newText = text } }, buf, client.offset_encoding)
  local row = math.min(first + #vim.split(text, '\n'), vim.api.nvim_buf_line_count(buf))
  vim.api.nvim_win_set_cursor(0, { row, 0 })
  accepted = vim.b.changedtick
  M.request()
end

--- Dismiss the edit: it is not offered again.
function M.dismiss()
  if shown then
    shown.client:notify('textDocument/didRejectInlineEdit', { item = { command = shown.edit.command } })
    M.hide()
  end
end

return M
