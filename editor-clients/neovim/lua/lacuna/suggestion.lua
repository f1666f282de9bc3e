-- Requests, shows, accepts and dismisses suggestions at the cursor, and updates them while the user types.

local ghost = require('lacuna.ghost')
local keys = require('lacuna.keys')
local server = require('lacuna.server')
local servers = require('lacuna.servers')

local M = {}

local INVOKED, AUTOMATIC = 1, 2
-- A Tab on a blank line indents until the suggestion has been there for so many milliseconds: it was meant before.
local SEEN_MS = 300
-- The beginning of a text that is accepted: a word, or else punctuation; and the rest of a line.
local WORD, LINE = [=[^\%(\k\+\|\%(\k\@![^[:space:]]\)\+\)]=], [=[^[^\r\n]*]=]

---@class lacuna.Shown
---@field client vim.lsp.Client
---@field buf integer
---@field row integer the row where the items' text starts, from 0
---@field col integer the column of that start, in bytes
---@field tail string the text behind the cursor in its line
---@field items table[] LSP's InlineCompletionItem objects
---@field index integer the index of the drawn item
---@field taken integer the number of its bytes that the buffer already contains
---@field kind integer the trigger kind of the request
---@field since number when something was shown first, in milliseconds

local shown ---@type lacuna.Shown?
local pending ---@type { client: vim.lsp.Client, id: integer }?
local place = '' -- the place of the last request
local noted = false -- whether the state of an engine that is not ready is drawn
local told ---@type table? the last fill that was reported as shown

local function cursor()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return row - 1, col
end

local function here()
  return table.concat({ vim.api.nvim_get_current_buf(), vim.b.changedtick, cursor() }, ':')
end

--- Whether something may be shown. While a macro is recorded nothing is: when it is replayed, its keys would do
--- something else.
local function inserting()
  local mode, hidden = vim.api.nvim_get_mode().mode, vim.fn.pumvisible() == 1 or vim.b.lacuna_hidden
  return mode:sub(1, 1) == 'i' and not hidden and vim.bo.modifiable and vim.fn.reg_recording() == ''
end

---@return string the text behind the cursor in its line
local function tail()
  return vim.api.nvim_get_current_line():sub(vim.api.nvim_win_get_cursor(0)[2] + 1)
end

---@return string the rest of the drawn item
local function rest()
  return shown.items[shown.index].insertText:sub(shown.taken + 1)
end

local function notify(what, more)
  local params = vim.tbl_extend('force', { item = shown.items[shown.index] }, more or {})
  shown.client:notify('textDocument/' .. what, params)
end

local function draw()
  local row, col = cursor()
  local note = #shown.items > 1 and (' %d/%d'):format(shown.index, #shown.items) or ''
  ghost.draw(row, col, rest(), note)
  local fill = shown.items[shown.index].command
  if not vim.deep_equal(fill, told) then -- after typing, the rest of a suggestion is a new item of the same fill
    told = fill
    notify('didShowCompletion')
  end
end

local function cancel()
  if pending then
    pending.client:cancel_request(pending.id)
    pending = nil
  end
end

--- Remove the drawn suggestion and cancel the pending request.
function M.hide()
  cancel()
  place, noted = '', false
  ghost.clear()
  if shown then
    keys.unmap(shown.buf, 'i')
    shown = nil
  end
end

---@param now lacuna.Shown
local function show(now)
  if not shown then
    keys.map(now.buf, 'i')
  end
  shown = now
  draw()
end

--- The index of the drawn item among some items, or nil.
local function drawn(items)
  for index, item in ipairs(shown and items or {}) do
    if item.insertText == rest() then
      return index
    end
  end
end

--- Request suggestions. An explicit request gets several of them, or shows a note if there are none.
---@param kind? integer
---@param step? integer offset from the drawn item
function M.request(kind, step)
  kind = kind or INVOKED
  local client, buf, asked = server.client(), vim.api.nvim_get_current_buf(), here()
  local function nothing(why) -- shown at the cursor, because the mode display would overwrite a message
    local row, col = cursor()
    ghost.draw(row, col, '', (' nothing to suggest here (%s)'):format(why))
  end
  if not client then
    return nothing(server.absence())
  end
  cancel()
  place = asked
  local mine = { client = client }
  local function answered(err, answer)
    if pending ~= mine then
      return
    end
    pending = nil
    if here() ~= asked or not inserting() then
      return
    end
    local items = answer and answer.items or {}
    local row, col = cursor()
    if #items > 0 then
      local same = drawn(items)
      local index = same and (same - 1 + (step or 0)) % #items + 1 or 1
      show({
        client = client,
        buf = buf,
        row = row,
        col = col,
        tail = tail(),
        items = items,
        index = index,
        taken = 0,
        kind = kind,
        since = shown and shown.since or vim.uv.now(),
      })
    elseif kind == AUTOMATIC then
      M.hide()
      M.wait()
    elseif not shown then
      nothing(err and err.message or require('lacuna.status').reason(client))
    end
  end
  pending = mine
  servers.ask(client, buf)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  _, mine.id = client:request('textDocument/inlineCompletion', params, answered, buf)
