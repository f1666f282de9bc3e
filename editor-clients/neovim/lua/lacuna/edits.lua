-- Applies the server's edits. If they need confirmation, it first shows them as a diff.

local documents = require('lacuna.documents')

local M = {}

local namespace = vim.api.nvim_create_namespace('lacuna.preview')
local PAUSE_MS = 1000 -- without a key, before a preview opens for a user who was typing
local LOOK_MS = 100

---@param change table LSP's TextDocumentEdit
local function name(change)
  return vim.fn.fnamemodify(vim.uri_to_fname(change.textDocument.uri), ':~:.')
end

--- Return an edit as the hunks of a diff.
---@param buf integer
---@param edit table
---@param encoding string
---@return string[]
local function hunks(buf, edit, encoding)
  local old = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, true, old)
  vim.lsp.util.apply_text_edits({ vim.deepcopy(edit) }, scratch, encoding)
  local new = vim.api.nvim_buf_get_lines(scratch, 0, -1, true)
  vim.api.nvim_buf_delete(scratch, { force = true })
  local diff = vim.diff(table.concat(old, '\n') .. '\n', table.concat(new, '\n') .. '\n', { ctxlen = 2 })
  return vim.split(vim.trim(diff --[[@as string]]), '\n')
end

--- Return the text of a preview, and the row of the first line of each edit.
local function describe(label, edit, encoding)
  local text = {
    '# ' .. label,
    '# :w makes these changes, :q! none.',
    '# Delete the line with @ over a change to leave it out.',
  }
  local rows = {}
  for _, change in ipairs(edit.documentChanges) do
    local buf = documents.buffer(change.textDocument.uri)
    table.insert(text, '--- ' .. name(change))
    for _, one in ipairs(change.edits) do
      rows[one] = #text
      vim.list_extend(text, hunks(buf, one, encoding))
    end
  end
  return text, rows
end

--- Show edits in a new buffer; `done` gets the set of edits to apply.
---@param done fun(kept: table<table, boolean>)
local function preview(label, edit, encoding, done)
  local text, rows = describe(label, edit, encoding)
  vim.cmd.tabnew()
  local buf = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_name(buf, ('lacuna://%d/%s'):format(buf, label))
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = 'acwrite', 'wipe', false
  vim.bo[buf].undolevels = -1 -- so that undo does not remove the text
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, text)
  vim.bo[buf].undolevels = vim.go.undolevels
  vim.bo[buf].filetype = 'diff' -- the buffer stays modified until the user decides
  local marks = {}
  for one, row in pairs(rows) do
    -- Deleting the line makes its mark invalid; undoing the deletion makes it valid again.
    local whole = { end_col = #text[row + 1], invalidate = true }
    marks[one] = vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, whole)
  end
  local kept = {}
  vim.api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      for one, mark in pairs(marks) do
        local details = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, mark, { details = true })[3]
        kept[one] = details ~= nil and not details.invalid
      end
      vim.bo[buf].modified = false
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(buf) then -- :wq has deleted it already
          vim.api.nvim_buf_delete(buf, { force = true })
        end
      end)
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = vim.schedule_wrap(function()
      done(kept)
    end),
  })
end

local function in_normal_mode()
  local mode = vim.api.nvim_get_mode().mode
  return mode == 'n' or mode == 'nt'
end

--- Wait, in a coroutine, for a pause in normal mode: what is typed for another buffer is no decision about a preview.
local function pause()
  local this, last = coroutine.running(), vim.uv.now()
  local listener = vim.on_key(function()
    last = vim.uv.now()
  end)
  local function look()
    if in_normal_mode() and vim.uv.now() - last >= PAUSE_MS then
      vim.on_key(nil, listener)
      coroutine.resume(this)
    else
      vim.defer_fn(look, LOOK_MS)
    end
  end
  vim.defer_fn(look, LOOK_MS)
  coroutine.yield()
end

--- Load the buffers of edits, and return the ticks of their texts.
---@return table<integer, integer>
local function load_buffers(edit)
  local ticks = {}
  for _, change in ipairs(edit.documentChanges) do
    local buf = documents.buffer(change.textDocument.uri)
    vim.fn.bufload(buf)
    ticks[buf] = vim.b[buf].changedtick
  end
  return ticks
end

--- The reason why edits cannot be applied, or nil. An edit without a version was made for the file on disk.
---@param ticks? table<integer, integer> those of the texts that the user has seen in a preview
local function obstacle(edit, ticks)
  for _, change in ipairs(edit.documentChanges) do
    local version = change.textDocument.version
    local buf = documents.buffer(change.textDocument.uri)
    local is_changed, is_unsaved
    if type(version) == 'number' then
      is_changed = vim.lsp.util.buf_versions[buf] ~= version
    elseif ticks then
      is_changed = vim.b[buf].changedtick ~= ticks[buf]
    else
      is_unsaved = vim.bo[buf].modified
    end
    if is_changed then
      return name(change) .. ' has changed meanwhile'
    elseif is_unsaved then
      return name(change) .. ' has unsaved changes'
    elseif not vim.bo[buf].modifiable then
      return name(change) .. ' is not modifiable'
    end
  end
end

--- Handles `workspace/applyEdit`. Neovim's own handler reports stale edits as applied, and has no preview.
function M.apply(_, params, context)
  local client = assert(vim.lsp.get_client_by_id(context.client_id))
  local edit = params.edit
  local reason = obstacle(edit)
  if not reason and edit.changeAnnotations and not in_normal_mode() then
    require('lacuna.server').say('a preview is ready, it opens once you pause in normal mode')
    pause()
    reason = obstacle(edit)
  end
  if not reason and edit.changeAnnotations then
    local ticks = load_buffers(edit)
    local this = coroutine.running()
    preview(params.label, edit, client.offset_encoding, function(kept)
      coroutine.resume(this, kept)
    end)
    local kept = coroutine.yield()
    for _, change in ipairs(edit.documentChanges) do
      change.edits = vim.tbl_filter(function(one)
        return kept[one]
      end, change.edits)
    end
    edit.documentChanges = vim.tbl_filter(function(change)
      return #change.edits > 0
    end, edit.documentChanges)
    if #edit.documentChanges == 0 then
      return { applied = false }
    end
    reason = obstacle(edit, ticks)
  end
  if reason then
    return { applied = false, failureReason = reason }
  end
  local count = 0
  for _, change in ipairs(edit.documentChanges) do
    vim.lsp.util.apply_text_edits(change.edits, documents.buffer(change.textDocument.uri), client.offset_encoding)
    count = count + #change.edits
  end
  require('lacuna.server').say(('%d change%s made'):format(count, count == 1 and '' or 's'))
  return { applied = true }
end

return M