end

--- Whether all that has changed is that the user has typed a part of the suggestion, so that the rest can stay.
local function typed_through()
  local row, col = cursor()
  local elsewhere = vim.api.nvim_get_current_buf() ~= shown.buf or tail() ~= shown.tail
  if elsewhere or row < shown.row or (row == shown.row and col < shown.col) then
    return false
  end
  local newline = vim.bo.fileformat == 'dos' and '\r\n' or '\n'
  local typed = table.concat(vim.api.nvim_buf_get_text(0, shown.row, shown.col, row, col, {}), newline)
  shown.taken = #typed
  return vim.startswith(shown.items[shown.index].insertText, typed) and rest() ~= ''
end

--- Handle a change of the cursor or the text: keep a suggestion that still fits, and request new ones.
function M.follow()
  if not (inserting() and server.client()) then
    M.hide()
    return M.wait()
  end
  if place == here() then -- typing causes one event for the text and one for the cursor
    return
  end
  local kind = AUTOMATIC
  if shown and typed_through() then
    kind = shown.kind
    draw()
  else
    M.hide()
  end
  M.request(kind)
end

--- While the engine is not ready, say so behind the line: Neovim shows no messages in insert mode.
function M.wait()
  if shown or not inserting() then
    return
  end
  local client, note = server.client(), nil
  if client then
    note = require('lacuna.status').waiting(client)
  elseif server.is_starting() then
    note = 'Lacuna: starting'
  end
  if note then
    ghost.note(note)
  elseif noted then
    ghost.clear()
  end
  noted = note ~= nil
end

--- Request suggestions again once the engine is ready.
function M.again()
  if not shown then
    place = ''
    M.follow()
  end
end

--- Whether a suggestion is shown that fits what stands there now: keys that came at once are in no event yet.
local function fits()
  if shown and not inserting() then
    M.hide()
  end
  return shown ~= nil and typed_through()
end

--- Whether the key that accepts was meant as indentation: Tab on a blank line, where a suggestion has just come.
local function indents()
  local blank = not vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2]):find('%S')
  return blank and keys.accepts_with_tab() and shown.kind == AUTOMATIC and vim.uv.now() - shown.since < SEEN_MS
end

--- Insert text at the cursor, literally, as a separate undo step. The dot repeats it.
---@param text string
local function insert(text)
  vim.go.undolevels = vim.go.undolevels
  vim.api.nvim_paste((text:gsub('\r\n', '\n')), false, -1)
end

--- Insert what is left of the suggestion.
local function take()
  local text, client, command, buf = rest(), shown.client, shown.items[shown.index].command, shown.buf
  M.hide()
  insert(text)
  client:exec_cmd(command, { bufnr = buf })
end

--- Accept the whole suggestion.
function M.accept()
  if not fits() then
    return
  end
  if indents() then
    M.hide()
    vim.api.nvim_feedkeys(vim.keycode('<Tab>'), 'nti', false) -- before the keys that were typed behind it
  else
    take()
  end
end

--- Accept the next word or line of the suggestion, with the blanks before it.
---@param unit 'word'|'line'
function M.accept_part(unit)
  if not fits() then
    return
  end
  local left = rest()
  local blanks = left:match('^%s*')
  local part = blanks .. vim.fn.matchstr(left:sub(#blanks + 1), unit == 'word' and WORD or LINE)
  if part == left then
    return take()
  end
  local taken = shown.items[shown.index].insertText:sub(1, shown.taken + #part)
  notify('didPartiallyAcceptCompletion', { acceptedLength = vim.str_utfindex(taken, 'utf-16') })
  insert(part)
end

--- Draw the next suggestion. If only one was requested while typing, request more.
---@param step 1|-1
function M.cycle(step)
  if not fits() or shown.taken > 0 then -- after typing, a request for new items is pending
    return
  end
  if shown.kind == AUTOMATIC then
    return M.request(INVOKED, step)
  end
  shown.index = (shown.index - 1 + step) % #shown.items + 1
  draw()
end

--- Remove the suggestion, report it as rejected, and do not request one here again.
function M.dismiss()
  if shown then
    notify('didRejectCompletion')
    M.hide()
    place = here()
  end
end

return M
